"""Everything that knows Dagster: assets, checks, jobs, sensors, schedules, resources and
metadata, made from the list of stages.
"""
