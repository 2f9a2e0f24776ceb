"""Exact answers to questions about any subset of the variables of a fitted model."""
