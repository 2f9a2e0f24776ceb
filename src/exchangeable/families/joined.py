"""One mixture of models of several families: its classes are those of all, one after another.

Averages of different families err in different ways, so that a mixture of them is better than any.
How much each counts is fitted to held-out rows, by EM of a handful of numbers.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from exchangeable.arrays import FloatArray, IntArray, SymbolArray, normalize_log
from exchangeable.data.examples import Examples
from exchangeable.data.observed import Observed
from exchangeable.families.common.expectation import row_log_likelihoods
from exchangeable.families.hidden_trees.model import HiddenModel
from exchangeable.families.urns.family import DensityModel
from exchangeable.families.urns.model import UrnModel
from exchangeable.partitions import Partition

LEAST_SHARE = 0.02
"""A part that counts for less is left out."""
STEPS = 200
"""Of the EM that fits the shares."""


@dataclass(frozen=True)
class JoinedModel:
    """Models of the same variables, whose classes follow one another.

    Attributes
    ----------
    parts : list of models
        The models, of any families.
    """

    parts: list[DensityModel]

    @property
    def n_classes(self) -> int:
        """Number of classes of all parts."""
        return sum(part.n_classes for part in self.parts)

    @property
    def n_variables(self) -> int:
        """Number of variables."""
        return self.parts[0].n_variables

    @property
    def n_parameters(self) -> int:
        """Number of free parameters, but for the probabilities of the classes."""
        return sum(part.n_parameters for part in self.parts)

    @property
    def partitions(self) -> list[Partition]:
        """The blocks of each class."""
        return self._listed(lambda part: part.partitions)

    @property
    def slope(self) -> FloatArray:
        """Logarithm of the weight of each variable in each class, 0 where a part has no weights."""
        slopes = [
            np.zeros((part.n_variables, part.n_classes))
            if isinstance(part, HiddenModel)
            else part.slope
            for part in self.parts
        ]
        return np.concatenate(slopes, axis=1)

    def only(self, classes: IntArray) -> "JoinedModel":
        """Return the model of some of the classes, in the order they have here."""
        kept, begin = [], 0
        for part in self.parts:
            end = begin + part.n_classes
            mine = classes[(classes >= begin) & (classes < end)] - begin
            if mine.size:
                kept.append(part.only(mine))
            begin = end
        return JoinedModel(kept)

    def count_probabilities(self) -> list[list[FloatArray]]:
        """Return q(l | y) for every class, block and count l."""
        return self._listed(lambda part: part.count_probabilities())

    def edges(self) -> list[IntArray]:
        """Return, for each class, the (variable or block, parent) of each edge of its tree."""
        nothing = np.empty((0, 2), dtype=np.int64)
        return self._listed(
            lambda part: [nothing] * part.n_classes if isinstance(part, UrnModel) else part.edges()
        )

    def score(self, observed: Observed, n_jobs: int | None = None) -> FloatArray:
        """Return log P(e | y), shape (n_rows, n_classes): e are a row's known entries."""
        return np.concatenate([part.score(observed, n_jobs) for part in self.parts], axis=1)

    def marginals(self, observed: Observed, y: int) -> FloatArray:
        """Return P(x_j = 1 | e, y), shape (n_rows, n_variables); known entries stay 0 or 1."""
        part, inner = self._class(y)
        return part.marginals(observed, inner)

    def complete(self, observed: Observed, y: int) -> tuple[SymbolArray, FloatArray]:
        """Return the completion x of each row that its part finds, and log P(x | y)."""
        part, inner = self._class(y)
        return part.complete(observed, inner)

    def draw(self, observed: Observed, y: int, rng: np.random.Generator) -> SymbolArray:
        """Return a completion of each row, drawn from P(x | e, y)."""
        part, inner = self._class(y)
        return part.draw(observed, inner, rng)

    def _listed(self, entries: Callable[[DensityModel], list[Any]]) -> list[Any]:
        """Return the entries of the classes of all parts."""
        return list(chain.from_iterable(entries(part) for part in self.parts))

    def _class(self, y: int) -> tuple[DensityModel, int]:
        """Return the part of a class, and the number that the class has there."""
        for part in self.parts:
            if y < part.n_classes:
                return part, y
            y -= part.n_classes
        raise IndexError(f"class {y} of none")


def join(
    mixtures: Sequence[tuple[DensityModel, FloatArray]],
    valid: Examples,
    n_jobs: int | None = None,
) -> tuple[DensityModel | JoinedModel, FloatArray, FloatArray]:
    """Make one mixture of several, each with the share that suits the held-out rows.

    Parameters
    ----------
    mixtures : sequence of (model, log_prior)
        The mixtures.
    valid : Examples
        Rows held out.
    n_jobs : int, optional
        Number of threads.

    Returns
    -------
    model, log_prior, shares
        The mixture, and how much each of the given ones counts; 0 for one that is left out.
    """
    found = [row_log_likelihoods(*mixture, valid, n_jobs) for mixture in mixtures]
    shares = fit_shares(np.stack(found, axis=1), valid.weights)
    kept = [
        (model, log_prior + np.log(share))
        for (model, log_prior), share in zip(mixtures, shares, strict=True)
        if share > 0
    ]
    models, log_priors = zip(*kept, strict=True)
    model = models[0] if len(kept) == 1 else JoinedModel(list(models))
    return model, np.concatenate(log_priors), shares


def fit_shares(log_likelihoods: FloatArray, weights: FloatArray) -> FloatArray:
    """Return how much each model counts in the best mixture of them, small shares left out.

    Parameters
    ----------
    log_likelihoods : array of shape (n_rows, n_models)
        What each model gives to each row.
    weights : array of shape (n_rows,)
        The rows' weights.

    Examples
    --------
    >>> log_likelihoods = np.log([[0.9, 0.1, 0.1], [0.1, 0.9, 0.1], [0.1, 0.9, 0.1]])
    >>> fit_shares(log_likelihoods, np.ones(3)).round(2).tolist()
    [0.29, 0.71, 0.0]
    """
    kept = np.arange(log_likelihoods.shape[1])
    while True:
        log_shares = np.full(kept.size, -np.log(kept.size))
        for _ in range(STEPS):
            posterior = np.exp(normalize_log(log_likelihoods[:, kept] + log_shares, log_shares)[0])
            totals = np.maximum(weights @ posterior, 1e-300)
            log_shares = np.log(totals / totals.sum())
        enough = np.exp(log_shares) >= LEAST_SHARE
        if enough.all():
            break
        kept = kept[enough]
    shares = np.zeros(log_likelihoods.shape[1])
    shares[kept] = np.exp(log_shares)
    return shares
