"""Count polynomials of forests whose nodes are bound so closely that tilts jump over counts."""

import numpy as np
import pytest
from scipy.special import logsumexp

from enumeration import all_states
from exchangeable.families.trees import polynomials


def chain(n, pair, rng):
    """Return a chain's parameters: node j hangs on node j − 1."""
    slope = rng.uniform(-9.0, -5.0, (n, 1))
    parent = np.arange(-1, n - 1, dtype=np.int32)[:, None]
    parent[0] = n
    return slope, parent, np.full((n, 1), pair)


def log_counts_of_chain(slope, pair):
    """The same in log space, one node after the other, from the last to the first."""
    n = len(slope)
    off, on = np.full(n + 1, -np.inf), np.full(n + 1, -np.inf)
    off[0] = 0.0
    on[1] = slope[-1, 0]
    for j in range(n - 2, -1, -1):
        when_on = np.logaddexp(off, on + pair[j + 1, 0])
        when_off = np.logaddexp(off, on)
        off = when_off
        on = np.concatenate([[-np.inf], when_on[:-1] + slope[j, 0]])
    return np.logaddexp(off, on)


@pytest.mark.parametrize("top", [150, 90, 30, 3])
@pytest.mark.parametrize("pair", [0.0, 4.0, 7.0, 12.0, -3.0])
def test_all_counts_come_into_sight(pair, top):
    slope, parent, pairs = chain(150, pair, np.random.default_rng(0))
    found, tilts = polynomials.log_counts(slope, parent, pairs, top)
    np.testing.assert_allclose(
        found[:, 0], log_counts_of_chain(slope, pairs)[: top + 1], rtol=1e-10, atol=1e-9
    )
    mass = np.zeros((151, 1))
    mass[: top + 1] = 1.0
    ones, both = polynomials.expected_pairs(slope, parent, pairs, mass, tilts)
    assert np.isfinite(ones).all()
    assert np.isfinite(both).all()
    assert ones.sum() == pytest.approx(np.arange(top + 1).sum(), rel=1e-9)
    again, _ = polynomials.expected_pairs(slope, parent, pairs, mass)
    np.testing.assert_allclose(again, ones, rtol=1e-9)


@pytest.mark.parametrize("top", [12, 5, 1, 0])
@pytest.mark.parametrize("n_leaves", [1, 2, 7, 8, 10])
@pytest.mark.parametrize("rooted", [False, True], ids=["below a node", "roots"])
def test_leaves_of_one_node_are_multiplied_as_enumerated(n_leaves, rooted, top):
    """A path with leaves at its first node, or as trees of their own."""
    n, rng = 12, np.random.default_rng(n_leaves)
    slope, pair = rng.normal(0.0, 3.0, (2, n, 1))
    parent = np.arange(-1, n - 1, dtype=np.int32)[:, None]
    parent[n - n_leaves :] = n if rooted else 0
    parent[0] = n
    states = all_states(n).astype(float)
    above = np.concatenate([states, np.zeros((len(states), 1))], axis=1)[:, parent[:, 0]]
    scores, counts = states @ slope[:, 0] + (states * above) @ pair[:, 0], states.sum(axis=1)
    expected = [logsumexp(scores[counts == count]) for count in range(top + 1)]
    found, tilts = polynomials.log_counts(slope, parent, pair, top)
    np.testing.assert_allclose(found[:, 0], expected, rtol=1e-11, atol=1e-11)
    mass = np.zeros((n + 1, 1))
    mass[: top + 1, 0] = rng.random(top + 1)
    within = counts <= top
    share = np.exp(scores[within] - found[counts[within].astype(int), 0])
    share *= mass[counts[within].astype(int), 0]
    ones, pairs = polynomials.expected_pairs(slope, parent, pair, mass, tilts)
    np.testing.assert_allclose(ones[:, 0], share @ states[within], rtol=1e-10, atol=1e-12)
    both = share @ (states * above)[within]
    np.testing.assert_allclose(pairs[:, 0], both, rtol=1e-10, atol=1e-12)
