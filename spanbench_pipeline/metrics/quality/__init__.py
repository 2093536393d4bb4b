"""The metrics: a module for one, or for a few that belong together, declared in its ``METRICS``."""
