"""Settings of the stages: the sections of a recipe."""
