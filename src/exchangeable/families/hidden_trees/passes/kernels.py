"""Hidden trees: messages up and down a tree whose nodes have hidden states.

Node v has a state z_v with h values, and evidence about it that depends on the *symbol* of its
block: how many of its variables are known to be on, and how many are unknown (`symbol_kernels`). In
the upward pass, a node sends its parent the probability of the evidence below, for each of the
parent's states; in the downward pass, posteriors are passed on. Messages are scaled row by row, so
that nothing underflows, and rows are processed in tiles, so that most of the work is products of a
tile with an h x h matrix.

Shared arguments: ``codes[i, v]`` is the symbol of node v in row i, a row of `evidence`;
``evidence[symbol, z]`` is P(symbol | z), scaled so that the largest of a symbol is 1; `tree` is a
`StateTree`, `messages` are `TileMessages` with room for a tile of rows. Their memory comes from
outside and is used again: to ask for it anew, page by page, took as long as the products.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.runtime.kernels.cache import compiled, for_kernels
from exchangeable.runtime.kernels.loops import fill, inlined, largest

_compile = compiled()
_helper = for_kernels()

FOLD = 1e-200
"""Products at the root that fall below this continue as logarithms."""
TINY, UNLIKELY = 1e-280, 1e-100
"""Products and posteriors below these are set to zero: denormal numbers are slow."""


class StateTree(NamedTuple):
    """A tree of hidden states.

    Attributes
    ----------
    order : array of shape (n_nodes,)
        The nodes, parents before children.
    parent : array of shape (n_nodes,)
        Each node's parent, n_nodes for the root.
    edges : array of shape (n_nodes, h, h)
        ``edges[v, s, t]`` is P(z_v = t | z_parent = s).
    """

    order: IntArray
    parent: npt.NDArray[np.int32]
    edges: FloatArray


class TileMessages(NamedTuple):
    """Messages of a tile of rows, of which the first are in use.

    Attributes
    ----------
    up : array of shape (n_nodes, n_rows, h)
        Probability of the evidence at and below a node, given the node's state; after `downward`,
        the posterior of that state.
    message : array of shape (n_nodes, n_rows, h)
        The same given the state of the node's parent.
    root_logs : array of shape (n_rows, h)
        At the root: the logarithm of `up`.
    log_scale : array of shape (n_rows,)
        Logarithm of the scales of the rows.
    """

    up: FloatArray
    message: FloatArray
    root_logs: FloatArray
    log_scale: FloatArray


class PosteriorSums(NamedTuple):
    """Sums of posteriors over rows.

    Attributes
    ----------
    by_symbol : array of shape (n_symbols, h)
        For the states of the nodes, by symbol.
    pairs : array of shape (n_nodes, h, h)
        For the states of a node's parent and of the node, divided by its edge.
    totals : array of shape (h,)
        For the root's states.
    """

    by_symbol: FloatArray
    pairs: FloatArray
    totals: FloatArray


@inlined
def _log(x):  # type: ignore[no-untyped-def]
    """Return log x, −inf for zero."""
    return np.log(x) if x > 0.0 else -np.inf


@inlined
def _fold(product, logs):  # type: ignore[no-untyped-def]
    """Move a tile's products into their logarithms when they become small."""
    for i in range(product.shape[0]):
        least = product[i, 0]
        for z in range(1, product.shape[1]):
            least = min(least, product[i, z])
        if least < FOLD:
            for z in range(product.shape[1]):
                logs[i, z] += _log(product[i, z])
                product[i, z] = 1.0


@_helper
def upward(codes, evidence, tree, messages):  # type: ignore[no-untyped-def]
    """Send messages from the leaves to the root, for a tile of rows."""
    order, parent, edges = tree.order, tree.parent, tree.edges
    up, message = messages.up, messages.message
    root_logs, log_scale = messages.root_logs, messages.log_scale
    n_rows, n_nodes = codes.shape
    h = edges.shape[2]
    root = order[0]
    for v in range(n_nodes):
        for i in range(n_rows):
            symbol = codes[i, v]
            for z in range(h):
                up[v, i, z] = evidence[symbol, z]
    for i in range(n_rows):
        log_scale[i] = 0.0
        for z in range(h):
            root_logs[i, z] = 0.0
    for position in range(order.size - 1, 0, -1):
        v = order[position]
        np.dot(up[v, :n_rows], edges[v].T, message[v, :n_rows])
        above = up[parent[v], :n_rows]
        for i in range(n_rows):
            top = 0.0
            for z in range(h):
                above[i, z] *= message[v, i, z]
                top = max(top, above[i, z])
            if top > 0.0:
                log_scale[i] += np.log(top)
                for z in range(h):
                    above[i, z] = above[i, z] / top if above[i, z] > TINY * top else 0.0
        if parent[v] == root:
            _fold(above, root_logs)
    for i in range(n_rows):
        for z in range(h):
            root_logs[i, z] += _log(up[root, i, z])


