"""Rows with holes under the paper's blocks: scores, expectations and answers."""
