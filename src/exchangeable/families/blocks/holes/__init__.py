"""Rows with missing entries under the paper's blocks: scores, expectations and queries."""
