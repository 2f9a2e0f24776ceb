"""Covariates and distal outcomes of latent classes."""
