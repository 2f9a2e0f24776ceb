"""Passes of EM over packed rows, written in JAX."""
