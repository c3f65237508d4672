"""Arrays of token ids: tokenizers, dtypes, first ids of a text, rolling, orders."""
