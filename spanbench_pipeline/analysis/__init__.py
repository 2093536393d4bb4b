"""Tables of query metrics to means, statistics, comparisons and what to fix first."""
