"""In which order the subtrees of a forest are multiplied, and the products of polynomials.

Multiplying the children of a node one after the other makes every product as long as all before it.
Here products of about equal size are multiplied, as in merge sort: the arithmetic is the same or
less, since factors are cut where they are negligible, and what must be kept is much shorter.

Polynomials lie one after the other in an array, with `PAD` zeros between them, so that loops over
four coefficients at a time need not look where one begins or ends.
"""

from typing import NamedTuple

from exchangeable.arrays import IntArray
from exchangeable.runtime.kernel_cache import compiled, for_kernels
from exchangeable.runtime.loops import fill

_compile = compiled(fastmath={"reassoc", "contract"})
_helper = for_kernels(fastmath={"reassoc", "contract"})

PAD = 4
SHORT = 48
"""Products of fewer pairs of coefficients are not worth vector loops."""


class Merges(NamedTuple):
    """The products of a forest of n nodes, in the order in which they are made.

    Factors are numbered: v < n is the subtree of node v, n + m the product of merge m.

    Attributes
    ----------
    product : array of shape (n + 1,)
        The product of all subtrees below a node, −1 for a leaf; at n that of all trees.
    end : array of shape (n + 1,)
        How many merges have been made once a node's subtrees are multiplied. Nodes come from the
        last to the first, then n.
    left, right : arrays of shape (n,)
        The factors of each merge.
    sizes : array of shape (2·n,)
        How many nodes each factor has.
    """

    product: IntArray
    end: IntArray
    left: IntArray
    right: IntArray
    sizes: IntArray


@_compile
def plan_merges(parent, merges, first, following, stack):  # type: ignore[no-untyped-def]
    """Write the merges of a forest whose nodes are ordered parents first.

    The last three are room for one number per node, `first` for one more.
    """
    product, end, left, right, sizes = merges
    n, n_merges = parent.size, 0
    fill(first, -1)
    for v in range(n - 1, -1, -1):
        following[v] = first[parent[v]]
        first[parent[v]] = v
    for i in range(n + 1):
        v = n - 1 - i if i < n else n
        height, child = 0, first[v]
        size = 1
        while child >= 0 or height > 1:
            if child >= 0:
                stack[height] = child
                height += 1
                child = following[child]
            # Larger products wait below smaller ones; when there are no more factors, all go.
            while height > 1:
                one, two = stack[height - 2], stack[height - 1]
                if child >= 0 and sizes[one] > sizes[two]:
                    break
                left[n_merges], right[n_merges] = one, two
                stack[height - 2] = n + n_merges
                sizes[n + n_merges] = sizes[one] + sizes[two]
                n_merges += 1
                height -= 1
        product[v] = stack[0] if height else -1
        if v < n:
            sizes[v] = size + (sizes[product[v]] if height else 0)
        end[v] = n_merges


@_helper
def multiply(x, x_start, x_degree, y, y_start, y_degree, out, start, degree):  # type: ignore[no-untyped-def]
    """Write the product of two polynomials up to a degree; that of x is not the smaller one.

    All three are in arrays from some place on; `out` may be the array of x.
    """
    if (x_degree + 1) * (y_degree + 1) < SHORT:
        for count in range(degree + 1):
            total = 0.0
            for j in range(max(0, count - x_degree), min(count, y_degree) + 1):
                total += y[y_start + j] * x[x_start + count - j]
            out[start + count] = total
        return
    fill(out[start : start + degree + 1], 0.0)
    for j in range(0, min(y_degree, degree) + 1, PAD):
        k = y_start + j
        one, two, three, four = y[k], y[k + 1], y[k + 2], y[k + 3]
        size = min(x_degree + PAD, degree - j + 1)
        into = out[start + j : start + j + size]
        by_one, by_two = x[x_start : x_start + size], x[x_start - 1 : x_start - 1 + size]
        by_three, by_four = x[x_start - 2 : x_start - 2 + size], x[x_start - 3 : x_start - 3 + size]
        for i in range(into.size):
            pair = one * by_one[i] + two * by_two[i]
            into[i] += pair + (three * by_three[i] + four * by_four[i])


@_helper
def divide_out(y, y_start, y_degree, d, d_start, d_degree, out, start, degree):  # type: ignore[no-untyped-def]
    """Write Σ_j y[j]·d[i + j] for i = 0..degree: derivatives by the longer factor of a product."""
    if (degree + 1) * (y_degree + 1) < SHORT:
        for i in range(degree + 1):
            total = 0.0
            for j in range(min(y_degree, d_degree - i) + 1):
                total += y[y_start + j] * d[d_start + i + j]
            out[start + i] = total
        return
    fill(out[start : start + degree + 1], 0.0)
    for j in range(0, min(y_degree, d_degree) + 1, PAD):
        k, begin = y_start + j, d_start + j
        one, two, three, four = y[k], y[k + 1], y[k + 2], y[k + 3]
        size = min(degree, d_degree - j) + 1
        into, by_one = out[start : start + size], d[begin : begin + size]
        by_two, by_three = d[begin + 1 : begin + 1 + size], d[begin + 2 : begin + 2 + size]
        by_four = d[begin + 3 : begin + 3 + size]
        for i in range(into.size):
            pair = one * by_one[i] + two * by_two[i]
            into[i] += pair + (three * by_three[i] + four * by_four[i])


@_helper
def sum_out(x, x_start, x_degree, d, d_start, d_degree, out, start, degree):  # type: ignore[no-untyped-def]
    """Write Σ_i x[i]·d[i + j] for j = 0..degree: derivatives by the shorter factor of a product."""
    if (degree + 1) * (x_degree + 1) < SHORT:
        divide_out(x, x_start, x_degree, d, d_start, d_degree, out, start, degree)
        return
    for j in range(0, degree + 1, PAD):
        begin, size = d_start + j, max(min(x_degree, d_degree - j) + 1, 0)
        long, by_one = x[x_start : x_start + size], d[begin : begin + size]
        by_two, by_three = d[begin + 1 : begin + 1 + size], d[begin + 2 : begin + 2 + size]
        by_four = d[begin + 3 : begin + 3 + size]
        one, two, three, four = 0.0, 0.0, 0.0, 0.0
        for i in range(long.size):
            one += long[i] * by_one[i]
            two += long[i] * by_two[i]
            three += long[i] * by_three[i]
            four += long[i] * by_four[i]
        # What is beyond the last coefficient is overwritten by the pad.
        k = start + j
        out[k], out[k + 1], out[k + 2], out[k + 3] = one, two, three, four
