"""The algebra of parts: totals and their columns, factors, conditional likelihoods."""
