"""Classes from labels: of one component each, or mixtures; in memory, in chunks and in batches."""
