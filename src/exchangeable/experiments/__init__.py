"""The experiments of ``exchangeable reproduce``: cells to run, their storage, and the pages."""
