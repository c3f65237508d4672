"""Megatron's index arrays and blending, as arithmetic on arrays. Pure: no files."""
