"""The density benchmark: its cells, its command, and the page about it."""
