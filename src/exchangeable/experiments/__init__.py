"""Experiments that a command runs: what was measured, stored as it ends, and told in a page."""
