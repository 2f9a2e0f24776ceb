"""Inner loops of forests: the choice of edges, and the order of nodes."""

import numpy as np

from exchangeable.runtime.kernels.cache import compiled
from exchangeable.runtime.kernels.loops import fill, inlined

_compile = compiled()


@_compile
def prim(gains, parent):  # type: ignore[no-untyped-def]
    """Write the parents of the maximum spanning forest of a dense graph (Prim's algorithm)."""
    n = gains.shape[0]
    best, outside = np.empty(n), np.empty(n, np.bool_)
    for j in range(n):
        best[j], parent[j], outside[j] = 0.0, n, True
    for _ in range(n):
        v, highest = -1, -1.0
        for j in range(n):
            if outside[j] and best[j] > highest:
                v, highest = j, best[j]
        outside[v] = False
        for j in range(n):
            if outside[j] and gains[v, j] > best[j]:
                best[j] = gains[v, j]
                parent[j] = v


@_compile
def order_nodes(parent, order, position):  # type: ignore[no-untyped-def]
    """Write an order in which parents come first, and each variable's position in it.

    It is depth first, so that a subtree is a contiguous part of the order.
    """
    n = parent.size
    first, following = np.empty(n + 1, np.int64), np.empty(n, np.int64)
    fill(first, -1)
    for v in range(n - 1, -1, -1):
        following[v] = first[parent[v]]
        first[parent[v]] = v
    stack = np.empty(n + 1, dtype=np.int64)
    depth, n_ordered = 0, 0
    stack[0] = first[n]
    position[n] = n
    while depth >= 0:
        v = stack[depth]
        if v < 0:
            depth -= 1
            continue
        stack[depth] = following[v]
        order[n_ordered] = v
        position[v] = n_ordered
        n_ordered += 1
        depth += 1
        stack[depth] = first[v]


@inlined
def table_gain(n11, n10, n01, n00, e11, e10, e01, e00):  # type: ignore[no-untyped-def]
    """Return Σ n·log(n / e) over the four cells of a pair."""
    gain = 0.0
    if n11 > 0.0:
        gain += n11 * np.log(n11 / e11)
    if n10 > 0.0:
        gain += n10 * np.log(n10 / e10)
    if n01 > 0.0:
        gain += n01 * np.log(n01 / e01)
    if n00 > 0.0:
        gain += n00 * np.log(n00 / e00)
    return gain


@_compile
def pair_gains(weight, ones, both, penalty, gains):  # type: ignore[no-untyped-def]
    """Write weight times mutual information of every pair, minus a penalty per edge."""
    n = ones.size
    for i in range(n):
        gains[i, i] = 0.0
        for j in range(i):
            n11 = both[i, j]
            n10, n01 = ones[i] - n11, ones[j] - n11
            n00 = weight - n11 - n10 - n01
            e11 = ones[i] * ones[j] / weight
            e10, e01 = ones[i] - e11, ones[j] - e11
            e00 = weight - e11 - e10 - e01
            gain = table_gain(n11, n10, n01, n00, e11, e10, e01, e00)
            gains[i, j] = gain - penalty
            gains[j, i] = gain - penalty
