"""Answers of persons to items: checked, and sorted by which items were answered and by score."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray, IntArray, check_sample_weight, is_sparse
from exchangeable.families.items import Answered, items_of

MOST_ANSWERS = 100
"""An item with more answers is taken to be a measurement by mistake."""


@dataclass(frozen=True)
class Answers:
    """Answers of persons to the items of a test.

    Attributes
    ----------
    names : tuple of str
        What the items are called.
    values : array of shape (n_persons, n_items)
        Answers 0, 1, …; NaN where there is none.
    weights : array of shape (n_persons,)
        How much each person counts.
    highest : array of shape (n_items,)
        The highest answer of each item.
    """

    names: tuple[str, ...]
    values: FloatArray
    weights: FloatArray
    highest: IntArray

    @property
    def scores(self) -> FloatArray:
        """The sum of each person's answers."""
        return np.asarray(np.nansum(self.values, axis=1))

    @property
    def possible(self) -> FloatArray:
        """The highest score that each person could have had, with the items answered."""
        return np.asarray(~np.isnan(self.values) @ self.highest.astype(np.float64))

    @property
    def informative(self) -> npt.NDArray[np.bool_]:
        """Whose score is neither the lowest nor the highest possible: others tell nothing."""
        scores = self.scores
        return np.asarray((scores > 0) & (scores < self.possible) & (self.weights > 0))

    def only(
        self, persons: npt.NDArray[Any] | None = None, items: npt.NDArray[Any] | None = None
    ) -> "Answers":
        """Return the answers of some persons, and to some items."""
        names, values, weights, highest = self.names, self.values, self.weights, self.highest
        if items is not None:
            kept = np.arange(highest.size)[items]
            names, highest = tuple(names[j] for j in kept), highest[kept]
            values = values[:, kept]
        if persons is not None:
            values, weights = values[persons], weights[persons]
        return Answers(names, values, weights, highest)

    def counts(self) -> FloatArray:
        """Return the weight of the persons at each step."""
        tops = enumerate(self.highest.tolist())
        return np.array(
            [self.weights @ (self.values[:, j] == v) for j, top in tops for v in range(1, top + 1)]
        )


def read_answers(
    X: Any, names: Any = None, sample_weight: Any = None, highest: IntArray | None = None
) -> Answers:
    """Return checked answers, refusing what are none.

    Parameters
    ----------
    X : array-like of shape (n_persons, n_items)
        Whole numbers from 0, or truth values; NaN or None where there is no answer.
    names : sequence of str, optional
        What the items are called.
    sample_weight : array-like, optional
        How much each person counts.
    highest : array, optional
        The highest answers that there can be; by default those that occur.
    """
    values = _as_matrix(X)
    n_persons, n_items = values.shape
    known = tuple(f"x{j}" for j in range(n_items)) if names is None else tuple(map(str, names))
    bad = np.argwhere(~np.isnan(values) & ((values < 0) | (values != np.floor(values))))
    if bad.size:
        person, item = bad[0]
        raise ValueError(
            f"the answer of row {person} to item {known[item]!r} is {values[person, item]:g}; "
            "answers must be whole numbers 0, 1, 2, …, and NaN where there is none"
        )
    tops = np.nanmax(values, axis=0, initial=0.0).astype(np.int64)
    limit = np.full(n_items, MOST_ANSWERS) if highest is None else highest
    above = np.flatnonzero(tops > limit)
    if above.size:
        item = int(above[0])
        reason = "more than an item can have" if highest is None else f"above {limit[item]}"
        raise ValueError(
            f"item {known[item]!r} has an answer of {tops[item]}, {reason}; answers are numbered "
            "from 0"
        )
    weights = check_sample_weight(sample_weight, n_persons)
    return Answers(known, values, weights, np.maximum(tops, 1) if highest is None else highest)


def _as_matrix(X: Any) -> FloatArray:
    if is_sparse(X):
        X = X.toarray()
    if hasattr(X, "to_numpy") and hasattr(X, "columns"):
        X = X.to_numpy()
    try:
        values = np.array(X, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"X holds something that is not a number ({error}); write answers as 0, 1, 2, …, and "
            "NaN where there is none"
        ) from None
    if values.ndim != 2 or not values.size:
        raise ValueError(
            f"X has the shape {values.shape}; expected one row per person, one column per item"
        )
    return values


def sort_answers(answers: Answers) -> Answered:
    """Return how many persons have each pattern of answered items and each score."""
    known = ~np.isnan(answers.values)
    patterns = np.ones((1, known.shape[1]), dtype=bool)
    of_person = np.zeros(len(known), dtype=np.int64)
    if not known.all():
        packed = np.packbits(known, axis=1)
        lines = np.ascontiguousarray(packed).view(np.dtype((np.void, packed.shape[1]))).ravel()
        _, first, place = np.unique(lines, return_index=True, return_inverse=True)
        patterns, of_person = known[first], place.ravel()
    width = int(answers.highest.sum()) + 1
    keys = of_person * width + answers.scores.astype(np.int64)
    found, place = np.unique(keys, return_inverse=True)
    weights = np.bincount(place.ravel(), answers.weights).astype(np.float64)
    begins = np.searchsorted(found // width, np.arange(len(patterns) + 1))
    return Answered(patterns, begins.astype(np.int64), found % width, weights)


def step_names(names: tuple[str, ...], highest: IntArray) -> list[str]:
    """Return what the steps are called: the item, and the answer where there are several.

    >>> step_names(("a", "b"), np.array([1, 2]))
    ['a', 'b: 1', 'b: 2']
    """
    listed = []
    for j in np.unique(items_of(highest)):
        top = int(highest[j])
        listed += [names[j]] if top == 1 else [f"{names[j]}: {v}" for v in range(1, top + 1)]
    return listed
