"""Scores that are sums of linear terms, pairs along a forest and look-ups, and passes over them."""
