"""Rows whose blocks are worth learning, and what fits to them are compared by."""

from typing import Any

import numpy as np


def make_rows(n_rows: int = 1200, n_variables: int = 40) -> tuple[Any, Any]:
    """Return rows of three kinds, and their kinds."""
    rng = np.random.default_rng(5)
    kind = rng.integers(0, 3, n_rows)
    means = np.repeat(rng.random((3, n_variables // 5)), 5, axis=1) * 0.8 + 0.1
    tilt = np.clip(2 * rng.random((n_rows, 1)), 0.3, 1.2)
    return (rng.random((n_rows, n_variables)) < means[kind] * tilt).astype(np.uint8), kind


def assert_same_model(one: Any, other: Any) -> None:
    """Check that two estimators have the same blocks and, to rounding, the same parameters."""
    for a, b in zip(one._model.partitions, other._model.partitions, strict=True):
        np.testing.assert_array_equal(a.labels, b.labels)
    for a, b in zip(one._model.histograms, other._model.histograms, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(
        one._model.made_tables.values, other._model.made_tables.values, rtol=1e-9, atol=1e-9
    )
    np.testing.assert_allclose(one._log_prior, other._log_prior, rtol=1e-12)


def cut(X: Any, sizes: tuple[int, ...] = (300, 1, 499, 400)) -> list[Any]:
    """Return rows in parts."""
    ends = np.cumsum(sizes)
    return [X[end - size : end] for size, end in zip(sizes, ends, strict=True)]


class Chunks:
    """An object with chunks(), as a user writes it; `passes` yields the parts of each pass."""

    def __init__(self, *passes: list[Any]) -> None:
        self.passes, self.number = passes, -1

    def chunks(self) -> Any:
        self.number += 1
        return iter(self.passes[min(self.number, len(self.passes) - 1)])
