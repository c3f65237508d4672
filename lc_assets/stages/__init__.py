"""The stages, callable from a plain script or a test, without Dagster."""
