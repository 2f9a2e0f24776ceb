"""Rows in chunks and on clusters, and passes over them."""
