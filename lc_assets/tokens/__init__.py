"""Arrays of token ids: tokenizers, dtypes, truncating, rolling, orders. Pure but for loading a
vocabulary.
"""
