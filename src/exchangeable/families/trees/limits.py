"""Limits of trees."""

MOST_VARIABLES = 4_000
"""A tree compares all pairs of variables, which limits their number."""
