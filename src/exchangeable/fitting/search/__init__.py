"""The search for a density: what is fitted next, what was found, how it is joined or compressed."""
