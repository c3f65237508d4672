"""Tokenizers by name or file."""
