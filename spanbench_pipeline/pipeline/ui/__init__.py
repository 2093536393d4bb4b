"""What the web UI shows of each asset, and the process that serves it."""
