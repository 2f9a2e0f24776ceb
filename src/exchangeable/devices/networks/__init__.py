"""Training of networks that decode components, written in JAX."""
