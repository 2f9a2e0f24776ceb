"""Rows that come in batches, for every family fitted by EM.

The state consists of sums under the parameters of their time and a sample of rows. The sums of a
new part are added to the old ones: for components with decreasing step size
(`families.common.steps`), for classes as shares of all rows, since labels are known. The family
then computes parameters from the sums. The sample represents all rows in the pooled prior and when
blocks and trees are learned again, as it grows.
"""

from collections.abc import Iterable
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.data.examples import Examples, merge_equal_rows
from exchangeable.data.groups import Group
from exchangeable.data.observed import Observed
from exchangeable.data.sketch import GROWTH, MOST_ROWS, Sketch
from exchangeable.data.stacking import stack_observed
from exchangeable.families.common.em_data import InMemory
from exchangeable.families.common.streaming.steps import REVISION, factors
from exchangeable.families.contract import Family, FamilySpec, Model
from exchangeable.families.mixture import Mixture
from exchangeable.families.problem import Problem
from exchangeable.families.sums import NO_POSTERIOR, Sums
from exchangeable.fitting.classes.labelled import fit_classes
from exchangeable.fitting.em import EMState, StopRule, run_em
from exchangeable.fitting.runs import begin, families_of
from exchangeable.structure.learner import BlockLearner
from exchangeable.structure.proposals import learners_of

ROUNDS = 4
"""Iterations of EM on the sample when blocks and trees are revised."""


@dataclass(frozen=True)
class Kept:
    """The state between batches.

    Attributes
    ----------
    sums : Sums
        Sums over all rows so far.
    sketch : Sketch
        A sample of the rows, by class if they have labels.
    first : Mixture, optional
        The mixture that was fitted to the first rows.
    """

    sums: Any
    sketch: Sketch
    first: Mixture | None = None


