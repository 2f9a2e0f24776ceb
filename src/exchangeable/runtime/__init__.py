"""Threads, bits, and functions that compile to vector instructions."""
