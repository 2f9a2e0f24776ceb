"""Queries about columns of any kind, over a mixture and rows with missing entries."""

from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray
from exchangeable.data.columns.column import Column
from exchangeable.data.columns.schema import Schema, typed, typed_rows
from exchangeable.data.observed import Observed
from exchangeable.families.contract import Normal, Normals, averaged
from exchangeable.families.mixture import Mixture
from exchangeable.queries import answers
from exchangeable.queries.distributions import Continuous, Discrete

Distribution = Discrete | Continuous


def predictives(
    mixture: Mixture, observed: Observed, j: int
) -> list[FloatArray | Normal | Normals]:
    """Return the distribution of a column in every class, given the other known entries."""
    model = mixture.model
    return [model.predictive(observed, j, y) for y in range(model.n_classes)]


def distributions(
    mixture: Mixture, observed: Observed, posterior: FloatArray, j: int, column: Column
) -> list[Distribution]:
    """Return the distribution of a column given the other known entries of every row."""
    each = predictives(mixture, observed, j)
    found = averaged(each, posterior)
    if isinstance(found, Normals):
        return [Continuous(*line, column.transform) for line in zip(*found, strict=True)]
    shares = found / found.sum(axis=1, keepdims=True)
    levels = column.levels or tuple(range(shares.shape[1]))
    return [Discrete(levels, line) for line in shares]


def joint(
    mixture: Mixture, schema: Schema, observed: Observed, variables: npt.NDArray[np.int64]
) -> list[Discrete]:
    """Return the joint distribution of several columns with few values, for every row."""
    columns = [schema.columns[j] for j in variables]
    endless = next((c for c in columns if not c.levels), None)
    if endless is not None:
        raise ValueError(
            f"query names the {endless.kind} column {endless.name!r} among others; ask for it "
            "alone, or for columns with levels together"
        )
    states = np.array(list(product(*(range(len(c.levels)) for c in columns))), dtype=np.float64)
    if len(states) > answers.MAX_STATES:
        raise ValueError(f"a query is for at most {answers.MAX_STATES} states, got {len(states)}")
    names = tuple(product(*(c.levels for c in columns)))
    values, found = typed_rows(observed).values, []
    for row in values:
        copies = np.tile(row, (len(states), 1))
        copies[:, variables] = states
        log_p = mixture.log_posterior(typed(copies, schema.types))[1]
        answers.check_possible(np.array([log_p.max()]))
        shares = np.exp(log_p - log_p.max())
        found.append(Discrete(names, shares / shares.sum()))
    return found


def best(
    mixture: Mixture, observed: Observed, classes: npt.NDArray[np.int64]
) -> tuple[FloatArray, Any, FloatArray]:
    """Return the most probable completion of every row, as numbers, its class, and the gap.

    The gap bounds how much higher log P of another completion could be; it is 0 at the maximum.
    """
    found = mixture.model.most_probable(observed, mixture.log_prior, classes)
    answers.check_possible(found.log_prob)
    rows = np.asarray(found.rows, dtype=np.float64)
    return rows, found.classes, np.maximum(found.bound - found.log_prob, 0.0)


def drawn(mixture: Mixture, observed: Observed, rng: np.random.Generator) -> tuple[FloatArray, Any]:
    """Return a draw from P(x, y | e) for every row: a completion, as numbers, and its class."""
    classes = answers.draw_classes(answers.class_posterior(mixture, observed), rng)
    rows = np.array(typed_rows(observed).values)
    for y in np.unique(classes):
        members = np.flatnonzero(classes == y)
        rows[members] = mixture.model.draw(observed.take(members), int(y), rng)
    return rows, classes
