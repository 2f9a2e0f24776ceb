"""Mixtures of blocks updated in batches, by stochastic EM.

The sums of the rows so far move towards those of each new part with a decreasing step size
(`families.common.steps`). Blocks are revised now and then, on a sample of all rows.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from exchangeable.data.examples import Examples, merge_equal_rows
from exchangeable.data.groups import Group
from exchangeable.data.sketch import Sketch
from exchangeable.families.blocks.family import BlockFamily
from exchangeable.families.blocks.model import BlockModel
from exchangeable.families.common.em_data import InMemory
from exchangeable.families.common.streaming.steps import REVISION, factors
from exchangeable.families.mixture import Mixture
from exchangeable.families.problem import Problem
from exchangeable.structure.proposals import learners_of

ROUNDS = 3
"""Steps of structural EM with each block learner when blocks are revised."""


class BlockStream:
    """Batches of rows, one after the other."""

    @staticmethod
    def keep(mixture: Mixture, rows: Examples) -> Mixture:
        """Return a fitted mixture that keeps a sample of the rows it was fitted to."""
        model: Any = mixture.model
        sketch = _extended(model.sketch or Sketch.empty(model.n_variables, 1), rows)
        sketch = replace(sketch, learned=sketch.totals)
        return Mixture(_with_sketch(model, sketch), mixture.log_prior)

    @staticmethod
    def add(problem: Problem, mixture: Mixture, rows: Examples, n_jobs: int | None) -> Mixture:
        """Return the mixture after one more part."""
        model: Any = mixture.model
        seen, new = float(model.totals.sum()), rows.total
        sums: Any = model.expect(InMemory(rows, n_jobs=n_jobs), mixture.log_prior)
        old, fresh = factors(seen, new)
        histograms = [
            old * before + fresh * added
            for before, added in zip(model.histograms, sums.histograms, strict=True)
        ]
        totals = old * model.totals + fresh * sums.totals
        moved = BlockModel(model.partitions, histograms, totals, sketch=model.sketch)
        family = BlockFamily(problem)
        family.tabulate(moved, n_jobs)
        after = Mixture(moved, family.log_shares(totals))
        if model.sketch is None:
            return after
        sketch = _extended(model.sketch, rows)
        if sketch.totals[0] > REVISION * sketch.learned[0]:
            after = _revised(problem, after, sketch, n_jobs)
            sketch = replace(sketch, learned=sketch.totals)
        return Mixture(_with_sketch(after.model, sketch), after.log_prior)


def _extended(sketch: Sketch, rows: Examples) -> Sketch:
    everyone = Group(np.arange(rows.rows.n_rows), rows.weights)
    return sketch.add(rows.rows, [everyone], holes=rows.holes)


def _with_sketch(model: Any, sketch: Sketch) -> BlockModel:
    return BlockModel(model.partitions, model.histograms, model.totals, model.tables, sketch)


def _revised(problem: Problem, mixture: Mixture, sketch: Sketch, n_jobs: int | None) -> Mixture:
    """Return the mixture with other blocks, if these increase the likelihood of the sample."""
    examples = merge_equal_rows(sketch.observed, sketch.sample_weights)[0]
    data = InMemory(examples, n_jobs=n_jobs)
    family = BlockFamily(replace(problem, examples=examples))
    before: Any = mixture.model
    learners = learners_of(family, data)
    for propose in [each for each in learners for _ in range(ROUNDS)]:
        sums = data.expect(mixture, moments=True)
        proposals = propose(mixture.model, sums)
        models = family.candidates(data, mixture.model, sums, 1, proposals)
        log_prior = family.log_shares(sums.totals)
        mixture = data.best([Mixture(each, log_prior) for each in models])[1]
    after: Any = mixture.model
    pairs = zip(before.partitions, after.partitions, strict=True)
    kept = [old.same_as(new) for old, new in pairs]
    scale = before.totals / np.maximum(after.totals, 1e-300)
    histograms = [
        before.histograms[y] if same else after.histograms[y] * scale[y]
        for y, same in enumerate(kept)
    ]
    model = BlockModel(after.partitions, histograms, before.totals)
    family.tabulate(model, n_jobs)
    return Mixture(model, mixture.log_prior)
