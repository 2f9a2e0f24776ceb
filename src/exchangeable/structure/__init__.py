"""Learning which variables form blocks: the paper's sweep, evidence merging, tests."""
