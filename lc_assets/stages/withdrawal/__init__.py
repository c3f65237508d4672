"""Stages of documents that must no longer be served."""
