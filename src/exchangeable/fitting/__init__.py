"""Fits: one EM, its starts and restarts, classes from labels, search and selection."""
