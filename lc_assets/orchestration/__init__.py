"""Everything that depends on Dagster, made from the list of stages."""
