"""Stages of documents that contain evaluation items."""
