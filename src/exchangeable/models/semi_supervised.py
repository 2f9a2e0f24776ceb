"""Labels that are partly missing: structural EM over the posteriors of the unlabelled rows."""

import numpy as np

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.engines.cpu import Group
from exchangeable.engines.em import Expectation
from exchangeable.engines.examples import merge_equal_rows, take_rows
from exchangeable.engines.rows import Rows
from exchangeable.models.blocks import fit_blocks, learn_partitions
from exchangeable.models.em import EMSettings, EMState, run_em
from exchangeable.partitions import Partition
from exchangeable.structure.learner import NEGLIGIBLE, Structure


def fit_partly_labelled(
    rows: Rows,
    label: IntArray,
    weight: FloatArray,
    n_classes: int,
    structure: Structure,
    settings: EMSettings,
) -> EMState:
    """Fit classes to rows of which some have a label (0..k − 1) and some do not (−1).

    EM starts from the labelled rows alone; their posteriors stay what their labels say.
    """
    counting = np.flatnonzero(weight > 0)
    if (label[counting] < 0).all():
        raise ValueError("sample_weight is zero for every labelled row; one must count")
    examples, _ = merge_equal_rows(take_rows(rows, counting), weight[counting], label[counting])

    def groups_of(posterior: FloatArray) -> list[Group]:
        groups = []
        for y in range(n_classes):
            mass = examples.weights * posterior[:, y]
            members = np.flatnonzero(mass > NEGLIGIBLE)
            groups.append(Group(members, mass[members]))
        return groups

    def learn(posterior: FloatArray) -> list[Partition]:
        return learn_partitions(examples.rows, groups_of(posterior), structure, settings.n_jobs)

    def relearn(expectation: Expectation) -> list[list[Partition]]:
        return [learn(expectation.posterior)]

    known = (examples.clamp[:, None] == np.arange(n_classes)).astype(np.float64)
    groups = groups_of(known)
    model = fit_blocks(examples.rows, groups, learn(known), settings.alpha, settings.n_jobs)
    log_prior = settings.fixed_prior
    if log_prior is None:
        with np.errstate(divide="ignore"):
            log_prior = np.log(model.totals / model.totals.sum())
    learned = not isinstance(structure, list) and structure.needs_moments
    return run_em(examples, EMState(model, log_prior), [relearn] if learned else [], settings)
