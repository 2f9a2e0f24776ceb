"""Thousands of plain trees with few parameters each: their log-odds are products of two factors.

The log-odds of the components of a network come from its last layer, which is linear: as a matrix
they have a rank that is far below the number of variables, or nearly so. What is kept, and counted,
are the factors. Log-odds are made when a question first needs them.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray, IntArray, SymbolArray
from exchangeable.data.observed import Observed
from exchangeable.families.common.log_linear.scores import NO_NUMBERS
from exchangeable.families.contract import Arrays
from exchangeable.families.trees.factors import FactorArray, Factors, Natural, checked
from exchangeable.families.trees.model import TreeModel

STEPS_PER_ODDS = 100.0
"""What it takes to make a log-odds and what queries need of it, in nanoseconds."""
MOST_KEPT = 1 << 25
"""Of more log-odds none are kept: each question has those of some classes at a time made again."""


class FactoredTrees(TreeModel):
    """Plain trees, or independent variables, that keep the factors of their log-odds.

    Parameters
    ----------
    factors : Factors
        The factors, from which everything else is computed.
    """

    kind: ClassVar[str] = "factored trees"
    factors: Factors

    def __init__(self, factors: Factors) -> None:
        vars(self).update(factors=factors, log_q=NO_NUMBERS, reach=None, n_jobs=None)

    @cached_property
    def _natural(self) -> Natural:
        return Natural.of(self.factors)

    def __getattr__(self, name: str) -> Any:
        """Make natural parameters when one of them is first asked for."""
        if name in Natural._fields:
            return getattr(self._natural, name)
        raise AttributeError(f"{type(self).__name__} has no {name!r}", name=name, obj=self)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return int(self.factors.group.size)

    @property
    def n_variables(self) -> int:
        """Number of variables."""
        return self.factors.n_variables

    @property
    def n_parameters(self) -> int:
        """Number of entries of the factors."""
        return self.factors.n_numbers

    @property
    def independent(self) -> bool:
        """Whether there are no edges."""
        return not self.factors.parent.size

    @property
    def n_steps(self) -> float:
        """About how many nanoseconds the first score takes: each log-odds is made."""
        return float(self.factors.n_odds) * (STEPS_PER_ODDS + len(self.factors.points))

    def log_totals(self) -> FloatArray:
        """Return zeros: whatever log-odds are, they are those of distributions."""
        return np.zeros(self.n_classes)

    @property
    def _kept(self) -> bool:
        """Whether natural parameters are few enough to be kept."""
        return self.n_classes == 1 or self.factors.n_odds <= MOST_KEPT

    def _parts(self) -> Iterator[tuple[slice, Self]]:
        """Yield models of some classes at a time, and which these are."""
        for some in self.factors.stretches(MOST_KEPT):
            yield some, self.only(np.arange(some.start, some.stop))

    @cached_property
    def own_marginals(self) -> FloatArray | None:
        """P(x_j = 1 | y) of independent variables, None where they are not to be kept."""
        return super().own_marginals if self._kept else None

    def score(self, observed: Observed, n_jobs: int | None = None) -> FloatArray:
        """Return log P(e | y), shape (n_rows, n_classes): e are a row's known entries."""
        if self._kept:
            return super().score(observed, n_jobs)
        out = np.empty((observed.n_rows, self.n_classes))
        for some, part in self._parts():
            out[:, some] = part.score(observed, n_jobs)
        return out

    def mean_marginals(self, observed: Observed, shares: FloatArray) -> FloatArray:
        """Return Σ_y shares[row, y]·P(x_j = 1 | e, y)."""
        if self._kept:
            return super().mean_marginals(observed, shares)
        parts = (part.mean_marginals(observed, shares[:, some]) for some, part in self._parts())
        return np.asarray(sum(parts))

    def marginals(self, observed: Observed, y: int) -> FloatArray:
        """Return P(x_j = 1 | e, y), shape (n_rows, n_variables); known entries stay 0 or 1."""
        model, y = self._with(y)
        return super(FactoredTrees, model).marginals(observed, y)

    def complete(self, observed: Observed, y: int) -> tuple[SymbolArray, FloatArray]:
        """Return the most probable completion x of each row, and log P(x | y)."""
        model, y = self._with(y)
        return super(FactoredTrees, model).complete(observed, y)

    def draw(self, observed: Observed, y: int, rng: np.random.Generator) -> SymbolArray:
        """Return a completion of each row, drawn from P(x | e, y)."""
        model, y = self._with(y)
        return super(FactoredTrees, model).draw(observed, y, rng)

    def _with(self, y: int) -> tuple[Self, int]:
        """Return a model that keeps its natural parameters, and the number class y has there."""
        return (self, y) if self._kept else (self.only(np.array([y])), 0)

    def only(self, classes: IntArray) -> Self:
        """Return the model of some of the classes."""
        return type(self)(self.factors.only(classes))

    @classmethod
    def stack(cls, models: Sequence[Any]) -> Self:
        """Return the model of all classes of several models, including their groups."""
        each = [model.factors for model in models]
        rank = max(len(factors.points) for factors in each)
        loadings, points = list[FactorArray](), list[FactorArray]()
        for factors in each:
            more = rank - len(factors.points)
            loadings.append(np.insert(factors.loadings, [len(factors.points)] * more, 0, axis=2))
            points.append(np.pad(factors.points, ((0, more), (0, 0))))
        begins = np.cumsum([0, *(len(factors.loadings) for factors in each[:-1])])
        groups = [factors.group + begin for factors, begin in zip(each, begins, strict=True)]
        return cls(
            Factors(
                np.concatenate(loadings),
                np.concatenate(points, axis=1),
                np.concatenate(groups).astype(np.int32),
                np.concatenate([factors.parent for factors in each], axis=1),
            )
        )

    def encode(self) -> Arrays:
        """Return the factors as arrays for a file."""
        return dict(self.factors._asdict())

    @classmethod
    def decode(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Self:
        """Return the model of arrays that were read, everything checked."""
        return cls(checked(arrays))
