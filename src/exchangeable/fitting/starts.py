"""Where EM starts: the first posteriors of a mixture."""

import numpy as np

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.data.examples import Examples
from exchangeable.data.observed import flags
from exchangeable.families.blocks import holes
from exchangeable.families.blocks.model import BlockModel
from exchangeable.families.blocks.passes import expect
from exchangeable.partitions import Partition

STARTS = ("rows", "random", "both")
OWN_SHARE = 0.25
SINGLE_STEPS = 5


def first_posterior(
    name: str,
    examples: Examples,
    member: IntArray,
    row_weight: FloatArray,
    n_components: int,
    rng: np.random.Generator,
) -> FloatArray:
    """Return the posteriors from which the first parameters are estimated.

    Parameters
    ----------
    name : {"rows", "random"}
        ``"random"`` deals the rows out to the components at random, equally many to each, as in
        the paper. ``"rows"`` gives each component the average of all rows pulled towards one of
        them, and lets naive Bayes settle for a few iterations.
    examples, member, row_weight
        The distinct rows; which of them each row of the data is; and how much that row counts.
    n_components : int
        Number of components.
    rng : Generator
        Source of the draws.
    """
    if name == "random":
        dealt = rng.permutation(member.size) % n_components
        share = np.zeros((examples.weights.size, n_components))
        np.add.at(share, (member, dealt), row_weight)
        return np.asarray(share / share.sum(axis=1, keepdims=True))
    chosen = rng.choice(member, size=n_components, replace=False)
    return _settle_singles(examples, chosen)


def _settle_singles(examples: Examples, chosen: IntArray) -> FloatArray:
    """Run a few iterations of naive Bayes EM from components that lean towards chosen rows."""
    known = BlockModel.of_known_entries(examples, np.ones((examples.rows.n_rows, 1)), 0.1)
    average = known.histograms[0][1::2] / examples.total
    chosen_rows = examples.observed.take(chosen)
    own = np.where(chosen_rows.hole_flags(), average, flags(chosen_rows.ones))
    model = leaning_singles(average, own, examples.total)
    singles = model.partitions
    for _ in range(SINGLE_STEPS):
        model.set_tables(0.1, 1)
        log_prior = np.log(np.maximum(model.totals, 1e-300) / model.totals.sum())
        if examples.holes is None:
            found = expect(examples, singles, model.made_tables, log_prior, moments=False, n_jobs=1)
        else:
            found = holes.expect(examples, model.made_tables, log_prior, n_jobs=1)
        model = BlockModel(singles, found.histograms, found.totals)
    return found.posterior


def leaning_singles(average: FloatArray, own: FloatArray, total: float) -> BlockModel:
    """Return independent variables, each component's means pulled from the average to its own."""
    n_components, n_variables = own.shape
    means = (1 - OWN_SHARE) * average + OWN_SHARE * own
    singles = [Partition.from_labels(np.arange(n_variables))] * n_components
    totals = np.full(n_components, total / n_components)
    histograms = [
        np.stack([totals[y] * (1 - p), totals[y] * p], axis=1).ravel() for y, p in enumerate(means)
    ]
    return BlockModel(singles, histograms, totals)
