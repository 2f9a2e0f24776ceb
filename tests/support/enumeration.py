"""Brute force: everything the library computes cleverly, computed by listing all states."""

import itertools

import numpy as np


def all_states(n_variables, n_symbols=2):
    """Every assignment, one a row."""
    return np.array(list(itertools.product(range(n_symbols), repeat=n_variables)))


def agreeing(states, evidence):
    """Which rows agree with evidence given as an array with NaN."""
    return (np.isnan(evidence) | (states == evidence)).all(axis=1)
