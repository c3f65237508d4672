"""Stages of Megatron's token files and indices."""
