"""The search for a density: choosing the next fits, joining the results, and compressing them."""
