"""From a snapshot to what an operator reads: rows, ranges, changes, alerts."""
