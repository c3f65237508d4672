"""``lc demo`` and ``lc sample``: the whole chain over a sample or over documents of one's own."""
