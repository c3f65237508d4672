"""Stages of token ids of documents."""
