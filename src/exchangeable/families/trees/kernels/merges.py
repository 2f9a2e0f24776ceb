"""The order in which the polynomials of subtrees are multiplied, and their products.

Multiplying the children of a node one after the other makes every product as long as all before it.
Here products of about equal size are multiplied, as in merge sort: this takes the same arithmetic
or less, since negligible coefficients are cut off, and much less memory.

Polynomials lie one after the other in an array, with `PAD` zeros in between, so that loops over
eight coefficients at a time need no special case at the ends: the processor cannot predict the ends
of short loops, which would cost more than the arithmetic.
"""

from typing import NamedTuple

from exchangeable.arrays import IntArray
from exchangeable.families.trees.kernels.bundles import MOST_LEAVES
from exchangeable.runtime.kernels.cache import compiled, for_kernels
from exchangeable.runtime.kernels.lanes import N_LANES, alike, load, plus, plus_product, store
from exchangeable.runtime.kernels.loops import fill

_compile = compiled(fastmath={"reassoc", "contract"})
_helper = for_kernels(fastmath={"reassoc", "contract"})

PAD = N_LANES


class Merges(NamedTuple):
    """The products of a forest of n nodes, in the order in which they are made.

    Factors are numbered: v < n is the subtree of node v, n + m the product of merge m. Leaves below
    the same node are bundled: they are multiplied at once, by a merge of their own.

    Attributes
    ----------
    product : array of shape (n + 1,)
        The product of all subtrees below a node, −1 for a leaf, −2 for a leaf in a bundle; at n
        that of all trees.
    end : array of shape (n + 1,)
        Number of merges made once a node's subtrees are multiplied. Nodes come from the last to the
        first, then n.
    left, right : arrays of shape (n,)
        The factors of each merge. For a bundle, where its leaves begin in
        `leaves`, and minus where they end.
    leaves : array of shape (n,)
        The leaves of all bundles.
    sizes : array of shape (2·n,)
        Number of nodes of each factor; 0 for a leaf in a bundle.
    """

    product: IntArray
    end: IntArray
    left: IntArray
    right: IntArray
    leaves: IntArray
    sizes: IntArray


@_compile
def plan_merges(parent, merges, first, following, stack):  # type: ignore[no-untyped-def]
    """Write the merges of a forest whose nodes are ordered parents first.

    The last three are workspaces with one number per node, for `first` one more.
    """
    product, end, left, right, leaves, sizes = merges
    n, n_merges, listed = parent.size, 0, 0
    fill(first, -1)
    for v in range(n - 1, -1, -1):
        following[v] = first[parent[v]]
        first[parent[v]] = v
    for i in range(n + 1):
        v = n - 1 - i if i < n else n
        height, child, begin = 0, first[v], listed
        while child >= 0:
            if product[child] == -1:
                leaves[listed] = child
                listed += 1
            child = following[child]
        if listed == begin + 1:  # one leaf is no bundle
            listed = begin
        for i in range(begin, listed):
            product[leaves[i]], sizes[leaves[i]] = -2, 0
        child, n_bundles, bundle = first[v], (listed - begin + MOST_LEAVES - 1) // MOST_LEAVES, 0
        while child >= 0 or height > 1:
            if bundle < n_bundles:
                left[n_merges] = begin + bundle * (listed - begin) // n_bundles
                bundle += 1
                right[n_merges] = -(begin + bundle * (listed - begin) // n_bundles)
                sizes[n + n_merges] = -right[n_merges] - left[n_merges]
                stack[height] = n + n_merges
                height, n_merges = height + 1, n_merges + 1
            elif child >= 0:
                if product[child] != -2:
                    stack[height] = child
                    height += 1
                child = following[child]
            # Larger products wait below smaller ones; when there are no more factors, all are
            # merged.
            while height > 1:
                one, two = stack[height - 2], stack[height - 1]
                if (child >= 0 or bundle < n_bundles) and sizes[one] > sizes[two]:
                    break
                left[n_merges], right[n_merges] = one, two
                stack[height - 2] = n + n_merges
                sizes[n + n_merges] = sizes[one] + sizes[two]
                n_merges += 1
                height -= 1
        product[v] = stack[0] if height else -1
        if v < n:
            sizes[v] = 1 + (sizes[product[v]] if height else 0)
        end[v] = n_merges


@_helper
def multiply(x, x_start, x_degree, y, y_start, y_degree, out, start, degree):  # type: ignore[no-untyped-def]
    """Write the product of two polynomials up to a degree.

    All three are in arrays from some index on; `out` may be the array of x.
    """
    for c in range(0, degree + 1, N_LANES):
        one, two, three, four = alike(0.0), alike(0.0), alike(0.0), alike(0.0)
        j, last = max(0, c - x_degree), min(y_degree, c + N_LANES - 1)
        k, i = y_start + j, x_start + c - j
        while j + 3 <= last:
            one = plus_product(one, alike(y[k]), load(x, i))
            two = plus_product(two, alike(y[k + 1]), load(x, i - 1))
            three = plus_product(three, alike(y[k + 2]), load(x, i - 2))
            four = plus_product(four, alike(y[k + 3]), load(x, i - 3))
            j, k, i = j + 4, k + 4, i - 4
        while j <= last:
            one = plus_product(one, alike(y[k]), load(x, i))
            j, k, i = j + 1, k + 1, i - 1
        store(out, start + c, plus(plus(one, two), plus(three, four)))


@_helper
def divide_out(y, y_start, y_degree, d, d_start, d_degree, out, start, degree):  # type: ignore[no-untyped-def]
    """Write Σ_j y[j]·d[i + j] for i = 0..degree: derivatives by one factor of a product."""
    for c in range(0, degree + 1, N_LANES):
        one, two, three, four = alike(0.0), alike(0.0), alike(0.0), alike(0.0)
        k, i, last = y_start, d_start + c, y_start + min(y_degree, d_degree - c)
        while k + 3 <= last:
            one = plus_product(one, alike(y[k]), load(d, i))
            two = plus_product(two, alike(y[k + 1]), load(d, i + 1))
            three = plus_product(three, alike(y[k + 2]), load(d, i + 2))
            four = plus_product(four, alike(y[k + 3]), load(d, i + 3))
            k, i = k + 4, i + 4
        while k <= last:
            one = plus_product(one, alike(y[k]), load(d, i))
            k, i = k + 1, i + 1
        store(out, start + c, plus(plus(one, two), plus(three, four)))
