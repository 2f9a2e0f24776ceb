"""Tractable probabilistic models made of exchangeable variables."""

from importlib.metadata import version

__version__ = version("exchangeable")

__all__ = ["__version__"]
