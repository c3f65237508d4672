"""Bytes to values and back, one module per format; its docstring is the specification.

Here: parsing and writing. Not here: where files live and how they are published
    (`lc_assets.lake`).
"""