class Stream:
    """Processes batches of rows, one after the other.

    Parameters
    ----------
    spec : FamilySpec
        The family.
    problem : Problem
        The problem.
    rule : StopRule
        When steps for classes stop.
    n_jobs : int, optional
        Number of threads.
    """

    def __init__(
        self, spec: FamilySpec, problem: Problem, rule: StopRule, n_jobs: int | None = None
    ) -> None:
        self.spec, self.problem, self.rule, self.n_jobs = spec.by_em, problem, rule, n_jobs

    def begin(self, mixture: Mixture, parts: Iterable[Examples]) -> Kept:
        """Return the state for the rows that a mixture was fitted to."""
        n_classes = self.problem.n_components if self.problem.labelled else 1
        sketch, sums = Sketch.empty(mixture.model.n_variables, n_classes), None
        for rows in parts:
            found = self._expect(mixture, rows)
            sums = _blend(found if sums is None else sums, 1.0, found, float(sums is not None))
            sketch = self._extended(sketch, rows)
        return Kept(sums, replace(sketch, learned=sketch.totals), mixture)

    def imagine(self, mixture: Mixture, totals: FloatArray) -> Kept:
        """Return the state for rows that are gone: rows drawn from the mixture replace them."""
        rng = np.random.default_rng(0)
        counts = np.maximum(np.round(MOST_ROWS * totals / totals.sum()), totals > 0).astype(int)
        drawn = [mixture.model.imagined(int(n), y, rng) for y, n in enumerate(counts) if n]
        classes = np.repeat(np.arange(totals.size), counts)
        weights = (totals / np.maximum(counts, 1))[classes]
        known = classes if self.problem.labelled else None
        return self.begin(mixture, [merge_equal_rows(stack_observed(drawn), weights, known)[0]])

    def add(self, mixture: Mixture, kept: Kept, parts: Iterable[Examples]) -> tuple[Mixture, Kept]:
        """Return the mixture after more rows, and the new state."""
        family, data, mixture, kept = self._ready(mixture, kept)
        for rows in parts:
            mixture, sums = family.widened(mixture, kept.sums, rows)
            kept = self._joined(mixture, replace(kept, sums=sums), rows)
            mixture, kept = self._step(family, data, mixture, kept)
            growth = GROWTH if self.problem.labelled else REVISION
            if kept.sketch.totals.sum() > growth * kept.sketch.learned.sum():
                mixture, kept = self._revised(mixture, kept)
                family, data, mixture, kept = self._ready(mixture, kept)
        if self.problem.labelled:
            mixture, kept = self._settled(family, data, mixture, kept)
        return mixture, kept

    def _ready(self, mixture: Mixture, kept: Kept) -> tuple[Family, InMemory, Mixture, Kept]:
        """Return the family, the sample, and the mixture and sums enlarged to fit it."""
        family, data, _ = self._family(mixture, kept)
        mixture, sums = family.widened(mixture, kept.sums, data.examples)
        return family, data, mixture, replace(kept, sums=sums)

    def add_labelled(
        self,
        before: Mixture | None,
        kept: Kept | None,
        observed: Observed,
        labels: IntArray,
        weights: FloatArray,
    ) -> tuple[Mixture, Kept]:
        """Return classes after more labelled rows, and the new state."""
        counting = np.flatnonzero(weights > 0)
        own = observed.take(counting), weights[counting], labels[counting]
        if before is None or kept is None:
            mixture = self._classes(observed, labels, weights)
            return mixture, self.begin(mixture, [merge_equal_rows(*own)[0]])
        return self.add(before, kept, [merge_equal_rows(*own)[0]])

    def _joined(self, mixture: Mixture, kept: Kept, rows: Examples) -> Kept:
        """Return the state with the sums of some rows added."""
        seen, new = float(kept.sums.totals.sum()), rows.total
        share = new / (seen + new) if self.problem.labelled else None
        old, fresh = factors(seen, new, share)
        sums = _blend(kept.sums, old, self._expect(mixture, rows), fresh)
        return replace(kept, sums=sums, sketch=self._extended(kept.sketch, rows))

    def _step(
        self, family: Family, data: InMemory, mixture: Mixture, kept: Kept
    ) -> tuple[Mixture, Kept]:
        """Return the parameters computed from the sums, and the sums in their terms."""
        model = family.following(data, mixture.model, kept.sums, 0)[0].whole()
        sums = family.carried(mixture.model, kept.sums, model)
        return Mixture(model, family.log_shares(sums.totals)), replace(kept, sums=sums)

    def _settled(
        self, family: Family, data: InMemory, mixture: Mixture, kept: Kept
    ) -> tuple[Mixture, Kept]:
        """Return the parameters after as many steps as still change them."""
        for _ in range(self.rule.max_iter):
            before = mixture.model
            mixture, kept = self._step(family, data, mixture, kept)
            if family.closed_form or family.distance(before, mixture.model) < self.rule.tol:
                break
        return mixture, kept

    def _revised(self, mixture: Mixture, kept: Kept) -> tuple[Mixture, Kept]:
        """Return the mixture with new blocks and trees, if the sample suggests other ones."""
        sketch = replace(kept.sketch, learned=kept.sketch.totals)
        if self.problem.labelled:
            after = self._classes(sketch.observed, sketch.label, sketch.sample_weights)
        else:
            after = self._settle(mixture, kept)
        if _same_structure(mixture.model, after.model):
            return mixture, replace(kept, sketch=sketch)
        sums = _bare(self._expect(after, self._sample(sketch)))
        return after, replace(kept, sums=sums, sketch=sketch)

    def _settle(self, mixture: Mixture, kept: Kept) -> Mixture:
        """Return the mixture after a few iterations of EM on the sample.

        A family whose blocks are learned by the previous family in the chain also starts from that
        family's fit, given the current posteriors; the result with the higher likelihood is taken.
        """
        family, data, mixture = self._family(mixture, kept)
        totals = np.exp(mixture.log_prior) * data.total
        found = [self._run(data, family, EMState(mixture, mixture, totals))]
        structure = self.problem.structure
        learned = isinstance(structure, BlockLearner) and structure.needs_moments
        if self.spec.before is not None and learned:
            found.append(self._anew(data, family.problem, mixture))
        return max(found, key=lambda state: state.history[-1]).best

    def _anew(self, data: InMemory, problem: Problem, mixture: Mixture) -> EMState:
        """Return the result of EM from a mixture's posteriors, via the previous family."""
        first, *others = families_of(self.spec, problem)
        state = self._run(data, first, begin(data, first, data.expect(mixture)))
        for family in others:
            sums = data.expect(state.best)
            state = self._run(data, family, begin(data, family, sums, 0, state.best))
        return state

    def _run(self, data: InMemory, family: Family, state: EMState) -> EMState:
        rule = StopRule(0.0, ROUNDS)
        return run_em(data, family, state, rule, learners=learners_of(family, data))

    def _classes(self, observed: Observed, labels: IntArray, weights: FloatArray) -> Mixture:
        """Return the result of fitting classes to some rows."""
        problem = replace(self.problem, open_ended=True)
        fitted = fit_classes(self.spec, problem, observed, labels, weights, self.rule, self.n_jobs)
        return Mixture(fitted.model, Family.log_shares_of(fitted.totals))

    def _sample(self, sketch: Sketch) -> Examples:
        label = sketch.label if self.problem.labelled else None
        return merge_equal_rows(sketch.observed, sketch.sample_weights, label)[0]

    def _family(self, mixture: Mixture, kept: Kept) -> tuple[Family, InMemory, Mixture]:
        """Return the family with a prior from the sample, the sample and a mixture for it."""
        data = InMemory(self._sample(kept.sketch), n_jobs=self.n_jobs)
        problem = replace(self.problem, examples=data.examples, open_ended=True, anchor=kept.first)
        family = self.spec.family(problem)
        assert isinstance(family, Family)
        return family, data, family.resume(data, mixture)

    def _expect(self, mixture: Mixture, rows: Examples) -> Sums:
        return mixture.model.expect(InMemory(rows, n_jobs=self.n_jobs), mixture.log_prior)

    def _extended(self, sketch: Sketch, rows: Examples) -> Sketch:
        if self.problem.labelled:
            groups = [
                _group(rows, np.flatnonzero(rows.clamp == y)) for y in range(sketch.totals.size)
            ]
        else:
            groups = [_group(rows, np.arange(rows.rows.n_rows))]
        return sketch.add(rows.rows, groups, self.n_jobs, rows.holes)


