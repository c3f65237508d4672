"""Stages of from a row to its document and back."""
