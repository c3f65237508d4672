"""Stages of rows of equal length and their order."""
