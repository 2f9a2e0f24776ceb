"""Fitting mixtures of weighted urns and trees: what the options stand for, and the runs."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from exchangeable.arrays import FloatArray
from exchangeable.data.examples import Examples
from exchangeable.data.observed import flags
from exchangeable.data.rows import Rows
from exchangeable.families.blocks.passes import Expectation, sum_moments
from exchangeable.families.common import log_linear
from exchangeable.families.common.expectation import expect, fill_by_frequency
from exchangeable.families.common.log_linear import LogLinear, Sums
from exchangeable.families.common.pool import Pool
from exchangeable.families.count_trees.family import CountTreeFamily
from exchangeable.families.hidden_trees.family import HiddenFamily
from exchangeable.families.hidden_trees.start import START_POOLING, START_STEPS, n_components
from exchangeable.families.trees.family import TreeFamily, WeightedTreeFamily
from exchangeable.families.urns.family import DensityModel, Family, IndependentFamily, UrnFamily
from exchangeable.families.urns.model import UrnModel
from exchangeable.fitting.density_em import NAIVE_STEPS, Run, StopRule, fit_run, go_on, naive_start
from exchangeable.fitting.mixture_runs import MixtureRuns
from exchangeable.fitting.restarts import FitProgress, side_by_side
from exchangeable.fitting.structural_em import EMSettings, InMemory
from exchangeable.partitions import Partition
from exchangeable.structure.learner import Structure

KINDS = ("independent", "urns", "tree", "count tree", "weighted tree", "hidden tree")
POOLING = 8.0
HIDDEN_POOLING = 0.5
"""Pseudo-rows of the pooled prior, where the user does not say; of each state of hidden trees."""
SHRINKAGE = {"tree": 32.0, "count tree": 4.0, "weighted tree": 200.0, "hidden tree": 1.0}
"""Pseudo-rows that pull an edge towards independence, where the user does not say."""
PENALTY = {"tree": 2.0, "count tree": 1.0, "weighted tree": 1.0}
"""What an edge must gain in log-likelihood, for each of its parameters, to be there."""
MOST_TREE_VARIABLES = 4_000
"""A tree looks at all pairs of variables, whose number must stay bearable."""


@dataclass(frozen=True)
class DensityOptions:
    """What is to be fitted, and how.

    Attributes
    ----------
    kind : {"independent", "urns", "tree", "count tree", "weighted tree", "hidden tree"}
        The family.
    n_components : int
        Number of components or classes, or of states of each block of a hidden tree.
    structure : Structure
        Blocks of the urns, or of the hidden tree.
    weighted : bool
        Whether urns have weights.
    pooling, alpha : float
        The prior: pseudo-rows distributed as the training set, whose own frequencies are smoothed
        by alpha.
    shrinkage : float
        Pseudo-rows that pull an edge of a tree towards independence.
    rule : StopRule
        When a run ends.
    init : {"rows", "random", "both"}
        How a run starts.
    varied : bool
        Whether the hidden tree of the first run is disturbed at random, as those of others are.
    """

    kind: str
    n_components: int
    structure: Structure
    weighted: bool = True
    pooling: float = POOLING
    alpha: float = 0.1
    shrinkage: float = 0.0
    rule: StopRule = field(default_factory=StopRule)
    init: str = "rows"
    varied: bool = False


@dataclass(frozen=True)
class DensityRuns:
    """What runs from different starts have in common.

    Runs start on `filled`, the examples with their holes, if there are any, filled by frequency.
    """

    examples: Examples
    filled: Examples
    valid: Examples | None
    options: DensityOptions
    generators: Sequence[np.random.Generator]
    pool: Pool
    pairs: FloatArray

    @classmethod
    def of(
        cls,
        examples: Examples,
        valid: Examples | None,
        options: DensityOptions,
        generators: Sequence[np.random.Generator],
    ) -> "DensityRuns":
        """Prepare runs, one for each generator."""
        filled = fill_by_frequency(examples)
        pool = Pool.of(filled, options.pooling, options.alpha)
        pairs = np.empty((0, 0))
        if options.kind in ("tree", "weighted tree"):
            check_tree_size(examples.rows.n_variables)
            pairs = np.empty((0, 0)) if options.kind == "hidden tree" else pool.pairs()
        return cls(examples, filled, valid, options, generators, pool, pairs)

    def run(
        self,
        number: int,
        report: Callable[[Run], None] = lambda run: None,
        stop: threading.Event | None = None,
        threads: int | None = None,
        fitted: Run | None = None,
    ) -> Run:
        """Run EM from one start; weighted trees go on from `fitted` urns where there are some."""

        def em(family: Family, sums: Sums, begun: Examples) -> Run:
            return fit_run(
                self.examples,
                self.valid,
                family,
                sums,
                self.options.rule,
                threads,
                report,
                stop,
                begun,
            )

        kind = self.options.kind
        if kind == "hidden tree":
            return self._hidden(number, report, stop, threads)
        if kind == "weighted tree" and fitted is not None:
            return self._grow(fitted, em, threads)
        sums = self._start(number, threads)
        if kind == "independent":
            return em(IndependentFamily(self.pool), sums, self.filled)
        if kind == "tree":
            return em(self.trees(), sums, self.filled)
        if kind == "count tree":
            settled, posterior = self._settled_blocks(sums.posterior, threads, stop)
            begun = given_sums(self.filled, posterior, threads)
            return em(self.count_trees(settled), begun, self.examples)
        urns = self.urns(self.partitions(sums))
        found = em(urns, sums, self.filled)
        return found if kind == "urns" else self._grow(found, em, threads)

    def _settled_blocks(
        self, posterior: FloatArray, threads: int | None, stop: threading.Event | None
    ) -> tuple[list[Partition], FloatArray]:
        """Run the paper's structural EM; return the blocks it ends with, and the posteriors."""
        rule, everyone = self.options.rule, np.arange(self.examples.rows.n_rows)
        runs = MixtureRuns(
            self.examples,
            everyone,
            self.examples.weights,
            self.options.n_components,
            self.options.structure,
            EMSettings(self.options.alpha, rule.tol, rule.max_iter),
            self.options.init,
            self.generators,
        )
        state = runs.run_from(posterior, stop, threads)
        found = InMemory(self.examples, threads).expect(state.model, state.log_prior, moments=False)
        return state.model.partitions, found.posterior

    def count_trees(self, partitions: Sequence[Partition]) -> CountTreeFamily:
        """Return the family of trees over the counts of given blocks."""
        urns = UrnFamily.of(self.pool, partitions, weighted=False)
        return CountTreeFamily(urns, self.options.shrinkage, PENALTY["count tree"])

    def _hidden(
        self,
        number: int,
        report: Callable[[Run], None],
        stop: threading.Event | None,
        threads: int | None,
    ) -> Run:
        """Run EM of a hidden tree, whose states are about twice the components of its start."""
        options, rng = self.options, self.generators[number]
        pool = replace(self.pool, strength=START_POOLING)
        begun = self._start(number, threads, n_components(options.n_components), pool)
        family = HiddenFamily.of(self.pool, options.shrinkage, self.partitions(begun)[0])
        varied = rng if options.varied or number > 0 else None
        model, log_prior = family.first(self.filled, begun.posterior, options.n_components, varied)
        return go_on(
            self.examples,
            self.valid,
            family,
            model,
            log_prior,
            options.rule,
            threads,
            report,
            stop,
        )

    def _grow(
        self, fitted: Run, em: Callable[[Family, Sums, Examples], Run], threads: int | None
    ) -> Run:
        """Go on with weighted trees from fitted urns."""
        if not isinstance(fitted.model, UrnModel):
            raise TypeError(f"expected weighted urns, got {type(fitted.model).__name__}")
        urns = self.urns(fitted.model.partitions)
        family = self.weighted_trees(urns, fitted.model)
        sums = expect(fitted.model, self.examples, fitted.log_prior, threads)
        return em(family, sums, self.examples)

    def urns(self, partitions: Sequence[Partition]) -> UrnFamily:
        """Return the family of urns of given blocks."""
        reach = None
        if self.examples.holes is None and (self.valid is None or self.valid.holes is None):
            sets = [self.examples] if self.valid is None else [self.examples, self.valid]
            reach = max(largest_count(rows.rows) for rows in sets)
        return UrnFamily.of(self.pool, partitions, self.options.weighted, reach)

    def weighted_trees(self, urns: UrnFamily, fitted: UrnModel) -> WeightedTreeFamily:
        """Return the family of weighted trees over fitted urns."""
        penalty = PENALTY["weighted tree"]
        return WeightedTreeFamily(urns, self.pairs, self.options.shrinkage, penalty, fitted)

    def trees(self) -> TreeFamily:
        """Return the family of plain trees."""
        return TreeFamily(self.pool, self.pairs, self.options.shrinkage, PENALTY["tree"])

    def _start(
        self, number: int, threads: int | None, k: int | None = None, pool: Pool | None = None
    ) -> Sums:
        """Return the sums of first posteriors, of as many components as asked for."""
        rng, k = self.generators[number], k or self.options.n_components
        init = self.options.init
        random = init == "random" or (init == "both" and number % 2 and pool is None)
        naive = IndependentFamily(pool or self.pool)
        if not random:
            share = self.examples.weights / self.examples.total
            few = k <= np.count_nonzero(share)
            chosen = rng.choice(share.size, size=k, replace=not few, p=share)
            steps = NAIVE_STEPS if pool is None else START_STEPS
            return naive_start(self.filled, naive, chosen, threads, steps)
        posterior = rng.dirichlet(np.ones(k), size=self.examples.rows.n_rows)
        return given_sums(self.filled, posterior, threads)

    def partitions(self, sums: Sums) -> list[Partition]:
        """Return the blocks, given or learned from the first posteriors."""
        structure, k = self.options.structure, self.options.n_components
        if isinstance(structure, list):
            return structure
        if not structure.needs_moments:
            n = self.examples.rows.n_variables
            labels = np.arange(n) if structure.name == "independent" else np.zeros(n, dtype=int)
            return [Partition.from_labels(labels)] * k
        moments = sum_moments(self.filled, sums.posterior)
        found = Expectation(-np.inf, sums.posterior, [], moments, sums.totals)
        return structure.propose(self.filled, found, 1)[-1]


