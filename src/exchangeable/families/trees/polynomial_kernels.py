"""Polynomials of subtrees of a forest of binary variables, and their derivatives.

A forest gives a row the weight exp(Σ_j slope_j·x_j + Σ_j pair_j·x_j·x_parent(j)). The polynomial of
a subtree has as its l-th coefficient the weight of all its assignments with l unknown variables on;
without a count (`counting` false) all coefficients are summed and polynomials are numbers. Every
subtree has two, for its parent off and on. Nodes are numbered in an order in which parents come
first; the parent of a root is node n, which is always off and stands above all roots.

`forest` is a `polynomials.Forest`; `state` holds 0, 1 or −1 (not known) for every node.
Coefficients span hundreds of orders of magnitude: `tilt_kernels` chooses tilts exp(t·l) under which
they can be computed.
"""

from typing import NamedTuple, Self

import numpy as np

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.families.trees.merge_kernels import PAD, Merges, divide_out, multiply, sum_out
from exchangeable.runtime.kernel_cache import for_kernels
from exchangeable.runtime.loops import inlined, total

_helper = for_kernels(fastmath={"reassoc", "contract"})

SMALLEST = 1e-300
"""A coefficient that is a smaller share of the sum of all is taken for zero."""
MUCH = 1e100
"""Logarithms are taken of products of scales, before these leave what is between 1 / MUCH² and
MUCH²."""


class Workspace(NamedTuple):
    """Memory for the polynomials of a forest of n nodes; everything is written before it is read.

    Factors are numbered as in `Merges`.

    Attributes
    ----------
    off, on : arrays
        The polynomials of all factors, for the parent off and on.
    d_off, d_on : arrays
        Derivatives with respect to them.
    start, degree : arrays of shape (2·n,)
        Where each factor's polynomials begin, and their degree.
    sum_off, sum_on : arrays of shape (2·n,)
        The sums of their coefficients.
    node_off, node_on : arrays of shape (n + 1,)
        What a node's two states are multiplied by.
    scale : array of shape (n,)
        What the product of each merge was divided by.
    short_off, short_on : arrays of shape (top + 1 + PAD,)
        The shorter factor of a merge, divided.
    coefficients : array of shape (top + 1,)
        Those of the whole forest.
    """

    off: FloatArray
    on: FloatArray
    d_off: FloatArray
    d_on: FloatArray
    start: IntArray
    degree: IntArray
    sum_off: FloatArray
    sum_on: FloatArray
    node_off: FloatArray
    node_on: FloatArray
    scale: FloatArray
    short_off: FloatArray
    short_on: FloatArray
    coefficients: FloatArray

    @classmethod
    def of(cls, merges: list[Merges], top: int) -> Self:
        """Return a workspace for any of some forests, and polynomials up to degree `top`."""
        n = merges[0].left.size
        lengths = max(int(np.minimum(each.sizes, top).sum()) for each in merges)
        off, on, d_off, d_on = np.empty((4, lengths + 2 * n * (1 + PAD) + PAD))
        start, degree = np.empty((2, 2 * n), dtype=np.int64)
        sum_off, sum_on = np.empty((2, 2 * n))
        node_off, node_on, scale = np.empty((3, n + 1))
        short_off, short_on = np.empty((2, top + 1 + PAD))
        return cls(
            off=off,
            on=on,
            d_off=d_off,
            d_on=d_on,
            start=start,
            degree=degree,
            sum_off=sum_off,
            sum_on=sum_on,
            node_off=node_off,
            node_on=node_on,
            scale=scale,
            short_off=short_off,
            short_on=short_on,
            coefficients=np.empty(top + 1),
        )


@_helper
def _close(factor, start, degree, workspace):  # type: ignore[no-untyped-def]
    """Cut a new factor where it is negligible; return where the next one begins."""
    off, on = workspace.off, workspace.on
    least = SMALLEST * max(workspace.sum_off[factor], workspace.sum_on[factor])
    while degree > 0 and off[start + degree] < least and on[start + degree] < least:
        degree -= 1
    workspace.start[factor], workspace.degree[factor] = start, degree
    end = start + degree + 1
    for i in range(end, end + PAD):
        off[i], on[i] = 0.0, 0.0
    return end + PAD


