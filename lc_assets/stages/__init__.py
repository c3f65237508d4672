"""Verbs: everything an asset does, callable from a plain script or a test. Nothing here knows
Dagster.
"""
