"""The family of hidden trees with leaves: which leaves, which tree, where EM starts, and its steps.

A leaf is fitted by the family of its model, to the distinct rows of its block, whose weights in
each state are what messages along the tree say.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from exchangeable.arrays import FloatArray, IntArray, normalize_log
from exchangeable.data.examples import Examples
from exchangeable.families.common.em_data import InMemory
from exchangeable.families.contract import Family, Model
from exchangeable.families.hidden_trees.edges import rooted_tree, shrunken_edges, table_gains
from exchangeable.families.hidden_trees.row_sums import halved_pairs
from exchangeable.families.hidden_trees.start import START_STEPS, loose_edges, n_components
from exchangeable.families.hidden_trees.start import States as StartStates
from exchangeable.families.leaf_trees.choice import chosen_statistic
from exchangeable.families.leaf_trees.leaves import Leaf, Shown
from exchangeable.families.leaf_trees.model import LeafModel, LeafSums
from exchangeable.families.leaf_trees.start import (
    Bins,
    binned,
    column_ranks,
    leaning,
    state_masses,
    statistic_ranks,
)
from exchangeable.families.leaf_trees.tree import LeafTree, States, partition_of
from exchangeable.families.mixed.family import MixedFamily
from exchangeable.families.mixture import Mixture
from exchangeable.families.problem import Problem
from exchangeable.families.statistics.family import StatisticFamily
from exchangeable.families.sums import Sums
from exchangeable.partitions import Partition
from exchangeable.statistics import Statistic
from exchangeable.structure.proposals import Proposal
from exchangeable.structure.statistic_blocks import StatisticBlock


@dataclass(frozen=True)
class LeafFit:
    """How one leaf is fitted.

    Attributes
    ----------
    variables : array
        Its variables.
    family : Family
        The family of its model, for the block's distinct rows.
    data : InMemory
        These rows, with their weights.
    statistic : Statistic, optional
        What it reads; None where it has columns of any kind.
    """

    variables: IntArray
    family: Family
    data: InMemory
    statistic: Statistic | None = None

    @property
    def whole(self) -> Partition:
        """All its variables as one block."""
        return Partition.from_labels(np.zeros(self.variables.size, dtype=np.int32))

    def first(self, mass: FloatArray) -> Leaf:
        """Return the leaf that fits rows of which it is known how much is of each state."""
        posterior = mass / self.data.weights[:, None]
        sums = self.family.held(self.data, posterior)
        blocks = Proposal([self.whole] * mass.shape[1])
        mixture = self.family.first(self.data, sums, blocks, None, None)
        return Leaf(self.variables, mixture.model)

    def following(self, leaf: Leaf, sums: Any, step: int) -> Leaf:
        """Return the leaf after one step."""
        model = self.family.candidates(self.data, leaf.model, sums, step, ())[0]
        return Leaf(self.variables, model)

    def ranks(self) -> FloatArray:
        """Return a number for every distinct row by which they are put in order."""
        if self.statistic is None:
            return column_ranks(self.data.examples)
        return statistic_ranks(self.data.examples, self.statistic)


class LeafFamily(Family):
    """Trees of blocks with hidden states and leaves of any kind, one tree for all components."""

    def start_of(self, init: str, number: int) -> str:
        """Return how the numbered run starts: from rows unless random starts are asked for."""
        return "random" if init == "random" else "rows"

    @cached_property
    def rows(self) -> Examples:
        """The rows."""
        return self.problem.rows

    @cached_property
    def blocks(self) -> list[tuple[IntArray, StatisticBlock | None]]:
        """The variables of each leaf, and the statistics it may read."""
        problem, n_variables = self.problem, self.rows.rows.n_variables
        named: list[tuple[IntArray, StatisticBlock | None]] = [
            (block.variables, block) for block in problem.statistic_blocks
        ]
        others = problem.others if named else np.arange(n_variables)
        known = problem.known_partitions(others.size) if others.size else None
        return named + [(others[block], None) for block in (known[0].blocks if known else [])]

    @cached_property
    def shown(self) -> Shown:
        """What the leaves show in the rows."""
        blocks = [(variables, named is not None) for variables, named in self.blocks]
        return Shown.of(blocks, self.rows.observed, self.rows.weights)

    @cached_property
    def fits(self) -> list[LeafFit]:
        """How each leaf is fitted."""
        pairs = zip(self.blocks, self.shown.rows, strict=True)
        return [_leaf_fit(self.problem, *block, rows) for block, rows in pairs]

    @cached_property
    def bins(self) -> Bins:
        """The rows of each leaf in order."""
        found = [binned(fit.ranks(), fit.data.weights) for fit in self.fits]
        by_leaf, number, cuts = zip(*found, strict=True)
        return Bins(list(by_leaf), np.array(number), np.array(cuts))

    def own_blocks(self, data: Any, sums: Sums) -> Proposal:
        """Return the blocks of the leaves."""
        partition = partition_of([variables for variables, _ in self.blocks])
        return Proposal([partition] * self.problem.n_components)

    def start(self, data: Any, init: str, rng: np.random.Generator) -> Sums:
        """Return the posteriors of a mixture in which leaves are independent, after a few steps."""
        k = n_components(self.problem.n_components)
        first = MixedFamily(replace(self.problem, n_components=k)).start(data, init, rng)
        posterior = first.posterior
        leaves = [fit.first(mass) for fit, mass in self._masses(posterior)]
        log_prior = self.log_shares_of(first.totals)
        for step in range(1, START_STEPS + 1):
            table = self.shown.log_evidence(leaves)
            joint = log_prior + sum(table[codes] for codes in self.shown.codes.T)
            posterior = np.exp(normalize_log(joint, log_prior)[0])
            log_prior = self.log_shares_of(self.rows.weights @ posterior)
            leaves = [
                fit.following(leaf, leaf.model.shared_out(fit.data.examples, mass), step)
                for leaf, (fit, mass) in zip(leaves, self._masses(posterior), strict=True)
            ]
        return self.held(data, posterior)

    def held(self, data: Any, posterior: FloatArray) -> Sums:
        """Return given posteriors."""
        return Sums(0.0, posterior, self.rows.weights @ posterior)

    def _masses(self, posterior: FloatArray) -> list[tuple[LeafFit, FloatArray]]:
        """Return for each leaf how much of its distinct rows each component has."""
        mass = self.rows.weights[:, None] * posterior
        return [(fit, self.shown.by_code(b, mass)) for b, fit in enumerate(self.fits)]

    def first(
        self,
        data: Any,
        sums: Sums,
        blocks: Proposal,
        before: Mixture | None,
        rng: np.random.Generator | None,
    ) -> Mixture:
        """Return where EM starts; `rng` disturbs the tree."""
        weights, bins = self.rows.weights, self.bins
        both = bins.pairs(self.shown, weights)
        parent = rooted_tree(table_gains(both, bins.starts, float(weights.sum())), rng)
        states = StartStates.of(self.problem.n_components)
        leaves, masses = list[Leaf](), list[FloatArray]()
        for b, (fit, mass) in enumerate(self._masses(sums.posterior)):
            seen = state_masses(states, bins.high(b), mass)
            masses.append(seen.sum(axis=0))
            leaves.append(fit.first(leaning(states, seen, fit.data.weights)))
        high = [bins.high(b)[self.shown.own_codes(b)] for b in range(len(leaves))]
        mass = weights[:, None] * sums.posterior
        pairs = halved_pairs(np.stack(high, axis=1).astype(np.bool_), mass, parent)
        edges, root = loose_edges(states, parent, np.stack(masses), pairs)
        tree = LeafTree(States(parent, edges), leaves, np.arange(root.size))
        return Mixture(LeafModel([tree]), np.log(root))

    def resume(self, data: Any, mixture: Mixture) -> Mixture:
        """Get ready to go on from an earlier fit."""
        model: Any = mixture.model
        if len(model.trees) > 1:
            raise ValueError(
                f"warm_start=True goes on from one tree, but the fit before is an average of "
                f"{len(model.trees)}; fit with combine='best' first"
            )
        tree, prior = model.trees[0], mixture.log_prior
        self.blocks = [(leaf.variables, _chosen(leaf)) for leaf in tree.leaves]
        leaves = [
            replace(leaf, model=fit.family.resume(fit.data, Mixture(leaf.model, prior)).model)
            for fit, leaf in zip(self.fits, tree.leaves, strict=True)
        ]
        return Mixture(LeafModel([replace(tree, leaves=leaves)]), mixture.log_prior)

    def following(self, data: Any, model: Any, sums: Any, step: int) -> list[Model]:
        """Return the parameters that fit the posteriors, the prior included."""
        assert isinstance(sums, LeafSums)
        tree = model.trees[0]
        triples = zip(self.fits, tree.leaves, sums.leaves, strict=True)
        leaves = [fit.following(leaf, own, step) for fit, leaf, own in triples]
        shrinkage = self.problem.shrinkage
        edges = shrunken_edges(tree.hidden.parent, sums.pairs, sums.masses, shrinkage)
        return [
            LeafModel([replace(tree, passing=States(tree.hidden.parent, edges), leaves=leaves)])
        ]

    def prior_gain(self, before: Any, after: Any) -> float:
        """Return the gain in the log-density of the priors of the leaves."""
        old, new = before.trees[0].leaves, after.trees[0].leaves
        triples = zip(self.fits, old, new, strict=True)
        return float(sum(fit.family.prior_gain(one.model, two.model) for fit, one, two in triples))


def _leaf_fit(
    problem: Problem, variables: IntArray, named: StatisticBlock | None, rows: Examples
) -> LeafFit:
    """Return how the leaf of some variables is fitted, having chosen its statistic."""
    data = InMemory(rows, n_jobs=1)
    whole = Partition.from_labels(np.zeros(variables.size, dtype=np.int32))
    own = replace(
        problem,
        examples=rows,
        valid=None,
        structure=[whole] * problem.n_components,
        statistic_blocks=(),
        others=np.empty(0, dtype=np.int64),
    )
    if named is None:
        return LeafFit(variables, MixedFamily(own), data)
    statistic = chosen_statistic(rows, named.statistics)
    inside = StatisticBlock(np.arange(variables.size), (statistic,))
    return LeafFit(
        variables, StatisticFamily(replace(own, statistic_blocks=(inside,))), data, statistic
    )


def _chosen(leaf: Leaf) -> StatisticBlock | None:
    """Return the block that a leaf has, with the statistic that was chosen."""
    model: Any = leaf.model
    return StatisticBlock(leaf.variables, (model.blocks[0].statistic,)) if leaf.of_bits else None
