"""Families of trees over the variables: mixtures of Chow-Liu trees, and weighted trees."""

from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray
from exchangeable.data.examples import Examples
from exchangeable.families.common import forest_kernels, forests
from exchangeable.families.common.expectation import class_pairs
from exchangeable.families.common.log_linear import Sums
from exchangeable.families.common.pool import Pool
from exchangeable.families.trees import gain_kernels, polynomials
from exchangeable.families.trees.model import ParentArray, TreeModel
from exchangeable.families.urns.family import DensityModel, UrnFamily, centred, pooled_means
from exchangeable.families.urns.model import UrnModel
from exchangeable.families.urns.polynomials import expected_ones
from exchangeable.runtime.threads import run

LEAST = 1e-12
"""No cell of a pair is less probable than this."""
DAMPING = 0.5
LARGEST_STEP = 2.0
"""Of a natural parameter of a weighted tree, before damping."""
LARGEST_SLOPE, LARGEST_PAIR = 60.0, 15.0
"""Natural parameters of weighted trees stay within these bounds: a pair that always goes together
would otherwise grow without end."""
LEARNING_STEPS = (1, 2, 4, 8, 16, 32, 64)
"""Steps of EM at which plain trees are chosen anew."""


def natural_parameters(
    means: FloatArray, both: FloatArray, parent: npt.NDArray[np.int32]
) -> tuple[float, FloatArray, FloatArray]:
    """Return (base, slope, pair) of the tree with given probabilities.

    Parameters
    ----------
    means : array of shape (n,)
        P(x_j = 1).
    both : array of shape (n,)
        P(x_j = 1, x_parent(j) = 1); what stands at roots is not read.
    parent : array of shape (n,)
        Each variable's parent, n for a root.
    """
    n = means.size
    child = np.flatnonzero(parent < n)
    above = parent[child]
    slope = np.log(means) - np.log1p(-means)
    base = np.log1p(-means).sum()
    pair = np.zeros(n)
    p, q, on = means[child], means[above], both[child]
    cells = (on, p - on, q - on, 1 - p - q + on)
    log_11, log_10, log_01, log_00 = (np.log(np.maximum(cell, LEAST)) for cell in cells)
    alone = slope.copy()
    pair[child] = log_11 + log_00 - log_10 - log_01
    slope[child] += log_10 - log_00 - alone[child]
    np.add.at(slope, above, log_01 - log_00 - alone[above])
    base += (log_00 - np.log1p(-p) - np.log1p(-q)).sum()
    return float(base), slope, pair


@dataclass(frozen=True)
class TreeFamily:
    """Trees over the variables, one a component: the Chow-Liu tree of its share of the rows.

    Attributes
    ----------
    pool : Pool
        The prior.
    pairs : array of shape (n_variables, n_variables)
        How probable each pair of variables is to be on in the training set.
    shrinkage : float
        Weight of pseudo-rows in which the ends of an edge are independent.
    penalty : float
        An edge whose weight times mutual information is less than this is left out.
    """

    pool: Pool
    pairs: FloatArray
    shrinkage: float
    penalty: float

    def first(self, examples: Examples, sums: Sums, n_jobs: int | None = None) -> TreeModel:
        """Return the Chow-Liu trees of the posteriors."""
        return self._learn(examples, sums, None, n_jobs)

    def following(
        self,
        examples: Examples,
        model: DensityModel,
        sums: Sums,
        step: int,
        n_jobs: int | None = None,
    ) -> TreeModel:
        """Return new parameters, and now and then new trees."""
        if not isinstance(model, TreeModel):
            raise TypeError(f"expected trees, got {type(model).__name__}")
        if step in LEARNING_STEPS:
            return self._learn(examples, sums, model, n_jobs)
        return self._fitted(sums, model.parent)

    def _learn(
        self, examples: Examples, sums: Sums, model: TreeModel | None, n_jobs: int | None
    ) -> TreeModel:
        totals = sums.totals + self.pool.strength
        n = examples.rows.n_variables

        def one(y: int) -> tuple[ParentArray, FloatArray, FloatArray]:
            seen = class_pairs(examples, sums.posterior, y, model)
            both = seen + self.pool.strength * self.pairs
            gains = np.empty_like(both)
            forest_kernels.pair_gains(totals[y], np.diag(both).copy(), both, self.penalty, gains)
            parent = forests.best_tree(gains)
            wide = np.concatenate([seen, np.zeros((n, 1))], axis=1)
            return parent, np.diag(seen), wide[np.arange(n), parent]

        parents, ones, pairs = zip(*run(one, range(totals.size), n_jobs), strict=True)
        learned = replace(sums, ones=np.stack(ones, axis=1), pairs=np.stack(pairs, axis=1))
        return self._fitted(learned, np.stack(parents, axis=1))

    def _fitted(self, sums: Sums, parent: ParentArray) -> TreeModel:
        ones, totals = pooled_means(self.pool, sums)
        means = ones / totals
        both = pooled_pairs(self.pool, self.pairs, sums, parent) / totals
        above = np.take_along_axis(
            np.concatenate([means, np.zeros((1, totals.size))]), parent.astype(np.int64), axis=0
        )
        share = totals / (totals + self.shrinkage)
        both = share * both + (1 - share) * means * above
        found = [
            natural_parameters(means[:, y], both[:, y], parent[:, y]) for y in range(totals.size)
        ]
        base, slope, pair = zip(*found, strict=True)
        return TreeModel.make(
            np.array(base), np.stack(slope, axis=1), parent, np.stack(pair, axis=1)
        )


