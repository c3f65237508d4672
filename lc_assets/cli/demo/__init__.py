"""``lc demo`` and ``lc sample``: the whole chain over a sample or a folder of documents."""
