"""Rows that come in chunks or lie on a Dask cluster, and passes that sum over them."""
