"""Blocks with a user-defined statistic in place of the number of ones."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import gammaln

from exchangeable import statistics
from exchangeable.arrays import FloatArray, IntArray
from exchangeable.statistics import Count, Statistic

BY_NAME: dict[str, type[Any]] = {
    "count": Count,
    "first and last": statistics.FirstAndLast,
    "longest run": statistics.LongestRun,
    "runs": statistics.Runs,
    "second-order transitions": statistics.SecondOrderTransitions,
    "transitions": statistics.Transitions,
}
"""Statistics that only need the number of variables, by their names."""


@dataclass(frozen=True)
class StatisticBlock:
    """Variables that are exchangeable with respect to a statistic.

    Attributes
    ----------
    variables : array
        Their numbers, in the order in which the statistic reads them.
    statistics : tuple of Statistic
        The statistic; or several, one of which is chosen by the evidence when the model is fitted.
    """

    variables: IntArray
    statistics: tuple[Statistic, ...]

    @property
    def key(self) -> tuple[Any, ...]:
        """Distinguishes it from other blocks of the same rows."""
        return (self.variables.tobytes(), *(id(statistic) for statistic in self.statistics))


def has_statistics(blocks: Any) -> bool:
    """Whether any block given by a user comes with a statistic."""
    return isinstance(blocks, list | tuple) and any(_is_pair(block) for block in blocks)


def _is_pair(block: Any) -> bool:
    return (
        isinstance(block, tuple)
        and len(block) == 2
        and not isinstance(block[0], str)
        and isinstance(block[0], Iterable)
    )


def statistic_blocks(
    blocks: Sequence[Any], n_variables: int, names: Sequence[str] | None
) -> tuple[list[StatisticBlock], IntArray]:
    """Return the blocks given by a user, and the remaining variables.

    A block is a pair of variables and a statistic; a list of variables alone is counted.
    """
    number = {name: position for position, name in enumerate(() if names is None else names)}
    checked, taken = [], np.zeros(n_variables, dtype=np.bool_)
    for b, block in enumerate(blocks):
        listed, wanted = block if _is_pair(block) else (block, "count")
        variables = _numbers(listed, b, number, n_variables)
        if taken[variables].any() or np.unique(variables).size < variables.size:
            twice = next(v for v in variables if taken[v] or (variables == v).sum() > 1)
            raise ValueError(f"blocks name the variable {twice} twice")
        taken[variables] = True
        several = wanted if isinstance(wanted, list) else [wanted]
        if not several:
            raise ValueError(f"block {b} has an empty list of statistics")
        made = tuple(_statistic(each, b, variables.size) for each in several)
        checked.append(StatisticBlock(variables, made))
    return checked, np.flatnonzero(~taken)


def _numbers(listed: Any, b: int, number: dict[str, int], n_variables: int) -> IntArray:
    """Return the numbers of a block's variables."""
    if isinstance(listed, str) or not isinstance(listed, Iterable):
        raise TypeError(f"block {b} is {listed!r}; expected a list of variables")
    variables = []
    for variable in listed:
        if isinstance(variable, str):
            if variable not in number:
                raise ValueError(f"block {b} names {variable!r}, which is not a feature of X")
            variables.append(number[variable])
        elif isinstance(variable, int | np.integer) and 0 <= variable < n_variables:
            variables.append(int(variable))
        else:
            raise ValueError(
                f"block {b} names the variable {variable!r}; expected numbers from 0 to "
                f"{n_variables - 1}"
            )
    if not variables:
        raise ValueError(f"block {b} is empty; a block needs at least one variable")
    return np.array(variables, dtype=np.int64)


def _statistic(wanted: Any, b: int, n_variables: int) -> Statistic:
    """Return the statistic specified by a user for a block."""
    if isinstance(wanted, str):
        if wanted not in BY_NAME:
            raise ValueError(
                f"block {b} has the statistic {wanted!r}; expected one of {', '.join(BY_NAME)}, or "
                "a Statistic"
            )
        wanted = BY_NAME[wanted]
    if isinstance(wanted, type) and issubclass(wanted, Statistic):
        wanted = wanted(n_variables)
    if not isinstance(wanted, Statistic):
        raise TypeError(f"block {b} has the statistic {wanted!r}; expected a Statistic or its name")
    if wanted.n_variables != n_variables or wanted.n_symbols != 2:
        raise ValueError(
            f"block {b} has {n_variables} variables, but {wanted!r} reads {wanted.n_variables} "
            f"with {wanted.n_symbols} values each; expected {n_variables} with 2"
        )
    return wanted


def log_evidence(histograms: FloatArray, log_sizes: FloatArray, prior: float) -> float:
    """Return the log-evidence of a statistic, summed over classes.

    Parameters
    ----------
    histograms : array of shape (n_values, n_classes)
        Weight of the rows of each class with each value of T.
    log_sizes : array of shape (n_values,)
        Logarithm of the number of assignments with each value.
    prior : float
        Parameter of the Dirichlet prior of each value's probability.

    Examples
    --------
    Two rows with the same T, each value of which has two members:

    >>> round(np.exp(-log_evidence(np.array([[2.0], [0.0]]), np.log([2.0, 2.0]), prior=1.0)), 6)
    np.float64(12.0)
    """
    n_values = log_sizes.size
    totals = histograms.sum(axis=0)
    shares = gammaln(n_values * prior) - gammaln(n_values * prior + totals)
    values = (gammaln(histograms + prior) - gammaln(prior)).sum(axis=0)
    return float((shares + values - log_sizes @ histograms).sum())
