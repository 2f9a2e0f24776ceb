"""Polynomials of subtrees of a forest of binary variables, and their derivatives.

A forest gives a row the weight exp(Σ_j slope_j·x_j + Σ_j pair_j·x_j·x_parent(j)). The l-th
coefficient of a subtree's polynomial is the total weight of its assignments with l unknown
variables on; without a count (`counting` false) all coefficients are summed and polynomials are
numbers. Every subtree has two polynomials, for its parent off and on. Nodes are numbered in an
order in which parents come first; the parent of a root is node n, a virtual node above all roots
that is always off. Leaves below the same node are multiplied first (`bundles`).

`forest` is a `polynomials.Forest`, `workspace` a `Workspace`; `state` holds 0, 1 or −1 (unknown)
for every node. Coefficients span hundreds of orders of magnitude: `tilts` chooses tilts exp(t·l)
under which they can be computed.
"""

import numpy as np

from exchangeable.families.trees.kernels.bundles import divide_leaves, multiply_leaves
from exchangeable.families.trees.kernels.merges import PAD, divide_out, multiply
from exchangeable.families.trees.kernels.weights import log_larger_weights, weigh_nodes
from exchangeable.runtime.kernels.cache import for_kernels
from exchangeable.runtime.kernels.lanes import (
    N_LANES,
    alike,
    load,
    moved_down,
    moved_up,
    plus,
    plus_product,
    store,
    sum_of,
    times,
    two,
)
from exchangeable.runtime.kernels.loops import inlined, total

_helper = for_kernels(fastmath={"reassoc", "contract"})

SMALLEST = 1e-300
"""Coefficients below this share of the sum of all are set to zero."""
ENOUGH = 1e-3
"""A product whose coefficients sum to less is divided by their sum."""
MUCH = 1e100
"""Logarithms are taken of products of scales, before these leave the range from 1 / MUCH² to
MUCH²."""


@_helper
def _close(factor, position, degree, off, on, factors, sums):  # type: ignore[no-untyped-def]
    """Cut off negligible coefficients of a new factor; return where the next one begins."""
    least = SMALLEST * max(sums[factor, 0], sums[factor, 1])
    while degree > 0 and off[position + degree] < least and on[position + degree] < least:
        degree -= 1
    factors[factor, 0], factors[factor, 1] = position, degree
    end = position + degree + 1
    store(off, end, alike(0.0))
    store(on, end, alike(0.0))
    return end + PAD


@_helper
def _shorten(factor, below_all, degree, top, position, off, on, factors, sums):  # type: ignore[no-untyped-def]
    """Cut the product of a bundle of leaves off above `top`; return where the next one begins."""
    if below_all:
        store(on, position, alike(0.0))
    if degree > top:
        degree = top
        sums[factor, 0] = total(off[position : position + degree + 1])
        sums[factor, 1] = total(on[position : position + degree + 1])
    return _close(factor, position, degree, off, on, factors, sums)


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
    linked *= is_on
    if below < 0:
        last = shift
        if shift:
            store(off, position, two(is_off, is_on))
            store(on, position, two(is_off, linked))
        else:
            store(off, position, two(is_off + is_on, 0.0))
            store(on, position, two(is_off + linked, 0.0))
        sums[v, 0], sums[v, 1] = is_off + is_on, is_off + linked
    else:
        begin = factors[below, 0]
        last = min(factors[below, 1] + shift, top)
        share_off, share_on, share_both = alike(is_off), alike(is_on), alike(linked)
        before = alike(0.0)
        for i in range(0, last + 1, N_LANES):
            of_off, of_on = times(share_off, load(off, begin + i)), load(on, begin + i)
            moved = of_on
            if shift:
                moved = moved_up(before, of_on)
            store(off, position + i, plus_product(of_off, share_on, moved))
            store(on, position + i, plus_product(of_off, share_both, moved))
            before = of_on
        sums[v, 0] = is_off * sums[below, 0] + is_on * sums[below, 1]
        sums[v, 1] = is_off * sums[below, 0] + linked * sums[below, 1]
    return _close(v, position, last, off, on, factors, sums)


