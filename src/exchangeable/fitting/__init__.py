"""Algorithms that fit models: EM with its starts and restarts, classes, search and selection."""
