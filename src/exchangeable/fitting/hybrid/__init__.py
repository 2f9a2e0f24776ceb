"""Hybrid training: classes fitted by conditional likelihood, then converted to a mixture."""
