"""Products of a few leaves below the same node, eight coefficients in registers.

Most factors of a forest are leaves, whose polynomials have two coefficients. Multiplying them in
pairs would cost more for calls and loops than for arithmetic. The product of a *bundle* of up to
`MOST_LEAVES` leaves fits into eight lanes, and its factors need not be stored.

Arguments are as in `polynomials`. A bundle consists of the leaves ``first..end`` of
`Merges.leaves`.
"""

from exchangeable.runtime.kernels.cache import for_kernels
from exchangeable.runtime.kernels.lanes import (
    N_LANES,
    alike,
    load,
    moved_down,
    moved_up,
    plus_product,
    store,
    sum_of,
    times,
    two,
)

_helper = for_kernels(fastmath={"reassoc", "contract"})

MOST_LEAVES = N_LANES - 1
SCRATCH = N_LANES * MOST_LEAVES
"""Numbers at the end of the derivatives that hold products of the first leaves of a bundle."""


@_helper
def multiply_leaves(leaves, first, end, state, counting, position, off, on, nodes):  # type: ignore[no-untyped-def]
    """Write the product of a bundle; return its degree, and the sums of its coefficients."""
    zero, product_off, product_on = alike(0.0), two(1.0, 0.0), two(1.0, 0.0)
    degree, sum_off, sum_on = 0, 1.0, 1.0
    for i in range(first, end):
        v = leaves[i]
        is_off, is_on, linked = nodes[0, v], nodes[1, v], nodes[2, v] * nodes[1, v]
        moved_off, moved_on = product_off, product_on
        if counting and state[v] < 0:
            moved_off, moved_on = moved_up(zero, product_off), moved_up(zero, product_on)
            degree += 1
        product_off = plus_product(times(alike(is_off), product_off), alike(is_on), moved_off)
        product_on = plus_product(times(alike(is_off), product_on), alike(linked), moved_on)
        sum_off, sum_on = sum_off * (is_off + is_on), sum_on * (is_off + linked)
    store(off, position, product_off)
    store(on, position, product_on)
    return degree, sum_off, sum_on


@_helper
def divide_leaves(leaves, span, state, counting, begin, d_off, d_on, nodes, ones, pairs):  # type: ignore[no-untyped-def]
    """Add the masses with each leaf on, and with it and its parent on.

    `span` are the first leaf of the bundle and the end of its leaves. The derivatives by their
    product are at `begin`. Leaves are taken off from the last one on, which leaves the derivatives
    by the product of those before.
    """
    (first, end), zero = span, alike(0.0)
    product_off, product_on = two(1.0, 0.0), two(1.0, 0.0)
    kept = d_off.size - SCRATCH - first * N_LANES
    for i in range(first, end):
        store(d_off, kept + i * N_LANES, product_off)
        store(d_on, kept + i * N_LANES, product_on)
        v = leaves[i]
        is_off, is_on, linked = nodes[0, v], nodes[1, v], nodes[2, v] * nodes[1, v]
        moved_off, moved_on = product_off, product_on
        if counting and state[v] < 0:
            moved_off, moved_on = moved_up(zero, product_off), moved_up(zero, product_on)
        product_off = plus_product(times(alike(is_off), product_off), alike(is_on), moved_off)
        product_on = plus_product(times(alike(is_off), product_on), alike(linked), moved_on)
    by_off, by_on = load(d_off, begin), load(d_on, begin)
    for i in range(end - 1, first - 1, -1):
        v = leaves[i]
        is_off, is_on, linked = nodes[0, v], nodes[1, v], nodes[2, v] * nodes[1, v]
        moved_off, moved_on = by_off, by_on
        if counting and state[v] < 0:
            moved_off, moved_on = moved_down(by_off, zero), moved_down(by_on, zero)
        both = linked * sum_of(times(moved_on, load(d_on, kept + i * N_LANES)))
        ones[v] += is_on * sum_of(times(moved_off, load(d_off, kept + i * N_LANES))) + both
        pairs[v] += both
        by_off = plus_product(times(alike(is_off), by_off), alike(is_on), moved_off)
        by_on = plus_product(times(alike(is_off), by_on), alike(linked), moved_on)