@_helper
def upward(forest, state, tilt, counting, top, workspace):  # type: ignore[no-untyped-def]
    """Compute all polynomials; write the forest's and return the logarithm of its scale."""
    # Arrays are taken out of their tuples once: doing so for each node would cost time.
    product, end, left, right, leaves, _ = forest.merges
    parent, slope = forest.parent, forest.slope
    off, on, coefficients = workspace.off, workspace.on, workspace.coefficients
    factors, sums = workspace.factors, workspace.sums
    nodes, scales = workspace.nodes, workspace.scales
    n, position, m = parent.size, PAD, 0
    store(off, 0, alike(0.0))
    store(on, 0, alike(0.0))
    weigh_nodes(forest, state, tilt, nodes)
    scale, log_scale = 1.0, log_larger_weights(slope, state, tilt)
    for i in range(n + 1):
        v = n - 1 - i if i < n else n
        while m < end[v]:
            x, y, own = left[m], right[m], 1.0
            if y < 0:
                degree, sum_off, sum_on = multiply_leaves(
                    leaves, x, -y, state, counting, position, off, on, nodes
                )
                sums[n + m, 0], sums[n + m, 1] = sum_off, 0.0 if v == n else sum_on
                position = _shorten(n + m, v == n, degree, top, position, off, on, factors, sums)
            else:
                position, own = _merge(x, y, n + m, v == n, top, position, off, on, factors, sums)
            scales[m] = own
            scale, log_scale = _take_out(own, scale, log_scale)
            m += 1
        if v == n:
            break
        below, moves = product[v], counting and state[v] < 0
        is_off, is_on, linked = nodes[0, v], nodes[1, v], nodes[2, v]
        if moves and top == 0:
            is_on = 0.0
        all_off, all_on = is_off, max(1.0, linked) * is_on
        if below >= 0:
            all_off, all_on = all_off * sums[below, 0], all_on * sums[below, 1]
        own = all_off + all_on if all_off + all_on > 0.0 else 1.0
        scale, log_scale = _take_out(own, scale, log_scale)
        nodes[0, v], nodes[1, v] = is_off / own, is_on / own
        sums[v, 0], sums[v, 1] = nodes[0, v], nodes[1, v]
        if below == -2:
            continue
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
    store(d, long + long_degree + 1, alike(0.0))
    store(d, short + short_degree + 1, alike(0.0))


@_helper
def _lower(v, below, linked, shift, on, d_off, d_on, factors, nodes):  # type: ignore[no-untyped-def]
    """Compute the derivatives by the product below a node from those by the node's factor.

    Returns the mass with the node on, and with it and its parent on. `linked` is 0 for a root.
    """
    begin, last = factors[v, 0], factors[v, 1]
    first, end = factors[below, 0], factors[below, 0] + factors[below, 1] + 1
    if linked == 0.0:
        for i in range(begin, begin + last + 1 + PAD, N_LANES):
            store(d_on, i, alike(0.0))
    share_off, share_on = alike(nodes[0, v]), alike(nodes[1, v])
    share_both, ones, pairs = alike(linked * nodes[1, v]), alike(0.0), alike(0.0)
    from_off, from_on = load(d_off, begin), load(d_on, begin)
    for i in range(0, min(end - first, last + 1), N_LANES):
        store(d_off, first + i, times(share_off, plus(from_off, from_on)))
        next_off, next_on = load(d_off, begin + i + N_LANES), load(d_on, begin + i + N_LANES)
        if shift:
            from_off, from_on = moved_down(from_off, next_off), moved_down(from_on, next_on)
        by_both = times(share_both, from_on)
        by_on, values = plus_product(by_both, share_on, from_off), load(on, first + i)
        store(d_on, first + i, by_on)
        ones, pairs = plus_product(ones, values, by_on), plus_product(pairs, values, by_both)
        from_off, from_on = next_off, next_on
    for i in range(first + last + 1, end, N_LANES):
        store(d_off, i, alike(0.0))
        store(d_on, i, alike(0.0))
    store(d_off, end, alike(0.0))
    store(d_on, end, alike(0.0))
    return sum_of(ones), sum_of(pairs)


@_helper
def downward(forest, state, seeds, counting, top, workspace, ones, pairs):  # type: ignore[no-untyped-def]
    """Add to `ones` and `pairs` the probabilities of each node, and of it and its parent, on.

    `seeds[l]` is the mass of count l over the forest's coefficient for l; reverse mode
    differentiates Σ_l mass_l·log(coefficient_l) with respect to every node's polynomials, which
    `upward` must have left in the workspace.
    """
    product, end, left, right, leaves, _ = forest.merges
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
            linked = nodes[2, v] if parent[v] < n else 0.0
            shift = 1 if counting and state[v] < 0 and top > 0 else 0
            below, position = product[v], factors[v, 0] + shift
            if below == -2:
                by_on, by_both = 0.0, 0.0
            elif below >= 0:
                by_on, by_both = _lower(v, below, linked, shift, on, d_off, d_on, factors, nodes)
            elif shift <= factors[v, 1]:
                by_both = linked * nodes[1, v] * d_on[position] if linked > 0.0 else 0.0
                by_on = nodes[1, v] * d_off[position] + by_both
            else:
                by_on, by_both = 0.0, 0.0
            ones[v] += by_on
            pairs[v] += by_both
        # Merges were made from the last node to the first, those of node n at the end.
        first = end[0] if v == n else (end[v + 1] if v + 1 < n else 0)
        while m > first:
            m -= 1
            x, y = left[m], right[m]
            if y < 0:
                position = factors[n + m, 0]
                if v == n:
                    store(d_on, position, alike(0.0))
                divide_leaves(
                    leaves, (x, -y), state, counting, position, d_off, d_on, nodes, ones, pairs
                )
                continue
            _unmerge(x, y, n + m, scales[m], off, d_off, factors)
            if v < n:
                _unmerge(x, y, n + m, scales[m], on, d_on, factors)
