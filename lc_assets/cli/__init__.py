"""The command line ``lc``, for what Dagster is not for."""
