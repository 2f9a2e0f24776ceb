"""Rows drawn from a mixture, with the columns and missing values of the observed rows."""

from typing import Any

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import UNASSIGNED, FloatArray
from exchangeable.data.columns.schema import typed
from exchangeable.data.examples import Examples, merge_equal_rows
from exchangeable.data.observed import Observed
from exchangeable.data.rows import CountRows, TypedRows
from exchangeable.families.mixture import Mixture


def blank(like: Observed, n_rows: int) -> Observed:
    """Return rows with the same columns and no known values."""
    return _rows(like, np.full((n_rows, like.n_variables), np.nan))


def drawn_examples(
    mixture: Mixture, observed: Observed, weights: FloatArray, rng: np.random.Generator
) -> Examples:
    """Return drawn rows, as many as those observed and with the same missing values.

    Weights count as frequencies: patterns of missing values are repeated in proportion to them.
    """
    total = max(1, round(float(weights.sum())))
    values = drawn_values(mixture, observed, total, rng)
    if observed.holes is not None:
        patterns = rng.choice(observed.n_rows, size=total, p=weights / weights.sum())
        values = np.where(observed.hole_flags()[patterns], np.nan, values)
    return merge_equal_rows(_rows(observed, values), np.ones(total))[0]


def drawn_values(
    mixture: Mixture, like: Observed, n_rows: int, rng: np.random.Generator
) -> npt.NDArray[Any]:
    """Return complete rows drawn from a mixture, one class after the other."""
    shares = np.exp(mixture.log_prior)
    sizes = rng.multinomial(n_rows, shares / shares.sum())
    empty = blank(like, 1)
    parts = [
        mixture.model.draw(empty.take(np.zeros(size, dtype=np.int64)), y, rng)
        for y, size in enumerate(sizes.tolist())
        if size
    ]
    return np.concatenate(parts)


def with_holes(values: npt.NDArray[Any], holes: npt.NDArray[np.bool_], like: Observed) -> Observed:
    """Remove some entries of complete rows, on the transformed scale."""
    return _rows(like, np.where(holes, np.nan, values))


def _rows(like: Observed, values: npt.NDArray[Any]) -> Observed:
    """Return numbers, NaN if missing, as rows of the same columns."""
    if isinstance(like.ones, TypedRows | CountRows):
        return typed(np.asarray(values, dtype=np.float64), like.ones.types)
    if values.dtype.kind != "f":
        return Observed.from_symbols(values.astype(np.int8, copy=False))
    gaps = np.isnan(values)
    return Observed.from_symbols(np.where(gaps, UNASSIGNED, values).astype(np.int8))
