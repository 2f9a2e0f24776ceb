"""How estimators fit: chunks, batches, choices, covariates, searches, hybrid training."""
