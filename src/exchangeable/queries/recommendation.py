"""Recommendations: variables that are likely to be on, given those that are."""

from typing import NamedTuple

import numpy as np

from exchangeable.arrays import UNASSIGNED, FloatArray
from exchangeable.data.observed import Observed
from exchangeable.families.mixture import Mixture
from exchangeable.queries import answers

ORDERS = ("probability", "lift")


class Recommendation(NamedTuple):
    """A variable to recommend.

    Attributes
    ----------
    item : int or str
        Its number, or its name if variables have names.
    probability : float
        The probability that it is on, given the evidence.
    lift : float
        The ratio of this probability to that without evidence.
    """

    item: int | str
    probability: float
    lift: float


def ones_alone(observed: Observed) -> Observed:
    """Return rows in which only the entries that are on are known; the others are open."""
    symbols = observed.symbols()
    return Observed.from_symbols(np.where(symbols == 1, symbols, UNASSIGNED))


def recommended(
    mixture: Mixture, observed: Observed, n: int, by: str, n_jobs: int | None = None
) -> list[list[Recommendation]]:
    """Return up to n open variables of each row, best first; ties in order of number.

    Parameters
    ----------
    mixture : Mixture
        The fitted mixture.
    observed : Observed
        The evidence.
    n : int
        Number of variables.
    by : {"probability", "lift"}
        The criterion.
    n_jobs : int, optional
        Number of threads.
    """
    nothing = np.full((1, observed.n_variables), UNASSIGNED, dtype=np.int8)
    usual = answers.marginals(mixture, Observed.from_symbols(nothing), n_jobs)[0]
    chance = answers.marginals(mixture, observed, n_jobs)
    lift = chance / np.maximum(usual, np.finfo(np.float64).tiny)
    return [
        _first(chance[i], lift[i], by, np.flatnonzero(is_open), n)
        for i, is_open in enumerate(observed.hole_flags())
    ]


def _first(
    chance: FloatArray, lift: FloatArray, by: str, candidates: np.ndarray, n: int
) -> list[Recommendation]:
    value = (lift if by == "lift" else chance)[candidates]
    best = candidates[np.argsort(-value, kind="stable")[:n]]
    return [Recommendation(int(j), float(chance[j]), float(lift[j])) for j in best]
