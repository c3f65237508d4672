"""Building a partition of a stage: declaration, recipe, shards, checks, tables, publication."""
