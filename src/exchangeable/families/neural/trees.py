"""Trees as components: outputs are log-odds of each variable given its parent off, and on.

A few trees are shared by all components: every so many points have the same one, and a part of the
network's last layer of their own.
"""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray
from exchangeable.devices.head import FEW_POINTS, LARGEST, Head
from exchangeable.families.contract import Model
from exchangeable.families.mixture import Mixture
from exchangeable.families.neural.components import Component
from exchangeable.families.problem import Problem
from exchangeable.families.trees.family import TreeFamily
from exchangeable.families.trees.model import TreeModel
from exchangeable.structure.proposals import Proposal

POOLING, SHRINKAGE = 8.0, 32.0
"""Pseudo-rows of the mixture of trees that training begins with."""
LEAST_ALPHA = 1e-6
EM_STEPS = 8
BATCH_WITH_HOLES = 64
"""Rows with holes need messages of every row, point and variable."""
ParentArray = npt.NDArray[np.int32]


class Trees(Component):
    """Trees in each component; see the module."""

    most_rows = BATCH_WITH_HOLES

    def __init__(self, model: TreeModel, n_columns: int, holes: bool) -> None:
        self.n_variables, k = model.slope.shape
        self.head = Head("conditional odds", n_columns, holes, groups=k)
        self.parents = model.parent
        off, on = np.zeros((2, k, n_columns))
        off[:, : self.n_variables], on[:, : self.n_variables] = log_odds(model)
        self.bias = np.concatenate([off, on], axis=1)
        above = model.parent.T
        wide = np.full((k, n_columns), n_columns, dtype=np.int32)
        wide[:, : self.n_variables] = np.where(above == self.n_variables, n_columns, above)
        self.constants = {
            "real": (np.arange(n_columns) < self.n_variables).astype(np.float32),
            "parent": wide,
            "levels": [levels(parent) for parent in wide] if holes else [],
        }

    def model(self, outputs: FloatArray) -> Model:
        """Return trees in natural parameters."""
        n, half = self.n_variables, outputs.shape[1] // 2
        off = np.clip(outputs[:, :n], -LARGEST, LARGEST)
        on = np.clip(outputs[:, half : half + n], -LARGEST, LARGEST)
        parent = np.resize(self.parents.T, (len(outputs), n))
        edge = parent < n
        pair = np.where(edge, on - off, 0.0)
        below = np.where(edge, np.logaddexp(0.0, off) - np.logaddexp(0.0, on), 0.0)
        slope = np.concatenate([off, np.zeros((len(off), 1))], axis=1)
        np.add.at(slope, (np.arange(len(slope))[:, None], parent), below)
        return TreeModel.make(
            -np.logaddexp(0.0, off).sum(axis=1),
            np.ascontiguousarray(slope[:, :n].T),
            np.ascontiguousarray(parent.T.astype(np.int32)),
            np.ascontiguousarray(pair.T),
        )


def n_trees(wanted: int, n_points: int, n_components: int) -> int:
    """Return how many trees there are: as many as wanted, if that divides points and components.

    >>> n_trees(4, 1024, 8192), n_trees(4, 9, 9), n_trees(4, 1024, 8191), n_trees(4, 3, 3)
    (4, 3, 1, 1)
    """
    common = math.gcd(n_points, n_components)
    if n_components < FEW_POINTS:  # points are filled up
        return 1
    return max(count for count in range(1, wanted + 1) if common % count == 0)


def first_trees(problem: Problem, data: Any, count: int, rng: np.random.Generator) -> TreeModel:
    """Return a small mixture of trees, fitted by a few steps of EM."""
    small = replace(
        problem, n_components=count, pooling=POOLING, shrinkage=SHRINKAGE, log_prior=None
    )
    small = replace(small, alpha=max(problem.alpha, LEAST_ALPHA))
    if problem.varied:  # runs to be averaged should have different trees
        rows = problem.rows
        drawn = rows.weights * rng.standard_exponential(rows.weights.size)
        small = replace(small, examples=replace(rows, weights=drawn))
        data = replace(data, examples=small.rows)
    family = TreeFamily(small)
    sums: Any = family.start(data, "rows", rng)
    mixture = family.first(data, sums, Proposal([]), None, rng)
    for step in range(1, EM_STEPS + 1):
        problem.clock.check()
        sums = data.expect(mixture)
        models = family.following(data, mixture.model, sums, step)
        mixture = Mixture(models[0], family.log_shares(sums.totals))
    model: Any = mixture.model
    return TreeModel.make(model.base, model.slope, model.parent, model.pair)


def log_odds(model: TreeModel) -> tuple[FloatArray, FloatArray]:
    """Return the log-odds of each variable given its parent off, and on, by tree."""
    n, k = model.slope.shape
    off, on = np.zeros((2, k, n))
    for y in range(k):
        parent, slope = model.parent[:, y], model.slope[:, y].copy()
        for nodes in levels(parent):
            off[y, nodes], on[y, nodes] = slope[nodes], slope[nodes] + model.pair[nodes, y]
            above, real = parent[nodes], parent[nodes] < n
            gain = np.logaddexp(0.0, on[y, nodes]) - np.logaddexp(0.0, off[y, nodes])
            np.add.at(slope, above[real], gain[real])
    return off, on


def levels(parent: npt.NDArray[Any]) -> list[npt.NDArray[np.int32]]:
    """Return the nodes of a forest by their distance from the root, the farthest first.

    >>> [level.tolist() for level in levels(np.array([3, 0, 0]))]
    [[1, 2], [0]]
    """
    n = parent.size
    depth, above = np.zeros(n, dtype=np.int64), np.append(parent, n).astype(np.int64)
    at = above[:n]
    while (at < n).any():
        depth += at < n
        at = above[at]
    return [np.flatnonzero(depth == d).astype(np.int32) for d in range(depth.max(), -1, -1)]
