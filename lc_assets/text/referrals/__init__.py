"""Concepts of a text and the distances between their mentions."""
