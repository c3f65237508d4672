"""Where bytes live: opening what is upstream, publishing what is ours, digests.

Here: files, folders and their digests. Not here: what the bytes mean (`lc_assets.formats`).
Import the module that defines the thing; this package imports nothing.
"""
