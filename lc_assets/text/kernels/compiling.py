"""Compiling, as `lc_assets.compiling` does it for every room; here under the name that kernels of text know."""

from lc_assets.compiling import COMPILED, compiled, sources_digest

__all__ = ["COMPILED", "compiled", "sources_digest"]
