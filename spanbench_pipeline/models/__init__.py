"""Encoders and rerankers: their files, their identity, running them."""
