"""Megatron's files: token data sets, GPT indices, launch arguments."""
