"""Real English prose that every installation has: the documentation inside the installed
packages.
"""
