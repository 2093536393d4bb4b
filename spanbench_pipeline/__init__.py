"""spanbench: retrieval over contracts, measured by the characters it brings back."""

__version__ = "0.1.0"
