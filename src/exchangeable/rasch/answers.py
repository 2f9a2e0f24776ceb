"""Answers of persons to items: checked, and grouped by answered items and by score."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray, IntArray, check_sample_weight, is_sparse
from exchangeable.data.containers import as_matrix
from exchangeable.families.items import Answered, items_of

BoolArray = npt.NDArray[np.bool_]
MOST_ANSWERS = 100
"""An item with more answers than this is probably a measurement given by mistake."""


@dataclass(frozen=True)
class Answers:
    """Answers of persons to the items of a test.

    Attributes
    ----------
    names : tuple of str
        Names of the items.
    values : array of shape (n_persons, n_items)
        Answers 0, 1, …; −1 if missing.
    weights : array of shape (n_persons,)
        Weight of each person.
    highest : array of shape (n_items,)
        The highest answer of each item.
    """

    names: tuple[str, ...]
    values: npt.NDArray[np.int8]
    weights: FloatArray
    highest: IntArray

    @cached_property
    def known(self) -> npt.NDArray[np.bool_]:
        """Which answers are not missing."""
        return np.asarray(self.values >= 0)

    @cached_property
    def scores(self) -> IntArray:
        """The sum of each person's answers."""
        return np.asarray(np.maximum(self.values, 0).sum(axis=1, dtype=np.int64))

    @property
    def numbers(self) -> FloatArray:
        """The answers as floating-point numbers, NaN if missing."""
        return np.where(self.known, self.values, np.nan)

    @property
    def informative(self) -> npt.NDArray[np.bool_]:
        """Who has neither the lowest nor the highest possible score, and so is informative."""
        missing = self.known.size - np.count_nonzero(self.known)
        possible = self.known @ self.highest if missing else self.highest.sum()
        return np.asarray((self.scores > 0) & (self.scores < possible) & (self.weights > 0))

    def only(self, persons: BoolArray | None = None, items: BoolArray | None = None) -> "Answers":
        """Return the answers of some persons to some items."""
        names, values, weights, highest = self.names, self.values, self.weights, self.highest
        if items is not None and not np.all(items):
            kept = np.arange(highest.size)[items]
            names, highest = tuple(names[j] for j in kept), highest[kept]
            values = values[:, kept]
        if persons is not None and not np.all(persons):
            values, weights = values[persons], weights[persons]
        return Answers(names, values, weights, highest)

    def counts(self) -> tuple[FloatArray, FloatArray]:
        """Return the weight of the persons at each step, and of those at answer 0 of its item."""
        lines = [
            np.bincount(column, self.weights, top + 2)[1:]  # missing answers come first
            for column, top in zip((self.values.T + np.int8(1)), self.highest, strict=True)
        ]
        below = np.repeat([line[0] for line in lines], self.highest)
        return np.concatenate([line[1:] for line in lines]), below


def read_answers(
    X: Any, names: Any = None, sample_weight: Any = None, highest: IntArray | None = None
) -> Answers:
    """Return checked answers, or raise an error.

    Parameters
    ----------
    X : array-like of shape (n_persons, n_items)
        Whole numbers from 0, or booleans; NaN or None for missing answers.
    names : sequence of str, optional
        Names of the items.
    sample_weight : array-like, optional
        Weight of each person.
    highest : array, optional
        The highest possible answers; by default the highest that occur.
    """
    numbers = _as_matrix(X)
    n_persons, n_items = numbers.shape
    known = tuple(f"x{j}" for j in range(n_items)) if names is None else tuple(map(str, names))
    limit = np.full(n_items, MOST_ANSWERS) if highest is None else highest
    with np.errstate(invalid="ignore"):  # from NaN
        values = numbers.astype(np.int8)
    holes = np.isnan(numbers) if numbers.dtype.kind == "f" else np.zeros((1, n_items), bool)
    if ((values != numbers) & ~holes).any() or (values < 0).any() or (values > limit).any():
        bad = ~holes & ((numbers < 0) | (numbers > limit) | (numbers != np.floor(numbers)))
        person, item = np.argwhere(bad)[0]
        raise ValueError(
            f"the answer of row {person} to item {known[item]!r} is {numbers[person, item]:g}; "
            f"answers must be whole numbers from 0 to {limit[item]}, and NaN where there is none"
        )
    if holes.any():
        values[holes] = -1
    tops = values.max(axis=0).astype(np.int64)
    weights = check_sample_weight(sample_weight, n_persons)
    return Answers(known, values, weights, np.maximum(tops, 1) if highest is None else highest)


def _as_matrix(X: Any) -> npt.NDArray[Any]:
    try:
        matrix = as_matrix(X)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"answers cannot be read ({error}); write them as 0, 1, 2, …, and NaN where there is "
            "none"
        ) from None
    values = matrix.toarray() if is_sparse(matrix) else np.asarray(matrix)
    if values.dtype.kind not in "biuf":
        raise ValueError(f"X of {type(X).__name__} holds no numbers; write answers as 0, 1, 2, …")
    if values.ndim != 2 or not values.size:
        raise ValueError(
            f"X has the shape {values.shape}; expected one row per person, one column per item"
        )
    return values


def sort_answers(answers: Answers) -> Answered:
    """Return the number of persons with each pattern of answered items and each score."""
    known = answers.known
    patterns = np.ones((1, known.shape[1]), dtype=bool)
    of_person = np.zeros(len(known), dtype=np.int64)
    if not known.all():
        packed = np.packbits(known, axis=1)
        lines = np.ascontiguousarray(packed).view(np.dtype((np.void, packed.shape[1]))).ravel()
        _, first, place = np.unique(lines, return_index=True, return_inverse=True)
        patterns, of_person = known[first], place.ravel()
    width = int(answers.highest.sum()) + 1
    keys = of_person * width + answers.scores
    found, place = np.unique(keys, return_inverse=True)
    weights = np.bincount(place.ravel(), answers.weights).astype(np.float64)
    begins = np.searchsorted(found // width, np.arange(len(patterns) + 1))
    return Answered(patterns, begins.astype(np.int64), found % width, weights)


def step_names(names: tuple[str, ...], highest: IntArray) -> list[str]:
    """Return names of the steps: the item, and the answer if there are several.

    >>> step_names(("a", "b"), np.array([1, 2]))
    ['a', 'b: 1', 'b: 2']
    """
    listed = []
    for j in np.unique(items_of(highest)):
        top = int(highest[j])
        listed += [names[j]] if top == 1 else [f"{names[j]}: {v}" for v in range(1, top + 1)]
    return listed
