"""Channels that give each query a list of chunks, and what makes one ranking of them."""
