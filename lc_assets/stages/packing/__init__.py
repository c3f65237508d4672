"""Stages of documents packed into rows."""
