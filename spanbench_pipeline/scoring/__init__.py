"""Anybody's rankings, held to a corpus and given the measures that its own configurations get."""
