"""Declaring, compiling and caching kernels, and their building blocks."""
