"""The parts of which the reports consist."""
