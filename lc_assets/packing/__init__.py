"""Packing documents into rows, and pages into documents: arrays in, arrays out."""
