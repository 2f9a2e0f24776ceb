"""Polynomials of subtrees of a forest of binary variables, and their derivatives.

A forest gives a row the weight exp(Σ_j slope_j·x_j + Σ_j pair_j·x_j·x_parent(j)). The l-th
coefficient of a subtree's polynomial is the total weight of its assignments with l unknown
variables on; without a count (`counting` false) all coefficients are summed and polynomials are
numbers. Every subtree has two polynomials, for its parent off and on. Nodes are numbered in an
order in which parents come first; the parent of a root is node n, a virtual node above all roots
that is always off.

`forest` is a `polynomials.Forest`; `state` holds 0, 1 or −1 (unknown) for every node. Coefficients
span hundreds of orders of magnitude: `tilts` chooses tilts exp(t·l) under which they can be
computed.
"""

from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.families.trees.kernels.merges import PAD, Merges, divide_out, multiply
from exchangeable.runtime.kernels.cache import for_kernels
from exchangeable.runtime.kernels.loops import inlined, total

_helper = for_kernels(fastmath={"reassoc", "contract"})

SMALLEST = 1e-300
"""Coefficients below this share of the sum of all are set to zero."""
ENOUGH = 1e-3
"""A product whose coefficients sum to less is divided by their sum."""
MUCH = 1e100
"""Logarithms are taken of products of scales, before these leave the range from 1 / MUCH² to
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
    factors : array of shape (2·n, 2)
        The start of each factor's polynomials, and their degree.
    sums : array of shape (2·n, 2)
        The sums of the coefficients, of `off` and of `on`.
    nodes : array of shape (n + 1, 3)
        The factors of a node's subtrees if the node is off, and if it is on, and the additional
        factor if its parent is on too.
    scales : array of shape (n,)
        The divisor of the product of each merge.
    coefficients : array of shape (top + 1,)
        Those of the whole forest.
    """

    off: FloatArray
    on: FloatArray
    d_off: FloatArray
    d_on: FloatArray
    factors: IntArray
    sums: FloatArray
    nodes: FloatArray
    scales: FloatArray
    coefficients: FloatArray

    @classmethod
    def of(cls, merges: Sequence[Merges], top: int) -> Self:
        """Return a workspace for any of some forests, and polynomials up to degree `top`."""
        n = merges[0].left.size
        lengths = max(int(np.minimum(each.sizes, top).sum()) for each in merges)
        off, on, d_off, d_on = np.empty((4, lengths + 2 * n * (1 + PAD) + PAD))
        return cls(
            off,
            on,
            d_off,
            d_on,
            factors=np.empty((2 * n, 2), dtype=np.int64),
            sums=np.empty((2 * n, 2)),
            nodes=np.empty((n + 1, 3)),
            scales=np.empty(n),
            coefficients=np.empty(top + 1),
        )


@_helper
def _close(factor, position, degree, off, on, factors, sums):  # type: ignore[no-untyped-def]
    """Cut off negligible coefficients of a new factor; return where the next one begins."""
    least = SMALLEST * max(sums[factor, 0], sums[factor, 1])
    while degree > 0 and off[position + degree] < least and on[position + degree] < least:
        degree -= 1
    factors[factor, 0], factors[factor, 1] = position, degree
    end = position + degree + 1
    for i in range(end, end + PAD):
        off[i], on[i] = 0.0, 0.0
    return end + PAD


@_helper
def _merge(x, y, factor, below_all, top, position, off, on, factors, sums):  # type: ignore[no-untyped-def]
    """Multiply two factors; return where the next one begins, and the divisor of the product.

    With `below_all`, the parent is node n, which is never on.
    """
    if factors[x, 1] < factors[y, 1]:
        x, y = y, x
    long, long_degree, short, short_degree = (
        factors[x, 0],
        factors[x, 1],
        factors[y, 0],
        factors[y, 1],
    )
    whole = long_degree + short_degree
    last = min(whole, top)
    multiply(off, long, long_degree, off, short, short_degree, off, position, last)
    sum_off, sum_on = sums[x, 0] * sums[y, 0], sums[x, 1] * sums[y, 1]
    if below_all:
        sum_on = 0.0
        for i in range(position, position + last + 1):
            on[i] = 0.0
    else:
        multiply(on, long, long_degree, on, short, short_degree, on, position, last)
    if last < whole:
        sum_off = total(off[position : position + last + 1])
        sum_on = total(on[position : position + last + 1])
    scale = max(sum_off, sum_on)
    if scale >= ENOUGH or scale == 0.0:
        scale = 1.0
    else:
        for i in range(position, position + last + 1):
            off[i], on[i] = off[i] / scale, on[i] / scale
    sums[factor, 0], sums[factor, 1] = sum_off / scale, sum_on / scale
    return _close(factor, position, last, off, on, factors, sums), scale


