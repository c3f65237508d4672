"""Addresses of pages, and links between pages."""
