"""Columns of every kind: what they are, and their values as numbers."""
