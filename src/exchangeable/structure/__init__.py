"""Which variables go together: the paper's sweep, evidence merging, tests of the conditions."""
