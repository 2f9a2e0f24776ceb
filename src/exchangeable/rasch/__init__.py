"""Rasch and partial credit models: what a methods section needs, over families with totals."""
