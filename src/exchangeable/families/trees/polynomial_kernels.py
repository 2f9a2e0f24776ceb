"""Polynomials of subtrees of a forest of binary variables, and their derivatives.

A forest gives a row the weight exp(Σ_j slope_j·x_j + Σ_j pair_j·x_j·x_parent(j)). The polynomial of
a subtree has as its l-th coefficient the weight of all its assignments with l unknown variables on;
without a count (`counting` false) all coefficients are summed and polynomials are numbers. Nodes
are numbered in an order in which parents come first; the parent of a root is node n, which is
always off and stands above all roots.

`forest` is a `polynomials.Forest`; `state` holds 0, 1 or −1 (not known) for every node.
Coefficients span hundreds of orders of magnitude: `tilt_kernels` chooses tilts exp(t·l) under which
they can be computed.
"""

from typing import NamedTuple, Self

import numpy as np

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.runtime.kernel_cache import compiled, for_kernels
from exchangeable.runtime.loops import copy, divide, fill, inlined, largest

_compile = compiled(fastmath={"reassoc", "contract"})
_helper = for_kernels(fastmath={"reassoc", "contract"})

SMALLEST = 1e-220
"""A coefficient that is a smaller share of the largest is taken for zero."""


class Workspace(NamedTuple):
    """Memory for the polynomials of a forest of n nodes; everything is written before it is read.

    Attributes
    ----------
    off, on : arrays of shape (n + 1, top + 1)
        The polynomial of each node's subtree when the node is off, and when it is on.
    off_before, on_before : arrays of shape (n + 1, top + 1)
        Those its parent had before the node was added to it.
    degree, degree_before : arrays of shape (n + 1,)
        The degrees of these polynomials.
    divisor : array of shape (n + 1,)
        What the parent's polynomials were divided by after the node was added.
    d_off, d_on : arrays of shape (n + 1, top + 1)
        Derivatives with respect to `off` and `on`.
    """

    off: FloatArray
    on: FloatArray
    off_before: FloatArray
    on_before: FloatArray
    degree: IntArray
    degree_before: IntArray
    divisor: FloatArray
    d_off: FloatArray
    d_on: FloatArray

    @classmethod
    def of(cls, n: int, top: int) -> Self:
        """Return a workspace for forests of n nodes and polynomials up to degree `top`."""
        off, on, off_before, on_before, d_off, d_on = np.empty((6, n + 1, top + 1))
        degree, degree_before = np.empty((2, n + 1), dtype=np.int64)
        divisor = np.empty(n + 1)
        return cls(off, on, off_before, on_before, degree, degree_before, divisor, d_off, d_on)


@inlined
def new_workspace(n, top):  # type: ignore[no-untyped-def]
    """Do the same inside a kernel."""
    shape = (n + 1, top + 1)
    return Workspace(
        np.empty(shape),
        np.empty(shape),
        np.empty(shape),
        np.empty(shape),
        np.empty(n + 1, np.int64),
        np.empty(n + 1, np.int64),
        np.empty(n + 1),
        np.empty(shape),
        np.empty(shape),
    )


@_helper
def _multiply(a, a_degree, b, b_degree, top, out):  # type: ignore[no-untyped-def]
    """Write the product of two polynomials up to degree `top`; return its degree."""
    degree = min(a_degree + b_degree, top)
    fill(out[: degree + 1], 0.0)
    if a_degree < b_degree:  # the longer one in the inner loop
        a, a_degree, b, b_degree = b, b_degree, a, a_degree
    for j in range(min(b_degree, degree) + 1):
        factor = b[j]
        last = min(a_degree, degree - j)
        into, source = out[j : j + last + 1], a[: last + 1]
        for i in range(source.size):
            into[i] += factor * source[i]
    return degree


@inlined
def _begin_node(v, slope, state, tilt, counting, top, workspace):  # type: ignore[no-untyped-def]
    """Set the polynomials of a node alone; return the logarithm they were divided by."""
    off, on, degree = workspace.off, workspace.on, workspace.degree
    weight = slope[v] + (tilt if state[v] < 0 else 0.0)
    larger = weight if state[v] == 1 else (0.0 if state[v] == 0 else max(weight, 0.0))
    moves = counting and state[v] < 0 and top > 0
    degree[v] = 1 if moves else 0
    fill(off[v, : degree[v] + 1], 0.0)
    fill(on[v, : degree[v] + 1], 0.0)
    if state[v] != 1:
        off[v, 0] = np.exp(-larger)
    if state[v] == 1 or (state[v] < 0 and not (counting and top == 0)):
        on[v, degree[v]] = np.exp(weight - larger)
    return larger


@inlined
def _join(when_off, when_on, factor, out):  # type: ignore[no-untyped-def]
    """Write the sum of a node's polynomials off and, times a factor, on."""
    for count in range(when_off.size):
        out[count] = when_off[count] + factor * when_on[count]


