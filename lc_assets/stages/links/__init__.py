"""Stages of pages of a crawl and the links between them."""
