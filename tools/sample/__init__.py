"""The generator of the bundled corpus in ``data/sample``."""
