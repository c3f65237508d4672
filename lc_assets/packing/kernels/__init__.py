"""Compiled loops of packing; each has a plain twin in the module that chooses it."""
