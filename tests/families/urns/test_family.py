"""Weighted urns: what their steps lead to."""

import numpy as np
import pytest

from enumeration import all_states
from exchangeable.data.observed import Observed
from exchangeable.families.common.em_data import InMemory
from exchangeable.families.common.log_linear.model import expect_rows
from exchangeable.families.problem import Problem
from exchangeable.families.urns import polynomials
from exchangeable.families.urns.family import UrnFamily
from exchangeable.families.urns.model import UrnModel
from exchangeable.partitions import Partition
from exchangeable.structure.proposals import Proposal
from made_rows import bound_clusters, examples_of

N = 6


def test_a_weighted_urn_expects_what_is_observed():
    """At the end of the scaling E[x_j] given the counts is the observed frequency."""
    X = bound_clusters(500)
    examples = examples_of(X)
    partition = Partition.from_labels([0] * N)
    urns = UrnFamily(Problem(1, [partition], examples=examples, pooling=1e-9, alpha=0.1))
    data, given = InMemory(examples), np.ones((examples.rows.n_rows, 1))
    sums = urns.held(data, given)
    model = urns.first(data, sums, Proposal([partition]), None, None).model
    held = expect_rows(model, examples, np.zeros(1), given=given)
    for step in range(200):
        (model,) = urns.following(data, model, held, step)
    expected = polynomials.expected_ones([partition], model.polynomials, list(held.counts.T))
    np.testing.assert_allclose(expected[:, 0], X.sum(axis=0), rtol=1e-6)


def urns(labels, log_weights, impossible=()):
    """Return one class of urns in which all counts but some are equally probable."""
    partition = Partition.from_labels(labels)
    log_q = np.zeros(partition.table_size)
    log_q[list(impossible)] = -np.inf
    parts = np.split(log_q, partition.starts[1:])
    q = np.concatenate([part - np.log(np.exp(part).sum()) for part in parts])
    return UrnModel.make([partition], np.array(log_weights, dtype=float)[:, None], [q])


def test_parameters_are_weights_up_to_their_scale_and_probabilities_of_counts():
    """A block of m variables has m − 1 weights that matter and m free probabilities of counts."""
    weights = [0.1, 0.5, -0.3, 0.2, 0.7]
    assert urns([0] * 5, weights).n_parameters == 4 + 5
    assert urns([0, 0, 0, 1, 1], weights).n_parameters == 2 + 3 + 1 + 2
    assert urns(range(5), weights).n_parameters == 5  # single variables: weights do nothing
    assert urns([0, 0, 0, 1, 1], weights, impossible=[3]).n_parameters == 2 + 2 + 1 + 2
    assert urns([0] * 5, [0.3] * 5).n_parameters == 5  # equal weights: the paper's block
    two = UrnModel.stack([urns([0] * 5, weights), urns([0, 0, 0, 1, 1], weights)])
    assert two.n_parameters == 9 + 8


@pytest.mark.parametrize("labels", [[0] * 5, [0, 0, 0, 1, 1], [0, 1, 1, 1, 1]])
def test_as_many_parameters_are_counted_as_directions_change_the_distribution(labels):
    """The rank of the derivative of all probabilities by all parameters."""
    rng = np.random.default_rng(0)
    model = urns(labels, rng.normal(size=5))
    (partition,), states = model.partitions, Observed.from_symbols(all_states(5))

    def probabilities(change):
        weights, free = np.split(change, [5])
        log_q = [
            part - np.logaddexp.reduce(part)
            for part in np.split(model.log_q[0] + free, partition.starts[1:])
        ]
        moved = model.log_weights + weights[:, None]
        return np.exp(
            UrnModel.make([partition], moved, [np.concatenate(log_q)]).score(states)[:, 0]
        )

    size = 1e-4
    directions = size * np.eye(5 + partition.table_size)
    slopes = [probabilities(d) - probabilities(-d) for d in directions]
    rank = np.linalg.matrix_rank(np.stack(slopes) / (2 * size), tol=1e-6)
    assert model.n_parameters == rank
