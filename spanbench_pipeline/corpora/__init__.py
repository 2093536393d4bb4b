"""Where eval sets come from, one module a source; ``source`` is the interface they share."""
