"""Invariants of stored tables: each function returns the rows that break one."""
