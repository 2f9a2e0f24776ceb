"""Fitting weighted urns and trees to classes: the same families, with labels as posteriors."""

from collections.abc import Callable

import numpy as np

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.data.examples import Examples, merge_equal_rows
from exchangeable.data.groups import Group
from exchangeable.data.observed import Observed
from exchangeable.families.blocks.model import learn_partitions
from exchangeable.families.common.expectation import expect
from exchangeable.families.common.log_linear import Sums
from exchangeable.families.count_trees.model import CountTreeModel
from exchangeable.families.hidden_trees.model import HiddenModel
from exchangeable.families.trees.family import TreeFamily
from exchangeable.families.trees.model import TreeModel
from exchangeable.families.urns.family import DensityModel, Family, IndependentFamily
from exchangeable.families.urns.model import UrnModel
from exchangeable.fitting.density_fit import DensityOptions, DensityRuns, given_sums
from exchangeable.fitting.incomplete import fit_incomplete
from exchangeable.fitting.structural_em import EMSettings
from exchangeable.partitions import Partition


def fit_labelled(
    observed: Observed,
    labels: IntArray,
    weights: FloatArray,
    options: DensityOptions,
    n_jobs: int | None = None,
) -> tuple[UrnModel | TreeModel | CountTreeModel, FloatArray, int]:
    """Return the model whose classes fit rows with labels 0..k − 1.

    With it come the classes' weights, and the number of steps it took.
    """
    examples = merge_equal_rows(observed, weights, labels)[0]
    posterior = (examples.clamp[:, None] == np.arange(options.n_components)).astype(np.float64)
    totals = examples.weights @ posterior
    if options.kind == "count tree":
        blocks = _class_blocks(observed, labels, weights, options, n_jobs)
        trees, steps = _fit_count_trees(examples, posterior, blocks, options, n_jobs)
        return trees, totals, steps
    model, steps = fit_classes(examples, posterior, options, n_jobs)
    return model, totals, steps


def _class_blocks(
    observed: Observed,
    labels: IntArray,
    weights: FloatArray,
    options: DensityOptions,
    n_jobs: int | None,
) -> list[Partition]:
    """Return the blocks of each class as the paper's model has them."""
    k, structure = options.n_components, options.structure
    if observed.holes is not None:
        rule = options.rule
        settings = EMSettings(options.alpha, rule.tol, rule.max_iter, n_jobs=n_jobs)
        return fit_incomplete(observed, labels, weights, k, structure, settings).model.partitions
    members = [np.flatnonzero((labels == y) & (weights > 0)) for y in range(k)]
    groups = [Group(chosen, weights[chosen]) for chosen in members]
    return learn_partitions(observed.ones, groups, structure, n_jobs)


def _fit_count_trees(
    examples: Examples,
    posterior: FloatArray,
    partitions: list[Partition],
    options: DensityOptions,
    n_jobs: int | None,
) -> tuple[CountTreeModel, int]:
    """Return trees over counts that fit given posteriors, and the number of steps that took."""
    runs = DensityRuns.of(examples, None, options, [np.random.default_rng(0)])
    family, sums = runs.count_trees(partitions), given_sums(runs.filled, posterior, n_jobs)
    model = family.first(examples, sums, n_jobs)
    if examples.holes is None:
        return model, 1
    step, worth = 0, -np.inf
    while step < options.rule.max_iter:
        step += 1
        held = expect(model, examples, sums.totals, n_jobs, given=posterior)
        after = family.following(examples, model, held, 0, n_jobs)
        each = (after.score(examples.observed, n_jobs) * posterior).sum(axis=1)
        found = float(examples.weights @ each) / examples.total
        if not found > worth:
            break
        model, gain, worth = after, found - worth, found
        if gain < options.rule.tol:
            break
    return model, step


def fit_classes(
    examples: Examples,
    posterior: FloatArray,
    options: DensityOptions,
    n_jobs: int | None = None,
) -> tuple[UrnModel | TreeModel | CountTreeModel, int]:
    """Return the model whose classes fit given posteriors, and the number of steps that took."""
    runs = DensityRuns.of(examples, None, options, [np.random.default_rng(0)])
    sums = given_sums(runs.filled, posterior, n_jobs)
    families: list[Callable[[DensityModel | None], Family]] = []
    if options.kind == "independent":
        families = [lambda _: IndependentFamily(runs.pool)]
    elif options.kind == "tree":
        families = [lambda _: runs.trees()]
    else:
        urns = runs.urns(runs.partitions(sums))
        families = [lambda _: urns]
        if options.kind == "weighted tree":
            families.append(lambda fitted: runs.weighted_trees(urns, fitted))  # type: ignore[arg-type]
    model: DensityModel | None = None
    steps, begun = 0, runs.filled
    for family in families:
        model, more = _settle(runs, begun, posterior, family(model), sums, n_jobs)
        steps, begun = steps + more, examples
        sums = expect(model, examples, sums.totals, n_jobs, posterior)
    if model is None or isinstance(model, HiddenModel):
        raise RuntimeError(f"{options.kind} cannot be fitted to labels")
    return model.whole(), steps


def _settle(
    runs: DensityRuns,
    begun: Examples,
    posterior: FloatArray,
    family: Family,
    sums: Sums,
    n_jobs: int | None,
) -> tuple[DensityModel, int]:
    """Repeat a family's step with fixed posteriors until the parameters move no more."""
    model = family.first(begun, sums, n_jobs)
    complete = runs.examples.holes is None
    if complete and isinstance(family, IndependentFamily | TreeFamily):
        return model, 1
    step, rule, held = 0, runs.options.rule, None
    while step < rule.max_iter:
        step += 1
        if held is None or not complete:
            held = expect(model, runs.examples, sums.totals, n_jobs, given=posterior)
        after = family.following(runs.examples, model, held, step, n_jobs)
        if isinstance(model, HiddenModel) or isinstance(after, HiddenModel):
            raise TypeError("a hidden tree cannot be fitted to labels")
        moved = np.sqrt(np.mean((after.slope - model.slope) ** 2))
        model = after
        if moved < rule.tol:
            break
    return model, step
