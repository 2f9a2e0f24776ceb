"""Classes from labels, with one or several components; in memory, in chunks and in batches."""
