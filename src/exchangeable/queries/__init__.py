"""Every question, written once over a mixture."""
