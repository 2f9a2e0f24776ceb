"""Rows in chunks, on a cluster or in batches, as EM sees them."""