def _group(rows: Examples, members: IntArray) -> Group:
    return Group(members, rows.weights[members])


def _bare(sums: Any) -> Any:
    """Return sums without the posteriors of single rows."""
    return _blend(sums, 1.0, sums, 0.0)


def _blend(one: Any, share: float, other: Any, other_share: float) -> Any:
    """Return a weighted sum of the sums of several passes, part by part.

    >>> _blend([np.ones(2), 3.0], 2.0, [np.zeros(2), 1.0], 1.0)
    [array([2., 2.]), 7.0]
    """
    if one is None:
        return None
    if isinstance(one, dict):
        return {name: _blend(part, share, other[name], other_share) for name, part in one.items()}
    if isinstance(one, list | tuple):
        pairs = zip(one, other, strict=True)
        return type(one)(_blend(a, share, b, other_share) for a, b in pairs)
    if is_dataclass(one) and not isinstance(one, type):
        left_out = {"posterior": NO_POSTERIOR, "recipe": None} if isinstance(one, Sums) else {}
        blended = {
            field.name: _blend(
                getattr(one, field.name), share, getattr(other, field.name), other_share
            )
            for field in fields(one)
            if field.name not in left_out
        }
        return type(one)(**blended, **left_out)
    return share * one + other_share * other


def _same_structure(one: Model, other: Model) -> bool:
    """Whether two models have the same blocks and trees."""
    blocks = zip(one.partitions, other.partitions, strict=True)
    edges = zip(one.edges(), other.edges(), strict=True)
    return all(a.same_as(b) for a, b in blocks) and all(np.array_equal(a, b) for a, b in edges)