@_helper
def _merge(m, n, below_all, top, place, workspace):  # type: ignore[no-untyped-def]
    """Multiply the factors of merge m; return where the next one begins.

    `below_all`, the parent is node n, which is never on.
    """
    x, y, out = m[0], m[1], m[2]
    off, on, start, degree = workspace.off, workspace.on, workspace.start, workspace.degree
    sum_off, sum_on = workspace.sum_off, workspace.sum_on
    short_off, short_on = workspace.short_off, workspace.short_on
    if degree[x] < degree[y]:
        x, y = y, x
    when_off, when_on = sum_off[x] * sum_off[y], sum_on[x] * sum_on[y]
    scale = when_off if below_all else max(when_off, when_on)
    scale = scale if scale > 0.0 else 1.0
    workspace.scale[out - n] = scale
    for j in range(degree[y] + 1):
        short_off[j], short_on[j] = off[start[y] + j] / scale, on[start[y] + j] / scale
    for j in range(degree[y] + 1, degree[y] + 1 + PAD):
        short_off[j], short_on[j] = 0.0, 0.0
    whole = degree[x] + degree[y]
    last, zero = min(whole, top), np.int64(0)
    multiply(off, start[x], degree[x], short_off, zero, degree[y], off, place, last)
    if below_all:
        for i in range(place, place + last + 1):
            on[i] = 0.0
    else:
        multiply(on, start[x], degree[x], short_on, zero, degree[y], on, place, last)
    sum_off[out], sum_on[out] = when_off / scale, when_on / scale
    if last < whole or below_all:
        sum_off[out] = total(off[place : place + last + 1])
        sum_on[out] = total(on[place : place + last + 1])
    return _close(out, place, last, workspace)


@_helper
def _lift(v, forest, state, tilt, moves, top, place, workspace):  # type: ignore[no-untyped-def]
    """Make the factor of a node of what is below it.

    Returned are where the next one begins and by which number and which logarithm it was divided.
    """
    off, on, sum_off, sum_on = workspace.off, workspace.on, workspace.sum_off, workspace.sum_on
    below = forest.merges.product[v]
    weight = forest.slope[v] + (tilt if state[v] < 0 else 0.0)
    small = np.exp(-abs(weight))
    when_off = 1.0 if weight <= 0.0 else small
    when_on = small if weight <= 0.0 else 1.0
    larger = max(weight, 0.0)
    if state[v] == 0:
        when_off, when_on, larger = 1.0, 0.0, 0.0
    elif state[v] == 1:
        when_off, when_on, larger = 0.0, 1.0, weight
    elif moves and top == 0:
        when_on = 0.0
    linked = np.exp(forest.pair[v]) if forest.parent[v] < forest.parent.size else 1.0
    shift = 1 if moves and state[v] < 0 and top > 0 else 0
    all_off = when_off * (sum_off[below] if below >= 0 else 1.0)
    all_on = when_on * (sum_on[below] if below >= 0 else 1.0)
    scale = all_off + max(1.0, linked) * all_on
    scale = scale if scale > 0.0 else 1.0
    when_off, when_on = when_off / scale, when_on / scale
    workspace.node_off[v], workspace.node_on[v] = when_off, when_on
    if below < 0:
        last = shift
        off[place], on[place] = when_off, when_off
        if shift:
            off[place + 1], on[place + 1] = 0.0, 0.0
        off[place + shift] += when_on
        on[place + shift] += linked * when_on
    else:
        begin, whole = workspace.start[below], workspace.degree[below] + shift
        last = min(whole, top)
        into_off, into_on = off[place : place + last + 1], on[place : place + last + 1]
        of_off, of_on = off[begin : begin + last + 1], on[begin - shift : begin - shift + last + 1]
        for i in range(into_off.size):
            into_off[i] = when_off * of_off[i] + when_on * of_on[i]
            into_on[i] = when_off * of_off[i] + linked * when_on * of_on[i]
    sum_off[v], sum_on[v] = (all_off + all_on) / scale, (all_off + linked * all_on) / scale
    return _close(v, place, last, workspace), scale, larger


@_helper
def upward(forest, state, tilt, counting, top, workspace):  # type: ignore[no-untyped-def]
    """Compute all polynomials; write the forest's and return the logarithm taken out of it."""
    product, end, left, right, _ = forest.merges
    n, place, m = forest.parent.size, PAD, 0
    for i in range(PAD):
        workspace.off[i], workspace.on[i] = 0.0, 0.0
    scale, log_scale = 1.0, 0.0
    for i in range(n + 1):
        v = n - 1 - i if i < n else n
        while m < end[v]:
            place = _merge((left[m], right[m], n + m), n, v == n, top, place, workspace)
            scale, log_scale = _take_out(workspace.scale[m], scale, log_scale)
            m += 1
        if v < n:
            place, own, larger = _lift(v, forest, state, tilt, counting, top, place, workspace)
            scale, log_scale = _take_out(own, scale, log_scale + larger)
    begin, last = workspace.start[product[n]], workspace.degree[product[n]]
    for count in range(top + 1):
        workspace.coefficients[count] = workspace.off[begin + count] if count <= last else 0.0
    return log_scale + np.log(scale)


