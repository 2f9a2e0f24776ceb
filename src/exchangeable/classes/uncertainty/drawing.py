"""Rows drawn from a mixture, like those that were observed."""

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
    """Return rows of the same columns of which nothing is known."""
    return _rows(like, np.full((n_rows, like.n_variables), np.nan))


def drawn_examples(
    mixture: Mixture, observed: Observed, weights: FloatArray, rng: np.random.Generator
) -> Examples:
    """Return rows drawn from a mixture, as many and with the same holes as those observed.

    Weights count as frequencies: rows with holes are repeated in proportion to them.
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
    """Return complete rows drawn from a mixture, those of a class one after the other."""
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
    """Return complete rows of which some entries are not known, on the transformed scale."""
    return _rows(like, np.where(holes, np.nan, values))


def _rows(like: Observed, values: npt.NDArray[Any]) -> Observed:
    """Return numbers, NaN for holes, as rows of the same columns."""
    if isinstance(like.ones, TypedRows | CountRows):
        return typed(np.asarray(values, dtype=np.float64), like.ones.types)
    if values.dtype.kind != "f":
        return Observed.from_symbols(values.astype(np.int8, copy=False))
    gaps = np.isnan(values)
    return Observed.from_symbols(np.where(gaps, UNASSIGNED, values).astype(np.int8))
