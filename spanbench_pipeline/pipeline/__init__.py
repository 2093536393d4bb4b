"""What is made from what: stages, what is stale, and how Dagster runs it."""
