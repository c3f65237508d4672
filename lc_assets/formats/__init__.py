"""Bytes to values and back, one module per format; its docstring is the specification.

Storage and publishing: `lc_assets.lake`.
"""
