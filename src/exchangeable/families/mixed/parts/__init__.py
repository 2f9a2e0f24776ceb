"""Parts of components of mixed kinds: one file per distribution of a block of columns."""
