"""What each command of ``spanbench`` does; ``cli`` only parses and dispatches."""
