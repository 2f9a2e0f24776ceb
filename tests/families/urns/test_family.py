"""Weighted urns: what their steps lead to."""

import numpy as np

from exchangeable.families.common.em_data import InMemory
from exchangeable.families.common.log_linear_model import expect_rows
from exchangeable.families.problem import Problem
from exchangeable.families.urns import polynomials
from exchangeable.families.urns.family import UrnFamily
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
