"""Rows of mixed kinds as parts read them, in memory, in chunks or on a cluster."""
