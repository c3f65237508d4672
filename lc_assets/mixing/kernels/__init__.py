"""Compiled loops over index arrays. Imported only where they are called: numba takes half a second
to import.
"""
