"""The family of hidden trees with leaves: leaves, tree, start of EM, and its steps.

A leaf is fitted by the family of its model to the distinct rows of its block, whose weights in each
state are computed by messages along the tree.
"""

from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from exchangeable.arrays import FloatArray, IntArray, normalize_log
from exchangeable.data.examples import Examples
from exchangeable.families.common.em_data import InMemory
from exchangeable.families.common.streaming.streamed import Streamed
from exchangeable.families.contract import Family, Model
from exchangeable.families.hidden_trees.edges import rooted_tree, shrunken_edges, table_gains
from exchangeable.families.hidden_trees.passes.row_sums import halved_pairs
from exchangeable.families.hidden_trees.start import START_STEPS, loose_edges, n_components
from exchangeable.families.hidden_trees.start import States as StartStates
from exchangeable.families.leaf_trees.fits import LeafFit, chosen_block, leaf_fit
from exchangeable.families.leaf_trees.leaves import Leaf, Shown
from exchangeable.families.leaf_trees.model import LeafModel, LeafSums
from exchangeable.families.leaf_trees.start import (
    Bins,
    Ranking,
    binned,
    leaning,
    state_masses,
)
from exchangeable.families.leaf_trees.streaming import (
    Independent,
    Leaning,
    OfWhole,
    pair_sums,
    ranked,
    rows_of_leaf,
    start_sums,
    sums_of_leaves,
)
from exchangeable.families.leaf_trees.tree import LeafTree, States, partition_of
from exchangeable.families.mixed.family import MixedFamily
from exchangeable.families.mixed.rows.sums import held_sums
from exchangeable.families.mixture import Mixture
from exchangeable.families.sums import Sums
from exchangeable.structure.proposals import Proposal
from exchangeable.structure.statistic_blocks import StatisticBlock


