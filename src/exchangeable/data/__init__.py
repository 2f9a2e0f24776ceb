"""Rows in memory or not: packed or listed bits, columns of any kind, missing values, groups."""