def pooled_pairs(pool: Pool, pairs: FloatArray, sums: Sums, parent: ParentArray) -> FloatArray:
    """Return the weight of the rows with a variable and its parent on, the prior included."""
    n = parent.shape[0]
    wide = np.concatenate([pairs, np.zeros((n, 1))], axis=1)
    return np.asarray(sums.pairs + pool.strength * wide[np.arange(n)[:, None], parent])


@dataclass(frozen=True)
class WeightedTreeFamily:
    """Weighted trees: trees that explain what weighted urns, fitted before, leave unexplained.

    The trees are chosen once, by the divergence of observed from expected pairs; then natural
    parameters move towards those whose expectations are the observed ones, half-way each step.

    Attributes
    ----------
    urns : UrnFamily
        The weighted urns, one block a component.
    pairs, shrinkage, penalty
        As for `TreeFamily`; independent means here as the urn has it.
    urn_model : UrnModel
        The fitted urns.
    """

    urns: UrnFamily
    pairs: FloatArray
    shrinkage: float
    penalty: float
    urn_model: UrnModel
    _alone: list[tuple[FloatArray, FloatArray]] = field(default_factory=list)

    def first(self, examples: Examples, sums: Sums, n_jobs: int | None = None) -> TreeModel:
        """Return the urns with trees whose edges do nothing yet."""
        parent = self._learn(examples, sums, n_jobs)
        slope = self.urn_model.log_weights
        log_q = np.stack(self.urn_model.log_q, axis=1)
        return TreeModel.make(
            np.zeros(slope.shape[1]),
            slope,
            parent,
            np.zeros(slope.shape),
            log_q,
            n_jobs,
            self.urns.reach,
        )

    def following(
        self,
        examples: Examples,
        model: DensityModel,
        sums: Sums,
        step: int,
        n_jobs: int | None = None,
    ) -> TreeModel:
        """Return the parameters after a damped step, and new q."""
        if not isinstance(model, TreeModel):
            raise TypeError(f"expected trees, got {type(model).__name__}")
        pool, parent = self.urns.pool, model.parent
        ones, totals = pooled_means(pool, sums)
        mass = sums.counts + pool.strength * np.stack(self.urns.shares, axis=1)
        tilts = model.counts[1]
        found = polynomials.expected_pairs(model.slope, parent, model.pair, mass, tilts, n_jobs)
        if not self._alone:
            nothing = np.zeros(model.pair.shape)
            weights = self.urn_model.log_weights
            alone = polynomials.expected_pairs(weights, parent, nothing, mass, n_jobs=n_jobs)
            self._alone.append((alone[0] / totals, alone[1] / totals))
        share = totals / (totals + self.shrinkage)
        wanted = share * pooled_pairs(pool, self.pairs, sums, parent)
        wanted += (1 - share) * totals * _scaled(self._alone[0], ones / totals, parent)
        moves = [
            _move(ones[:, y], wanted[:, y], found[0][:, y], found[1][:, y], totals[y], parent[:, y])
            for y in range(totals.size)
        ]
        slope = centred(model.slope + np.stack([move[0] for move in moves], axis=1))
        pair = model.pair + np.stack([move[1] for move in moves], axis=1)
        slope = np.clip(slope, -LARGEST_SLOPE, LARGEST_SLOPE)
        pair = np.clip(pair, -LARGEST_PAIR, LARGEST_PAIR)
        log_q = self.urns.log_counts(sums)
        return TreeModel.make(model.base, slope, parent, pair, log_q, n_jobs, self.urns.reach)

    def _learn(self, examples: Examples, sums: Sums, n_jobs: int | None) -> ParentArray:
        pool, weights = self.urns.pool, np.exp(self.urn_model.log_weights)
        totals = pooled_means(pool, sums)[1]
        mass = [
            h + pool.strength * share
            for h, share in zip(sums.counts.T, self.urns.shares, strict=True)
        ]
        polynomials = self.urn_model.polynomials
        found = expected_ones(self.urns.partitions, polynomials, mass, n_jobs)

        def one(y: int) -> ParentArray:
            both = class_pairs(examples, sums.posterior, y, self.urn_model)
            both += pool.strength * self.pairs
            gains = np.empty_like(both)
            gain_kernels.urn_pair_gains(
                totals[y],
                np.diag(both).copy(),
                both,
                weights[:, y].copy(),
                found[:, y].copy(),
                self.penalty,
                gains,
            )
            return forests.best_tree(gains)

        return np.stack(run(one, range(totals.size), n_jobs), axis=1)


def _scaled(
    alone: tuple[FloatArray, FloatArray], ones: FloatArray, parent: ParentArray
) -> FloatArray:
    """Return the chances of pairs, scaled from the expected ones to the observed ones."""
    ratio = np.concatenate([ones / np.maximum(alone[0], 1e-300), np.ones((1, ones.shape[1]))])
    above = np.take_along_axis(ratio, parent.astype(np.int64), axis=0)
    wide = np.concatenate([ones, np.full((1, ones.shape[1]), np.inf)])
    most = np.minimum(ones, np.take_along_axis(wide, parent.astype(np.int64), axis=0))
    return np.asarray(np.minimum(alone[1] * ratio[:-1] * above, most))


def _move(
    ones: FloatArray,
    wanted: FloatArray,
    found: FloatArray,
    found_pairs: FloatArray,
    total: float,
    parent: npt.NDArray[np.int32],
) -> tuple[FloatArray, FloatArray]:
    """Return how far a class's slopes and pairs go in one step."""
    target = natural_parameters(ones / total, wanted / total, parent)
    present = natural_parameters(
        np.clip(found / total, LEAST, 1 - LEAST), found_pairs / total, parent
    )
    slope, pair = (
        DAMPING * np.clip(after - before, -LARGEST_STEP, LARGEST_STEP)
        for after, before in zip(target[1:], present[1:], strict=True)
    )
    return slope, pair
