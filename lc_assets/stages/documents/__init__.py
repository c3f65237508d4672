"""Stages of raw documents: the manifest, filtering, keys."""
