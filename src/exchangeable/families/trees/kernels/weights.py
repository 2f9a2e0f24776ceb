"""What the nodes of a forest weigh under a tilt."""

from exchangeable.runtime.kernels.loops import inlined
from exchangeable.runtime.kernels.vectors import scaled_power, vectorise

LOG_LEAST = -700.0
"""Weights whose logarithm, relative to the larger one of a node, is smaller count as zero. So do
coefficients below 1e-300 of the sum of all."""


@vectorise
def weigh_nodes(forest, state, tilt, nodes):  # type: ignore[no-untyped-def]
    """Write what each node weighs off and on, over the larger, and the factor of its edge."""
    parent, slope, pair = forest.parent, forest.slope, forest.pair
    is_off, is_on, linked = nodes[0], nodes[1], nodes[2]
    n = parent.size
    # Loops without a branch are compiled to vector instructions.
    for v in range(n):
        weight = slope[v] + tilt
        smaller = scaled_power(max(-abs(weight), LOG_LEAST)) if abs(weight) < -LOG_LEAST else 0.0
        is_off[v] = 1.0 if weight <= 0.0 else smaller
        is_on[v] = smaller if weight <= 0.0 else 1.0
    for v in range(n):
        if state[v] >= 0:
            is_off[v], is_on[v] = 1.0 - state[v], 1.0 * state[v]
    for v in range(n):
        both = scaled_power(min(max(pair[v], LOG_LEAST), -LOG_LEAST))
        linked[v] = both if parent[v] < n else 1.0


@inlined
def log_larger_weights(slope, state, tilt):  # type: ignore[no-untyped-def]
    """Return the sum of the logarithms of the weights over which `weigh_nodes` takes them."""
    result = 0.0
    for v in range(slope.size):
        if state[v] < 0:
            result += max(slope[v] + tilt, 0.0)
        elif state[v] == 1:
            result += slope[v]
    return result