@_helper
def downward(n_rows, tree, messages, pairs):  # type: ignore[no-untyped-def]
    """Hand posteriors down; ``up[root]`` holds those of the root, and then ``up[v]`` those of v.

    The sums of P(z_parent, z_v) / ``edges[v]`` are added to ``pairs[v]``, unless that is empty.
    """
    order, parent, edges = tree.order, tree.parent, tree.edges
    up, message = messages.up, messages.message
    h = edges.shape[2]
    handed, both = np.empty((n_rows, h)), np.empty((h, h))
    for position in range(1, order.size):
        v = order[position]
        share, above, own = message[v, :n_rows], up[parent[v], :n_rows], up[v, :n_rows]
        for i in range(n_rows):
            for z in range(h):
                known = above[i, z] > UNLIKELY and share[i, z] > 0.0
                share[i, z] = above[i, z] / share[i, z] if known else 0.0
        if pairs.size:
            np.dot(share.T, own, both)
            for y in range(h):
                for z in range(h):
                    pairs[v, y, z] += both[y, z]
        np.dot(share, edges[v], handed)
        for i in range(n_rows):
            for z in range(h):
                own[i, z] *= handed[i, z]


@inlined
def _normalise(logs, out):  # type: ignore[no-untyped-def]
    """Write exp(logs) scaled to add up to one, and return the logarithm of the scale."""
    top = largest(logs)
    if not top > -np.inf:
        fill(out, 0.0)
        return -np.inf
    total = 0.0
    for z in range(logs.size):
        out[z] = np.exp(logs[z] - top)
        total += out[z]
    for z in range(logs.size):
        out[z] /= total
    return top + np.log(total)


@_compile
def score_tree(codes, evidence, tree, messages, out):  # type: ignore[no-untyped-def]
    """Write log P(evidence | z_root) of every row, without what symbols were scaled by."""
    n_rows, tile = codes.shape[0], messages.log_scale.size
    h = evidence.shape[1]
    root_logs, log_scale = messages.root_logs, messages.log_scale
    for begin in range(0, n_rows, tile):
        end = min(begin + tile, n_rows)
        upward(codes[begin:end], evidence, tree, messages)
        for i in range(end - begin):
            for z in range(h):
                out[begin + i, z] = root_logs[i, z] + log_scale[i]


@_compile
def expect_tree(codes, weights, offsets, evidence, tree, log_prior, messages, sums):  # type: ignore[no-untyped-def]
    """Add up posteriors (`PosteriorSums`); return the log-likelihood.

    `offsets` is the logarithm of the scales of each row's symbols.
    """
    n_rows, tile = codes.shape[0], messages.log_scale.size
    h = evidence.shape[1]
    root, totals, log_likelihood = tree.order[0], sums.totals, 0.0
    up, root_logs, log_scale = messages.up, messages.root_logs, messages.log_scale
    for begin in range(0, n_rows, tile):
        n = min(tile, n_rows - begin)
        upward(codes[begin : begin + n], evidence, tree, messages)
        for i in range(n):
            logs = root_logs[i]
            for z in range(h):
                logs[z] += log_prior[z]
            log_prob = _normalise(logs, up[root, i])
            log_prob = log_prob + log_scale[i] + offsets[begin + i]
            log_likelihood += weights[begin + i] * log_prob
            for z in range(h):
                up[root, i, z] *= weights[begin + i]
                totals[z] += up[root, i, z]
        downward(n, tree, messages, sums.pairs)
        _add_symbols(codes[begin : begin + n], up, sums.by_symbol)
    return log_likelihood


@inlined
def _add_symbols(codes, up, by_symbol):  # type: ignore[no-untyped-def]
    """Add the posteriors of all nodes and rows of a tile by symbol."""
    n_rows, n_nodes = codes.shape
    h = by_symbol.shape[1]
    for v in range(n_nodes):
        for i in range(n_rows):
            symbol = codes[i, v]
            for z in range(h):
                by_symbol[symbol, z] += up[v, i, z]


@_compile
def posterior_tree(codes, evidence, tree, root_state, out):  # type: ignore[no-untyped-def]
    """Write P(z_v | evidence, the root's state), shape (n_nodes, n_rows, h)."""
    _, n_rows, h = out.shape
    root = tree.order[0]
    messages = TileMessages(out, np.empty(out.shape), np.empty((n_rows, h)), np.empty(n_rows))
    upward(codes, evidence, tree, messages)
    for i in range(n_rows):
        for z in range(h):
            out[root, i, z] = 1.0 if z == root_state else 0.0
    downward(n_rows, tree, messages, np.empty((0, h, h)))
