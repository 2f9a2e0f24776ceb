"""Log-linear scores: sums of linear terms, pairs along a forest and look-ups; passes over them."""
