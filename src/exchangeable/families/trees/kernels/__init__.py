"""Inner loops over forests of binary variables."""
