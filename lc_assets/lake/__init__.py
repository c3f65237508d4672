"""Versions of artefacts in a folder or a bucket: receipts, publishing, releases, sources.

What the bytes mean is in `lc_assets.formats`. Import from the modules; this package imports
nothing.
"""