@_helper
def upward(forest, state, tilt, counting, top, workspace):  # type: ignore[no-untyped-def]
    """Compute all polynomials; node n's is that of the forest. Return the logarithm taken out."""
    parent, slope, pair = forest.parent, forest.slope, forest.pair
    off, on = workspace.off, workspace.on
    off_before, on_before = workspace.off_before, workspace.on_before
    degree, degree_before = workspace.degree, workspace.degree_before
    divisor = workspace.divisor
    n = parent.size
    log_scale = 0.0
    for v in range(n):
        log_scale += _begin_node(v, slope, state, tilt, counting, top, workspace)
    degree[n] = 0
    off[n, 0], on[n, 0] = 1.0, 0.0
    when_off, when_on = np.empty(top + 1), np.empty(top + 1)
    for v in range(n - 1, -1, -1):
        p, d = parent[v], degree[v]
        linked = np.exp(pair[v]) if p < n else 1.0
        _join(off[v, : d + 1], on[v], 1.0, when_off)
        _join(off[v, : d + 1], on[v], linked, when_on)
        before = degree[p]
        degree_before[v] = before
        copy(off[p, : before + 1], off_before[v])
        after = _multiply(off_before[v], before, when_off, d, top, off[p])
        highest = largest(off[p, : after + 1])
        if p < n:
            copy(on[p, : before + 1], on_before[v])
            _multiply(on_before[v], before, when_on, d, top, on[p])
            highest = max(highest, largest(on[p, : after + 1]))
            divide(on[p, : after + 1], highest)
        divide(off[p, : after + 1], highest)
        while after > 0 and off[p, after] < SMALLEST and (p == n or on[p, after] < SMALLEST):
            after -= 1
        degree[p] = after
        divisor[v] = highest
        log_scale += np.log(highest)
    return log_scale


@_helper
def _correlate(d, d_degree, a, a_degree, scale, out, out_degree):  # type: ignore[no-untyped-def]
    """Write Σ_i d[i + j]·a[i] / scale for j = 0..out_degree."""
    fill(out[: out_degree + 1], 0.0)
    if a_degree <= out_degree:  # the longer sum in the inner loop
        for i in range(min(a_degree, d_degree) + 1):
            factor = a[i] / scale
            last = min(out_degree, d_degree - i)
            into, source = out[: last + 1], d[i : i + last + 1]
            for j in range(source.size):
                into[j] += factor * source[j]
        return
    for j in range(min(out_degree, d_degree) + 1):
        last = min(a_degree, d_degree - j)
        first, second = d[j : j + last + 1], a[: last + 1]
        total = 0.0
        for i in range(first.size):
            total += first[i] * second[i]
        out[j] = total / scale


@_helper
def downward(forest, seeds, top, workspace, ones, pairs):  # type: ignore[no-untyped-def]
    """Add to `ones` and `pairs` the probabilities of each node, and of it and its parent, on.

    `seeds[l]` is the mass of count l over the forest's coefficient for l; reverse mode
    differentiates Σ_l mass_l·log(coefficient_l) with respect to every node's polynomials, which
    `upward` must have left in the workspace.
    """
    parent, pair = forest.parent, forest.pair
    off, on = workspace.off, workspace.on
    off_before, on_before = workspace.off_before, workspace.on_before
    degree, degree_before = workspace.degree, workspace.degree_before
    divisor, d_off, d_on = workspace.divisor, workspace.d_off, workspace.d_on
    n = parent.size
    copy(seeds, d_off[n])
    g_off, g_on, kept = np.empty(top + 1), np.empty(top + 1), np.empty(top + 1)
    when_off, when_on, whole = np.empty(top + 1), np.empty(top + 1), np.empty(n + 1, np.int64)
    copy(degree, whole)
    for v in range(n):
        p, d, before, scale = parent[v], degree[v], degree_before[v], divisor[v]
        linked = np.exp(pair[v]) if p < n else 1.0
        _join(off[v, : d + 1], on[v], 1.0, when_off)
        _correlate(d_off[p], whole[p], off_before[v], before, scale, g_off, d)
        _correlate(d_off[p], whole[p], when_off, d, scale, kept, before)
        copy(kept[: before + 1], d_off[p])
        fill(g_on[: d + 1], 0.0)
        if p < n:
            _join(off[v, : d + 1], on[v], linked, when_on)
            _correlate(d_on[p], whole[p], on_before[v], before, scale, g_on, d)
            _correlate(d_on[p], whole[p], when_on, d, scale, kept, before)
            copy(kept[: before + 1], d_on[p])
        whole[p] = before
        for count in range(d + 1):
            d_off[v, count] = g_off[count] + g_on[count]
            d_on[v, count] = g_off[count] + linked * g_on[count]
            ones[v] += d_on[v, count] * on[v, count]
            pairs[v] += linked * g_on[count] * on[v, count]
