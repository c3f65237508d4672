"""Mixes of data sets, exactly as Megatron builds them: arrays in, arrays out."""
