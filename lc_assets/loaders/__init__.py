"""Loaders: read rows while training, by step, with exact resumption. Without Dagster, Arrow or
numba.
"""
