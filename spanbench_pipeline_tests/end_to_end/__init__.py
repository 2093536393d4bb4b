"""The pipeline as a person runs it."""
