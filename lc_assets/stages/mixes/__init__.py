"""Stages of weighted mixes."""
