"""Gains of the edges of a weighted tree over a weighted urn, for every pair of variables."""

from exchangeable.families.common.forest_kernels import table_gain
from exchangeable.runtime.kernels.cache import compiled
from exchangeable.runtime.kernels.loops import inlined

_compile = compiled()


@_compile
def urn_pair_gains(weight, ones, both, theta, ranked, rank, expected_ones, penalty, gains):  # type: ignore[no-untyped-def]
    """Write weight times divergence of every pair from its expectation under a weighted urn.

    Given the count, P(x_i = 1, x_j = 0) / P(x_i = 0, x_j = 1) = θ_i / θ_j, which gives E[x_i·x_j]
    from E[x_i] and E[x_j], unless θ_i and θ_j are too close: then one of them is replaced by a
    neighbour in the order of θ. `ranked` lists the variables by ascending θ, `rank` is the position
    of each in that list.
    """
    n = ones.size
    for i in range(n):
        gains[i, i] = 0.0
        for j in range(i):
            e11 = _urn_pair(i, j, weight, theta, expected_ones, ranked, rank)
            low = max(0.0, expected_ones[i] + expected_ones[j] - weight)
            e11 = min(max(e11, low), min(expected_ones[i], expected_ones[j]))
            floor = 1e-9 * weight
            e11 = max(e11, floor)
            e10 = max(expected_ones[i] - e11, floor)
            e01 = max(expected_ones[j] - e11, floor)
            e00 = max(weight - e11 - e10 - e01, floor)
            n11 = both[i, j]
            n10, n01 = max(ones[i] - n11, 0.0), max(ones[j] - n11, 0.0)
            n00 = max(weight - n11 - n10 - n01, 0.0)
            gain = table_gain(n11, n10, n01, n00, e11, e10, e01, e00)
            gains[i, j] = gain - penalty
            gains[j, i] = gain - penalty


@inlined
def _urn_pair(i, j, weight, theta, expected_ones, ranked, rank):  # type: ignore[no-untyped-def]
    """Return E[x_i·x_j] in a weighted urn.

    `ranked` lists the variables by ascending weight, `rank` is the position of each in that list.
    """
    close = 1e-3
    a, b = i, j
    if abs(theta[a] - theta[b]) <= close * theta[a]:
        n = theta.size
        up, down = rank[a], rank[b]
        if up < down:
            up, down = down, up
        while (
            up < n - 1 and down > 0 and theta[ranked[up]] - theta[ranked[down]] <= close * theta[a]
        ):
            up, down = up + 1, down - 1
        while up < n - 1 and theta[ranked[up]] - theta[ranked[down]] <= close * theta[a]:
            up += 1
        while down > 0 and theta[ranked[up]] - theta[ranked[down]] <= close * theta[a]:
            down -= 1
        a, b = ranked[up], ranked[down]
        if theta[a] <= theta[b]:
            return expected_ones[i] * expected_ones[j] / weight
    return (theta[a] * expected_ones[b] - theta[b] * expected_ones[a]) / (theta[a] - theta[b])
