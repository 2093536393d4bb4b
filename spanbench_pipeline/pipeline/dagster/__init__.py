"""Stages as Dagster assets, checks, jobs, schedules and sensors; runs of them."""
