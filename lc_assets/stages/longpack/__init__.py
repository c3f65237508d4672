"""LongPack over tables: pages, links between them, claims, and finally assembled texts.

============  ======================================================================================
`pages`       a line per document: its key, rank, side; then, of those needed, content and tokens
`dealing`     links become pages, or a reason why not; roots take their turns
`claiming`    round after round, from links to the table of claims
`placing`     which text goes where
`gathering`   texts to documents, in buckets
============  ======================================================================================
"""