class LeafFamily(Family):
    """Trees of blocks with hidden states and leaves of any kind, one tree for all components."""

    def start_of(self, init: str, number: int) -> str:
        """Return how a run starts: from rows unless random starts are requested."""
        return "random" if init == "random" else "rows"

    @cached_property
    def rows(self) -> Examples:
        """The rows."""
        return self.problem.rows

    @cached_property
    def blocks(self) -> list[tuple[IntArray, StatisticBlock | None]]:
        """The variables of each leaf, and the statistics it may use."""
        problem, chunks = self.problem, self.problem.chunks
        n_variables = self.rows.rows.n_variables if chunks is None else chunks.n_variables
        named: list[tuple[IntArray, StatisticBlock | None]] = [
            (block.variables, block) for block in problem.statistic_blocks
        ]
        others = problem.others if named else np.arange(n_variables)
        known = problem.known_partitions(others.size) if others.size else None
        return named + [(others[block], None) for block in (known[0].blocks if known else [])]

    @cached_property
    def shown(self) -> Shown:
        """The codes of the leaves in the rows."""
        blocks = [(variables, named is not None) for variables, named in self.blocks]
        return Shown.of(blocks, self.rows.observed, self.rows.weights)

    @cached_property
    def fits(self) -> list[LeafFit]:
        """How each leaf is fitted."""
        chunks = self.problem.chunks
        if chunks is not None:
            return [
                leaf_fit(self.problem, own, named, rows_of_leaf(chunks, own, named is not None))
                for own, named in self.blocks
            ]
        pairs = zip(self.blocks, self.shown.rows, strict=True)
        return [leaf_fit(self.problem, *block, InMemory(rows, n_jobs=1)) for block, rows in pairs]

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
        """Return the posteriors of a mixture with independent leaves, after a few steps."""
        k = n_components(self.problem.n_components)
        first = MixedFamily(replace(self.problem, n_components=k)).start(data, init, rng)
        if isinstance(data, Streamed):
            return self._streamed_start(data, first)
        posterior = first.posterior
        leaves = [fit.first(mass) for fit, mass in self._masses(posterior)]
        log_prior = self.log_shares_of(first.totals)
        for step in range(1, START_STEPS + 1):
            table = self.shown.log_evidence(leaves)
            joint = log_prior + sum(table[codes] for codes in self.shown.codes.T)
            posterior = np.exp(normalize_log(joint, log_prior)[0])
            log_prior = self.log_shares_of(self.rows.weights @ posterior)
            leaves = [
                fit.following(leaf, leaf.model.shared_out(rows, mass), step)
                for leaf, rows, (fit, mass) in zip(
                    leaves, self.shown.rows, self._masses(posterior), strict=True
                )
            ]
        return self.held(data, posterior)

    def _streamed_start(self, data: Streamed, first: Sums) -> Sums:
        """Do the same by passes over chunks."""
        shares: Any = first.shares
        recipe = data.recipe_of(shares)
        leaves = [fit.of_shares(OfWhole(recipe)) for fit in self.fits]
        log_prior = self.log_shares_of(first.totals)
        for step in range(1, START_STEPS + 1):
            recipe = Independent(leaves, log_prior)
            totals, sums = data.summed(partial(sums_of_leaves, leaves=leaves), recipe)
            log_prior = self.log_shares_of(totals)
            triples = zip(self.fits, leaves, sums, strict=True)
            leaves = [fit.following(leaf, own, step) for fit, leaf, own in triples]
        return self.held(data, recipe)

    def held(self, data: Any, posterior: Any) -> Sums:
        """Return given posteriors."""
        sums: Sums = data.summed(held_sums, posterior)
        return sums

    def _masses(self, posterior: FloatArray) -> list[tuple[LeafFit, FloatArray]]:
        """Return, for each leaf, the mass of its distinct rows in each component."""
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
        """Return the start of EM; `rng` perturbs the tree."""
        if isinstance(data, Streamed):
            return self._streamed_first(data, sums, rng)
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

    def _streamed_first(
        self, data: Streamed, sums: Sums, rng: np.random.Generator | None
    ) -> Mixture:
        """Do the same by passes over chunks."""
        blocks = [(fit.variables, fit.statistic is not None) for fit in self.fits]
        rankings = ranked(data, blocks, [Ranking(fit.statistic) for fit in self.fits])
        number = np.array([ranking.edges.size for ranking in rankings])
        starts, width = np.cumsum(number) - number, int(number.sum())
        asked: dict[str, Any] = {"blocks": blocks, "rankings": rankings}
        both = data.summed(partial(pair_sums, **asked, starts=starts, width=width))
        parent = rooted_tree(table_gains(both, starts, data.total), rng)
        states, recipe = StartStates.of(self.problem.n_components), data.recipe_of(sums.shares)
        asked |= {"states": states, "parent": parent}
        masses, pairs = data.summed(partial(start_sums, **asked), sums.shares)
        leaves = [
            fit.of_shares(Leaning(OfWhole(recipe), states, ranking, block, mass, data.total))
            for fit, ranking, block, mass in zip(self.fits, rankings, blocks, masses, strict=True)
        ]
        edges, root = loose_edges(states, parent, masses, pairs)
        tree = LeafTree(States(parent, edges), leaves, np.arange(root.size))
        return Mixture(LeafModel([tree]), np.log(root))

    def resume(self, data: Any, mixture: Mixture) -> Mixture:
        """Prepare to continue from an earlier fit."""
        model: Any = mixture.model
        if len(model.trees) > 1:
            raise ValueError(
                f"warm_start=True goes on from one tree, but the fit before is an average of "
                f"{len(model.trees)}; fit with combine='best' first"
            )
        tree, prior = model.trees[0], mixture.log_prior
        self.blocks = [(leaf.variables, chosen_block(leaf)) for leaf in tree.leaves]
        leaves = [
            replace(leaf, model=fit.family.resume(fit.data, Mixture(leaf.model, prior)).model)
            for fit, leaf in zip(self.fits, tree.leaves, strict=True)
        ]
        return Mixture(LeafModel([replace(tree, leaves=leaves)]), mixture.log_prior)

    def following(self, data: Any, model: Any, sums: Any, step: int) -> list[Model]:
        """Return the parameters for given posteriors, under the prior."""
        assert isinstance(sums, LeafSums)
        tree = model.trees[0]
        triples = zip(self.fits, tree.leaves, sums.leaves, strict=True)
        leaves = [fit.following(leaf, own, step) for fit, leaf, own in triples]
        shrinkage = self.problem.shrinkage
        edges = shrunken_edges(tree.hidden.parent, sums.pairs, sums.masses, shrinkage)
        return [
            LeafModel([replace(tree, passing=States(tree.hidden.parent, edges), leaves=leaves)])
        ]

    def widened(self, mixture: Mixture, sums: Any, rows: Examples) -> tuple[Mixture, Any]:
        """Return a mixture, and sums under it, enlarged for larger counts in its leaves."""
        model: Any = mixture.model
        tree = model.trees[0]
        shown = Shown.of(tree.blocks, rows.observed, rows.weights)
        leaves, leaf_sums = list[Leaf](), list[Any]()
        for fit, leaf, own, seen in zip(
            self.fits, tree.leaves, sums.leaves, shown.rows, strict=True
        ):
            wide, carried = fit.family.widened(Mixture(leaf.model, mixture.log_prior), own, seen)
            leaves.append(replace(leaf, model=wide.model))
            leaf_sums.append(carried)
        wider = LeafModel([replace(tree, leaves=leaves)])
        return Mixture(wider, mixture.log_prior), replace(sums, leaves=leaf_sums)

    def carried(self, before: Any, sums: Any, after: Any) -> Any:
        """Return sums of each leaf in the terms of other parameters."""
        leaves = [
            fit.family.carried(old.model, own, new.model)
            for fit, old, own, new in zip(
                self.fits, before.trees[0].leaves, sums.leaves, after.trees[0].leaves, strict=True
            )
        ]
        return replace(sums, leaves=leaves)

    def prior_gain(self, before: Any, after: Any) -> float:
        """Return the gain in the log-density of the priors of the leaves."""
        old, new = before.trees[0].leaves, after.trees[0].leaves
        triples = zip(self.fits, old, new, strict=True)
        return float(sum(fit.family.prior_gain(one.model, two.model) for fit, one, two in triples))
