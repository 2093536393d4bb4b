"""Plug-ins in distributions of their own, installed and run for real."""
