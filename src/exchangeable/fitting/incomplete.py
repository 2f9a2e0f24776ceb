"""Classes whose rows are incomplete: labels or entries are missing, and EM fills them in."""

import numpy as np

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.data.examples import merge_equal_rows
from exchangeable.data.groups import Group, group_ones
from exchangeable.data.observed import Observed
from exchangeable.families.blocks.model import learn_partitions
from exchangeable.families.blocks.passes import Expectation
from exchangeable.fitting.completion import CompletedRows, completed_proposals
from exchangeable.fitting.restarts import FitProgress
from exchangeable.fitting.structural_em import (
    EMSettings,
    EMState,
    Relearn,
    run_em,
    soft_proposals,
    start_from_posterior,
)
from exchangeable.partitions import Partition
from exchangeable.structure.learner import NEGLIGIBLE, Structure


def fit_incomplete(
    observed: Observed,
    label: IntArray,
    weight: FloatArray,
    n_classes: int,
    structure: Structure,
    settings: EMSettings,
) -> EMState:
    """Fit classes to rows of which some have a label (0..k − 1) and some do not (−1).

    EM starts from the labelled rows alone; their posteriors stay what their labels say. Of rows
    with holes it sums over the hidden counts.
    """
    counting = np.flatnonzero(weight > 0)
    if (label[counting] < 0).all():
        raise ValueError("sample_weight is zero for every labelled row; one must count")
    examples, _ = merge_equal_rows(observed.take(counting), weight[counting], label[counting])

    def choose(expectation: Expectation) -> list[list[Partition]]:
        groups = []
        for y in range(n_classes):
            mass = examples.weights * expectation.posterior[:, y]
            members = np.flatnonzero(mass > NEGLIGIBLE)
            groups.append(Group(members, mass[members]))
        return [learn_partitions(examples.rows, groups, structure, settings.n_jobs)]

    def choose_one(completed: CompletedRows, y: int) -> list[Partition]:
        if isinstance(structure, list):
            return [structure[y]]
        ones = group_ones(completed.rows, [completed.group], 1)[0]
        return [structure.learn(completed.rows, completed.group, ones)]

    relearn: Relearn
    if examples.holes is None:
        relearn = soft_proposals(choose)
    else:
        relearn = completed_proposals(examples, choose_one, settings.n_jobs)
    known = (examples.clamp[:, None] == np.arange(n_classes)).astype(np.float64)
    state = start_from_posterior(examples, known, relearn, settings)
    learned = not isinstance(structure, list) and structure.needs_moments
    with FitProgress(1, settings.max_iter) as progress:
        return run_em(
            examples,
            state,
            [relearn] if learned else [],
            settings,
            lambda state: progress.update(0, state),
        )
