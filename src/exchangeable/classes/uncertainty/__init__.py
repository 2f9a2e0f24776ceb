"""Standard errors, bootstrap tests and how respondents were sampled."""
