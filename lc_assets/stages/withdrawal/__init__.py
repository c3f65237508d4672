"""Withdrawn documents and the versions that contain them."""
