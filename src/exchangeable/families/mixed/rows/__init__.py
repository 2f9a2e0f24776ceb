"""Rows of mixed kinds in the form of parts, in memory, in chunks or on a cluster."""