def largest_count(rows: Rows) -> int:
    """Return the largest number of ones of a row."""
    if rows.indptr.size:
        return int(np.diff(rows.indptr).max(initial=0))
    return int(flags(rows).sum(axis=1).max(initial=0))


def given_sums(examples: Examples, posterior: FloatArray, n_jobs: int | None = None) -> Sums:
    """Return the sums of given posteriors."""
    n, k = examples.rows.n_variables, posterior.shape[1]
    scores = LogLinear(np.zeros(k), np.zeros((n, k)))
    return log_linear.expect(examples, scores, np.zeros(k), n_jobs, posterior)


def check_tree_size(n_variables: int) -> None:
    """Refuse trees over more variables than all pairs of which can be looked at."""
    if n_variables > MOST_TREE_VARIABLES:
        raise ValueError(
            "dependence='tree' or 'hidden' looks at all pairs of variables, of which "
            f"{n_variables} have too many; it is for at most {MOST_TREE_VARIABLES} variables"
        )


def run_restarts(runs: DensityRuns, max_iter: int, n_jobs: int | None = None) -> list[Run]:
    """Run EM from every start and return where the runs end."""
    latest: list[Run | None] = [None] * len(runs.generators)

    def one(number: int, progress: FitProgress, stop: threading.Event, threads: int) -> Run:
        def report(run: Run) -> None:
            latest[number] = run
            told = f"iteration {run.n_iter}, log-likelihood {run.worth:.4f}"
            progress.show(number, run.n_iter, run.converged, told)

        return runs.run(number, report, stop, threads)

    return side_by_side(one, latest, max_iter, n_jobs)


def average(runs: Sequence[Run]) -> tuple[DensityModel, FloatArray]:
    """Return the uniform average of several mixtures, which is one mixture of all components."""
    models = [run.model for run in runs]
    stacked: DensityModel = type(models[0]).stack(models)  # type: ignore[arg-type]
    log_prior = np.concatenate([run.log_prior for run in runs]) - np.log(len(runs))
    return stacked, log_prior
