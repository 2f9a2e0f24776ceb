"""How estimators fit: chunks, batches, choices, covariates, searches, training for predictions."""
