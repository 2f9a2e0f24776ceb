"""Passes over rows on an accelerator, written in JAX; nothing here imports the other rooms."""
