"""Answers drawn from Rasch and partial credit models, for tests."""

from typing import Any

import numpy as np


def draw_answers(
    thresholds: list[Any], abilities: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Return answers of persons to items with the given thresholds, as floating-point numbers."""
    columns = []
    for own in thresholds:
        steps = np.atleast_1d(own)
        scores = np.arange(steps.size + 1)
        credits = np.concatenate([[0.0], -np.cumsum(steps)])
        shares = np.exp(credits + np.outer(abilities, scores))
        heights = np.cumsum(shares / shares.sum(axis=1, keepdims=True), axis=1)
        columns.append((rng.random((abilities.size, 1)) > heights).sum(axis=1))
    return np.stack(columns, axis=1).astype(float)


def with_holes(
    X: np.ndarray, share: float, rng: np.random.Generator, n_patterns: int | None = None
) -> np.ndarray:
    """Return answers some of which are missing, in a few patterns if a number is given."""
    hidden = rng.random(X.shape) < share
    if n_patterns is not None:
        hidden = hidden[rng.integers(0, n_patterns, size=len(X))]
    return np.where(hidden, np.nan, X)
