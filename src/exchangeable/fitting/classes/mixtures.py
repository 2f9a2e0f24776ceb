"""Classes that are mixtures: EM for the rows of each class, and all classes as one model.

Unlabelled rows belong to each class with their posterior probability. EM alternates between
computing these posteriors and one EM step for each class, on its own rows and its share of the
others. No step lowers the penalised likelihood of rows and labels.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import numpy as np

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.data.examples import Examples, merge_equal_rows
from exchangeable.data.observed import Observed
from exchangeable.families.common.em_data import InMemory
from exchangeable.families.common.streaming.streamed import Streamed
from exchangeable.families.contract import FamilySpec
from exchangeable.families.grouped import GroupedModel
from exchangeable.families.mixture import Mixture
from exchangeable.families.problem import Problem
from exchangeable.fitting.classes.labelled import FittedClasses
from exchangeable.fitting.em import StopRule
from exchangeable.fitting.mixtures import fit_mixture
from exchangeable.fitting.runs import Runs
from exchangeable.fitting.tasks import held_out
from exchangeable.runtime.interrupts import stopping
from exchangeable.structure.learner import BlockLearner

LONGER = 10
"""Runs may take this many times the iterations of classes with a single component."""
NO_SHARE = 1e-12
"""A row that belongs to a class with a probability below this is not used for it."""
ONE_STEP = StopRule(tol=0.0, max_iter=1)


class LabelledRows(Protocol):
    """Labelled and unlabelled rows, in memory or not."""

    @property
    def totals(self) -> FloatArray:
        """Weight of the rows with each label."""

    @property
    def unlabelled(self) -> float:
        """Weight of the rows without a label."""

    def of_class(self, y: int, classes: Mixture | None) -> InMemory | Streamed:
        """Return the rows of a class and, given `classes`, its share of the unlabelled rows."""

    def told(self, classes: Mixture) -> tuple[float, FloatArray]:
        """Return the log-likelihood of rows and labels, and the total weight of each class."""


@dataclass(frozen=True)
class InMemoryRows:
    """Rows in memory, the class number of each row (−1 if unknown), and their weights."""

    observed: Observed
    labels: IntArray
    weights: FloatArray
    n_jobs: int | None = None

    @property
    def totals(self) -> FloatArray:
        """Weight of the rows with each label."""
        known = self.labels >= 0
        return np.bincount(self.labels[known], self.weights[known]).astype(np.float64)

    @property
    def unlabelled(self) -> float:
        """Weight of the rows without a label."""
        return float(self.weights[self.labels < 0].sum())

    def of_class(self, y: int, classes: Mixture | None) -> InMemory:
        """Return the rows of a class; all rows with equal weight if it has none."""
        if classes is None:
            own = np.where(self.labels == y, self.weights, 0.0)
            if not own.any():
                own = np.ones(self.labels.size)
        else:
            joint = classes.joint(self.observed, self.n_jobs)
            own = self.weights * shares_of_class(joint, self.labels, y)
        members = np.flatnonzero(own > 0)
        examples, member = merge_equal_rows(self.observed.take(members), own[members])
        return InMemory(examples, member, own[members], self.n_jobs)

    def told(self, classes: Mixture) -> tuple[float, FloatArray]:
        """Return the log-likelihood of rows and labels, and the total weight of each class."""
        return told_of(classes.joint(self.observed, self.n_jobs), self.labels, self.weights)


def shares_of_class(joint: FloatArray, labels: IntArray, y: int) -> FloatArray:
    """Return the share of each row that belongs to a class, given log P(x, y) and known labels."""
    with np.errstate(invalid="ignore"):
        found = np.exp(joint[:, y] - np.logaddexp.reduce(joint, axis=1))
    found = np.where(found > NO_SHARE, found, 0.0)
    return np.where(labels < 0, found, labels == y)


def told_of(joint: FloatArray, labels: IntArray, weights: FloatArray) -> tuple[float, FloatArray]:
    """Return the log-likelihood of rows and labels, and the total weight of each class."""
    known = labels >= 0
    every = np.logaddexp.reduce(joint, axis=1)
    each = np.where(known, joint[np.arange(labels.size), labels], every)
    columns = range(joint.shape[1])
    totals = [float(weights @ shares_of_class(joint, labels, y)) for y in columns]
    return float(weights @ each), np.array(totals)


class OneClass(NamedTuple):
    """A fitted class: its mixture, the problem, and the number of iterations."""

    mixture: Mixture
    problem: Problem
    n_iter: int


@dataclass(frozen=True)
class ClassMixtures:
    """Fits classes that are mixtures.

    Attributes
    ----------
    spec : FamilySpec
        The family of the components.
    make : callable
        Returns the problem for a number of components.
    n_components, n_init : int
        Number of components per class, and of starts.
    rule : StopRule
        When a run stops.
    n_jobs : int, optional
        Number of threads.
    log_prior : array of shape (n_classes,), optional
        Log-probabilities of the classes, if they are not learned.
    """

    spec: FamilySpec
    make: Callable[[int], Problem]
    n_components: int
    n_init: int
    rule: StopRule
    n_jobs: int | None = None
    log_prior: FloatArray | None = None

    def fit(self, rows: LabelledRows) -> FittedClasses:
        """Fit a mixture to the rows of each class; without rows, to all rows with equal weight.

        A class without rows has probability 0. Ctrl-C ends the fits of all classes.
        """
        with stopping():
            return self._fit(rows)

    def _fit(self, rows: LabelledRows) -> FittedClasses:
        totals = rows.totals
        found = [self.first(rows.of_class(y, None)) for y in range(totals.size)]
        mixtures, n_iter = [each.mixture for each in found], max(each.n_iter for each in found)
        if rows.unlabelled > 0:
            problems = [each.problem for each in found]
            mixtures, totals, steps = self._shared_out(rows, mixtures, problems, totals)
            n_iter += steps
        return FittedClasses(grouped(mixtures), totals, max(n_iter, 1))

    def first(self, data: InMemory | Streamed) -> OneClass:
        """Return a mixture fitted to the rows of one class."""
        longer = replace(self.rule, max_iter=LONGER * self.rule.max_iter)
        most = min(float(self.n_components), self.spec.most_per_row * n_distinct(data))
        data, valid = self._held_out(data)
        problem = replace(self._problem(data, max(1, int(most))), valid=valid)
        generators = np.random.default_rng(0).spawn(self.n_init)
        runs = Runs(self.spec, problem, data, longer, "rows", generators)
        kept = fit_mixture(runs, "best", self.n_jobs)
        n_iter = max(state.n_iter for state in kept.states)
        mixture = Mixture(kept.model, np.log(kept.weights))
        return OneClass(mixture, replace(problem, anchor=mixture), n_iter)

    def _held_out(self, data: InMemory | Streamed) -> tuple[InMemory | Streamed, Examples | None]:
        """Return the rows to fit, and the held-out rows if the family needs some."""
        share = self.spec.held_out
        if share is None or isinstance(data, Streamed) or round(share * n_distinct(data)) < 1:
            return data, None
        observed, weights = data.examples.observed, data.examples.weights
        kept, held = (
            merge_equal_rows(observed.take(part), weights[part])
            for part in held_out(share, weights.size, np.random.default_rng(0))
        )
        return InMemory(kept[0], kept[1], n_jobs=self.n_jobs), held[0]

    def _shared_out(
        self,
        rows: LabelledRows,
        mixtures: list[Mixture],
        problems: list[Problem],
        totals: FloatArray,
    ) -> tuple[list[Mixture], FloatArray, int]:
        """Return the mixtures after EM over unknown labels, and the number of iterations.

        The prior probabilities of the classes stay those of the labelled rows.
        """
        whole, before, steps = float(totals.sum()) + rows.unlabelled, -np.inf, 0
        while steps < self.rule.max_iter:
            steps += 1
            classes = Mixture(grouped(mixtures), self._prior(totals))
            log_likelihood, totals = rows.told(classes)
            if log_likelihood / whole - before < self.rule.tol:
                break
            before = log_likelihood / whole
            mixtures = [
                self._step(rows.of_class(y, classes), *each)
                for y, each in enumerate(zip(mixtures, problems, strict=True))
            ]
        return mixtures, totals, steps

    def _prior(self, totals: FloatArray) -> FloatArray:
        if self.log_prior is not None:
            return self.log_prior
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(totals / totals.sum()))

    def _step(self, data: InMemory | Streamed, mixture: Mixture, problem: Problem) -> Mixture:
        """Return a mixture after one iteration of EM on the rows of its class."""
        problem = replace(problem, n_components=mixture.log_prior.size, valid=None)
        generators = [np.random.default_rng(0)]
        runs = Runs(self.spec, problem, data, ONE_STEP, "rows", generators, warm=mixture)
        return runs.run(0, threads=self.n_jobs).best

    def _problem(self, data: InMemory | Streamed, n_components: int) -> Problem:
        problem = self.make(n_components)
        _check_blocks(self.spec, problem)
        if isinstance(data, Streamed):
            return replace(problem, chunks=data)
        return replace(problem, examples=data.examples)


def n_distinct(data: InMemory | Streamed) -> int:
    """Return the number of distinct rows."""
    return data.weights.size if isinstance(data, Streamed) else data.examples.rows.n_rows


def grouped(mixtures: Sequence[Mixture]) -> GroupedModel:
    """Return the mixtures of all classes as one model."""
    inner = type(mixtures[0].model).stack([each.model for each in mixtures])
    group = np.repeat(np.arange(len(mixtures)), [each.log_prior.size for each in mixtures])
    return GroupedModel(inner, group, np.concatenate([each.log_prior for each in mixtures]))


def mixture_of_class(model: GroupedModel, y: int) -> Mixture:
    """Return one of the classes as a mixture."""
    members = np.flatnonzero(model.group == y)
    return Mixture(model.inner.only(members), model.log_shares[members])


def _check_blocks(spec: FamilySpec, problem: Problem) -> None:
    """Reject blocks that each class would learn if all components must have the same ones."""
    structure = problem.structure
    if spec.shared_blocks and isinstance(structure, BlockLearner) and structure.needs_moments:
        raise ValueError(
            f"blocks={structure.name!r} would give each class blocks of its own, but all "
            f"components of family={spec.name!r} have the same; give blocks='independent', "
            "blocks='full' or lists"
        )