@_helper
def _lift(v, below, linked, shift, top, position, off, on, factors, sums):  # type: ignore[no-untyped-def]
    """Compute the factor of a node from the product of those below it.

    Its sums are those of the node alone, off and on, and are replaced by the factor's. Returns
    where the next one begins.
    """
    is_off, is_on = sums[v, 0], sums[v, 1]
    if below < 0:
        last, whole = shift, shift
        off[position], on[position] = is_off, is_off
        if shift:
            off[position + 1], on[position + 1] = is_on, linked * is_on
        else:
            off[position], on[position] = is_off + is_on, is_off + linked * is_on
        sums[v, 0], sums[v, 1] = is_off + is_on, is_off + linked * is_on
    else:
        begin, whole = factors[below, 0], factors[below, 1] + shift
        last = min(whole, top)
        into_off, into_on = off[position : position + last + 1], on[position : position + last + 1]
        of_off, of_on = off[begin : begin + last + 1], on[begin - shift : begin - shift + last + 1]
        for i in range(into_off.size):
            into_off[i] = is_off * of_off[i] + is_on * of_on[i]
            into_on[i] = is_off * of_off[i] + linked * is_on * of_on[i]
        is_off, is_on = is_off * sums[below, 0], is_on * sums[below, 1]
        sums[v, 0], sums[v, 1] = is_off + is_on, is_off + linked * is_on
    return _close(v, position, last, off, on, factors, sums)


@_helper
def weigh(weight, state):  # type: ignore[no-untyped-def]
    """Return what a node weighs off and on, over the larger, and the logarithm of the larger."""
    if state == 0:
        return 1.0, 0.0, 0.0
    if state == 1:
        return 0.0, 1.0, weight
    if weight <= 0.0:
        return 1.0, np.exp(weight), 0.0
    return np.exp(-weight), 1.0, weight


@_helper
def upward(forest, state, tilt, counting, top, workspace):  # type: ignore[no-untyped-def]
    """Compute all polynomials; write the forest's and return the logarithm of its scale."""
    # Arrays are taken out of their tuples once: doing so for each node would cost time.
    product, end, left, right, _ = forest.merges
    parent, slope, pair = forest.parent, forest.slope, forest.pair
    off, on, coefficients = workspace.off, workspace.on, workspace.coefficients
    factors, sums = workspace.factors, workspace.sums
    nodes, scales = workspace.nodes, workspace.scales
    n, position, m = parent.size, PAD, 0
    for i in range(PAD):
        off[i], on[i] = 0.0, 0.0
    scale, log_scale = 1.0, 0.0
    for i in range(n + 1):
        v = n - 1 - i if i < n else n
        while m < end[v]:
            position, own = _merge(
                left[m], right[m], n + m, v == n, top, position, off, on, factors, sums
            )
            scales[m] = own
            scale, log_scale = _take_out(own, scale, log_scale)
            m += 1
        if v == n:
            break
        below, moves = product[v], counting and state[v] < 0
        is_off, is_on, larger = weigh(slope[v] + (tilt if state[v] < 0 else 0.0), state[v])
        if moves and top == 0:
            is_on = 0.0
        linked = np.exp(pair[v]) if parent[v] < n else 1.0
        all_off, all_on = is_off, max(1.0, linked) * is_on
        if below >= 0:
            all_off, all_on = all_off * sums[below, 0], all_on * sums[below, 1]
        own = all_off + all_on if all_off + all_on > 0.0 else 1.0
        scale, log_scale = _take_out(own, scale, log_scale + larger)
        nodes[v, 0], nodes[v, 1], nodes[v, 2] = is_off / own, is_on / own, linked
        sums[v, 0], sums[v, 1] = nodes[v, 0], nodes[v, 1]
        shift = 1 if moves and top > 0 else 0
        position = _lift(v, below, linked, shift, top, position, off, on, factors, sums)
    begin, last = factors[product[n], 0], factors[product[n], 1]
    for count in range(top + 1):
        coefficients[count] = off[begin + count] if count <= last else 0.0
    return log_scale + np.log(scale)


