"""The command ``lc``: what Dagster is not for. One module per command, `main` only registers."""
