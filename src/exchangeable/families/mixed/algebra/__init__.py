"""What parts compute with: totals and how they are shared out, factors, conditional likelihoods."""
