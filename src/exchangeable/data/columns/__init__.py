"""Columns of every kind: their schema, and their values as numbers."""