@inlined
def _take_out(own, scale, log_scale):  # type: ignore[no-untyped-def]
    """Return the product of scales and the sum of logarithms including one more scale."""
    if own < 1.0 / MUCH or own > MUCH:
        return scale, log_scale + np.log(own)
    if scale < 1.0 / MUCH or scale > MUCH:
        return own, log_scale + np.log(scale)
    return scale * own, log_scale


@_helper
def _unmerge(x, y, factor, scale, values, d, factors):  # type: ignore[no-untyped-def]
    """Compute the derivatives by two factors from those by their product."""
    if factors[x, 1] < factors[y, 1]:
        x, y = y, x
    begin, last = factors[factor, 0], factors[factor, 1]
    long, long_degree, short, short_degree = (
        factors[x, 0],
        factors[x, 1],
        factors[y, 0],
        factors[y, 1],
    )
    if scale != 1.0:
        for i in range(begin, begin + last + 1):
            d[i] /= scale
    divide_out(values, short, short_degree, d, begin, last, d, long, long_degree)
    divide_out(values, long, long_degree, d, begin, last, d, short, short_degree)
    for i in range(1, PAD + 1):
        d[long + long_degree + i], d[short + short_degree + i] = 0.0, 0.0


@_helper
def _lower(v, below, linked, shift, on, d_off, d_on, factors, nodes):  # type: ignore[no-untyped-def]
    """Compute the derivatives by the product below a node from those by the node's factor.

    Returns the mass with the node on, and with it and its parent on. `linked` is 0 for a root.
    """
    begin, last = factors[v, 0], factors[v, 1]
    if linked == 0.0:
        for i in range(begin, begin + last + 1 + PAD):
            d_on[i] = 0.0
    is_off, is_on = nodes[v, 0], nodes[v, 1]
    if below < 0:
        if shift > last:
            return 0.0, 0.0
        both = linked * is_on * d_on[begin + shift]
        return is_on * d_off[begin + shift] + both, both
    first, end = factors[below, 0], factors[below, 0] + factors[below, 1] + 1
    n_off, n_on = min(end - first, last + 1), min(end - first, last + 1 - shift)
    into_off, from_off = d_off[first : first + n_off], d_off[begin : begin + n_off]
    into_on, from_on = d_on[first : first + n_on], d_on[begin : begin + n_off]
    for i in range(into_off.size):
        into_off[i] = is_off * (from_off[i] + from_on[i])
    ones, pairs = 0.0, 0.0
    values, begin = on[first : first + n_on], begin + shift
    from_off, from_on = d_off[begin : begin + n_on], d_on[begin : begin + n_on]
    for i in range(values.size):
        by_both = linked * is_on * from_on[i]
        by_on = is_on * from_off[i] + by_both
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
    parent = forest.parent
    off, on, d_off, d_on = workspace.off, workspace.on, workspace.d_off, workspace.d_on
    factors, nodes, scales = workspace.factors, workspace.nodes, workspace.scales
    n = parent.size
    begin, last = factors[product[n], 0], factors[product[n], 1]
    for count in range(last + 1):
        d_off[begin + count] = seeds[count]
    for i in range(begin + last + 1, begin + last + 1 + PAD):
        d_off[i] = 0.0
    m = end[n]
    for i in range(n + 1):
        v = i - 1 if i else n
        if v < n:
            linked = nodes[v, 2] if parent[v] < n else 0.0
            shift = 1 if counting and state[v] < 0 and top > 0 else 0
            by_on, by_both = _lower(v, product[v], linked, shift, on, d_off, d_on, factors, nodes)
            ones[v] += by_on
            pairs[v] += by_both
        # Merges were made from the last node to the first, those of node n at the end.
        first = end[0] if v == n else (end[v + 1] if v + 1 < n else 0)
        while m > first:
            m -= 1
            x, y = left[m], right[m]
            _unmerge(x, y, n + m, scales[m], off, d_off, factors)
            if v < n:
                _unmerge(x, y, n + m, scales[m], on, d_on, factors)