@inlined
def _take_out(own, scale, log_scale):  # type: ignore[no-untyped-def]
    """Return the product of scales and the sum of logarithms with one more scale."""
    if own < 1.0 / MUCH or own > MUCH:
        return scale, log_scale + np.log(own)
    if scale < 1.0 / MUCH or scale > MUCH:
        return own, log_scale + np.log(scale)
    return scale * own, log_scale


@_helper
def _unmerge(m, n, below_all, workspace):  # type: ignore[no-untyped-def]
    """Compute the derivatives by the factors of merge m from those by their product."""
    x, y, out = m[0], m[1], m[2]
    start, degree = workspace.start, workspace.degree
    if degree[x] < degree[y]:
        x, y = y, x
    scale, begin, last = workspace.scale[out - n], start[out], degree[out]
    for side in range(1 if below_all else 2):
        values, d = workspace.off, workspace.d_off
        if side:
            values, d = workspace.on, workspace.d_on
        for i in range(begin, begin + last + 1):
            d[i] /= scale
        long, short = (start[x], degree[x]), (start[y], degree[y])
        divide_out(values, short[0], short[1], d, begin, last, d, long[0], long[1])
        sum_out(values, long[0], long[1], d, begin, last, d, short[0], short[1])
        for i in range(PAD):
            d[long[0] + long[1] + 1 + i], d[short[0] + short[1] + 1 + i] = 0.0, 0.0


@_helper
def _lower(v, forest, state, moves, top, workspace):  # type: ignore[no-untyped-def]
    """Compute the derivatives by what is below a node from those by the node's factor.

    Returned are the mass with the node on, and with it and its parent on.
    """
    d_off, d_on = workspace.d_off, workspace.d_on
    below, begin, last = forest.merges.product[v], workspace.start[v], workspace.degree[v]
    is_root = forest.parent[v] == forest.parent.size
    linked = 0.0 if is_root else np.exp(forest.pair[v])
    if is_root:
        for i in range(begin, begin + last + 1 + PAD):
            d_on[i] = 0.0
    when_off, when_on = workspace.node_off[v], workspace.node_on[v]
    shift = 1 if moves and state[v] < 0 and top > 0 else 0
    if below < 0:
        if shift > last:
            return 0.0, 0.0
        both = linked * when_on * d_on[begin + shift]
        return when_on * d_off[begin + shift] + both, both
    first, end = workspace.start[below], workspace.start[below] + workspace.degree[below] + 1
    n_off, n_on = min(end - first, last + 1), min(end - first, last + 1 - shift)
    into_off, from_off = d_off[first : first + n_off], d_off[begin : begin + n_off]
    into_on, from_on = d_on[first : first + n_on], d_on[begin : begin + n_off]
    for i in range(into_off.size):
        into_off[i] = when_off * (from_off[i] + from_on[i])
    ones, pairs = 0.0, 0.0
    values, begin = workspace.on[first : first + n_on], begin + shift
    from_off, from_on = d_off[begin : begin + n_on], d_on[begin : begin + n_on]
    for i in range(values.size):
        by_both = linked * when_on * from_on[i]
        by_on = when_on * from_off[i] + by_both
        into_on[i] = by_on
        ones += values[i] * by_on
        pairs += values[i] * by_both
    for i in range(first + n_off, end + PAD):
        d_off[i] = 0.0
    for i in range(first + n_on, end + PAD):
        d_on[i] = 0.0
    return ones, pairs


@_helper
def downward(forest, state, seeds, counting, top, workspace, ones, pairs):  # type: ignore[no-untyped-def]
    """Add to `ones` and `pairs` the probabilities of each node, and of it and its parent, on.

    `seeds[l]` is the mass of count l over the forest's coefficient for l; reverse mode
    differentiates Σ_l mass_l·log(coefficient_l) with respect to every node's polynomials, which
    `upward` must have left in the workspace.
    """
    product, end, left, right, _ = forest.merges
    n = forest.parent.size
    begin, last = workspace.start[product[n]], workspace.degree[product[n]]
    for count in range(last + 1):
        workspace.d_off[begin + count] = seeds[count]
    for i in range(begin + last + 1, begin + last + 1 + PAD):
        workspace.d_off[i] = 0.0
    m = end[n]
    for i in range(n + 1):
        v = i - 1 if i else n
        first = end[v + 1] if v + 1 < n else 0
        if v == n:
            first = end[0]
        if v < n:
            on, both = _lower(v, forest, state, counting, top, workspace)
            ones[v] += on
            pairs[v] += both
        while m > first:
            m -= 1
            _unmerge((left[m], right[m], n + m), n, v == n, workspace)
