"""Alerts: what went wrong, sent once a fault."""
