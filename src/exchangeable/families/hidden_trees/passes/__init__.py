"""Passes over rows for a tree of hidden states: messages, sums, and their inner loops."""
