"""Compiled loops over characters and words: what Python is too slow for, each with a plain twin
beside it.

Numba compiles a kernel when it is first called and keeps the result on disk. Modules here import
numba at their top, so nothing that the Dagster floor imports may import them at its own: a facade
in `lc_assets.text` does so inside its functions, and goes the plain way when numba is not there.
"""
