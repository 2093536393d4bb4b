"""The stages of the pipeline as data, one module a kind of table."""
