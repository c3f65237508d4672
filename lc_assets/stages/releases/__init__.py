"""Stages of named versions: release, difference, pruning."""
