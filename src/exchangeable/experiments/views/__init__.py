"""Finished cells as tables, charts and pages."""
