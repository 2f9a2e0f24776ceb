"""Hybrid training: classes by their conditional likelihood, made into an ordinary mixture."""
