"""Hidden trees: messages up and down a tree whose nodes have hidden states.

Node v has a state z_v with h values, and evidence about it that depends on the *symbol* of its
block: how many of its variables are known to be on, and how many are not known. Going up, a node
tells its parent how probable what is below it is, for each of the parent's states; going down,
posteriors are handed on. Messages are scaled row by row, so that nothing underflows, and rows are
handled in tiles, so that most of the work is products of a tile with an h x h matrix.

Arrays are by node: ``parent[v]`` is a node, or the number of nodes for the root; ``order`` lists
parents before children; ``edges[v, s, t]`` is P(z_v = t | z_parent = s).
"""

import numpy as np
from numba import njit

_compile = njit(cache=True, nogil=True, error_model="numpy")

FOLD = 1e-200
"""Products at the root that fall below this go on as logarithms."""
TINY, UNLIKELY = 1e-280, 1e-100
"""Products and posteriors below these are zero: numbers near the end of the range are slow."""


@_compile
def log_ways(log_factorial, m, on):  # type: ignore[no-untyped-def]
    """Return log C(m, on)."""
    return log_factorial[m] - log_factorial[on] - log_factorial[m - on]


@_compile
def log_evidence(block, ones, holes, sizes, starts, log_q, log_factorial, out):  # type: ignore[no-untyped-def]
    """Write log P(symbol | z): Σ_k C(holes, k)·q(ones + k | z) / C(size, ones + k)."""
    h = log_q.shape[1]
    for symbol in range(block.size):
        b, c, u = block[symbol], ones[symbol], holes[symbol]
        for z in range(h):
            top = -np.inf
            for k in range(u + 1):
                ways = log_ways(log_factorial, u, k) - log_ways(log_factorial, sizes[b], c + k)
                top = max(top, ways + log_q[starts[b] + c + k, z])
            total = 0.0
            if top > -np.inf:
                for k in range(u + 1):
                    ways = log_ways(log_factorial, u, k) - log_ways(log_factorial, sizes[b], c + k)
                    total += np.exp(ways + log_q[starts[b] + c + k, z] - top)
            out[symbol, z] = top + np.log(total) if total > 0.0 else -np.inf


@_compile
def spread(block, ones, holes, sizes, starts, log_q, log_factorial, seen, mass, out):  # type: ignore[no-untyped-def]
    """Add the mass of each symbol and state to the counts that the symbol may stand for.

    `seen` is what `log_evidence` wrote.
    """
    h = log_q.shape[1]
    for symbol in range(block.size):
        b, c, u = block[symbol], ones[symbol], holes[symbol]
        for k in range(u + 1):
            ways = log_ways(log_factorial, u, k) - log_ways(log_factorial, sizes[b], c + k)
            at = starts[b] + c + k
            for z in range(h):
                if mass[symbol, z] > 0.0:
                    out[at, z] += mass[symbol, z] * np.exp(ways + log_q[at, z] - seen[symbol, z])


@_compile
def _fold(product, logs):  # type: ignore[no-untyped-def]
    """Move a tile's products into their logarithms where they have become small."""
    for i in range(product.shape[0]):
        if product[i].min() < FOLD:
            for z in range(product.shape[1]):
                logs[i, z] += np.log(product[i, z])
                product[i, z] = 1.0


@_compile
def upward(codes, evidence, order, parent, edges_t, up, message, logs, log_z):  # type: ignore[no-untyped-def]
    """Send messages from the leaves to the root, for a tile of rows.

    Parameters
    ----------
    codes : array of shape (n_rows, n_nodes)
        The symbol of each node, as a row of `evidence`.
    evidence : array of shape (n_symbols, h)
        P(symbol | z), scaled so that the largest of a symbol is 1.
    edges_t : array of shape (n_nodes, h, h)
        The transposes of `edges`.
    up, message : arrays of shape (n_nodes, n_rows, h)
        Written: what is known at and below a node given its state, given its parent's.
    logs : array of shape (n_rows, h)
        Written: at the root, the logarithm of the same.
    log_z : array of shape (n_rows,)
        Written: logarithm of what rows were scaled by.
    """
    n_nodes, n_rows, h = up.shape
    root = order[0]
    for v in range(n_nodes):
        for i in range(n_rows):
            symbol = codes[i, v]
            for z in range(h):
                up[v, i, z] = evidence[symbol, z]
    logs[:] = 0.0
    log_z[:] = 0.0
    for at in range(n_nodes - 1, 0, -1):
        v = order[at]
        np.dot(up[v], edges_t[v], message[v])
        above = up[parent[v]]
        for i in range(n_rows):
            top = 0.0
            for z in range(h):
                above[i, z] *= message[v, i, z]
                top = max(top, above[i, z])
            if top > 0.0:
                log_z[i] += np.log(top)
                for z in range(h):
                    above[i, z] = above[i, z] / top if above[i, z] > TINY * top else 0.0
        if parent[v] == root:
            _fold(above, logs)
    for i in range(n_rows):
        for z in range(h):
            logs[i, z] += np.log(up[root, i, z])


@_compile
def downward(order, parent, edges, up, message, scratch, small, pairs):  # type: ignore[no-untyped-def]
    """Hand posteriors down; ``up[root]`` holds those of the root, and then ``up[v]`` those of v.

    The sums of P(z_parent, z_v) / ``edges[v]`` are added to ``pairs[v]``, unless that is empty.
    """
    n_nodes, n_rows, h = up.shape
    for at in range(1, n_nodes):
        v = order[at]
        share, above = message[v], up[parent[v]]
        for i in range(n_rows):
            for z in range(h):
                known = above[i, z] > UNLIKELY and share[i, z] > 0.0
                share[i, z] = above[i, z] / share[i, z] if known else 0.0
        if pairs.size:
            np.dot(share.T, up[v], small)
            pairs[v] += small
        np.dot(share, edges[v], scratch)
        up[v] *= scratch


@_compile
def _normalise(logs, out):  # type: ignore[no-untyped-def]
    """Write exp(logs) scaled to add up to one, and return the logarithm of the scale."""
    top = logs.max()
    if not top > -np.inf:
        out[:] = 0.0
        return -np.inf
    total = 0.0
    for z in range(logs.size):
        out[z] = np.exp(logs[z] - top)
        total += out[z]
    for z in range(logs.size):
        out[z] /= total
    return top + np.log(total)


@_compile
def score_tree(codes, evidence, order, parent, edges_t, tile, out):  # type: ignore[no-untyped-def]
    """Write log P(evidence | z_root) of every row, but for what symbols were scaled by."""
    n_rows, n_nodes = codes.shape
    h = evidence.shape[1]
    up, message = np.empty((n_nodes, tile, h)), np.empty((n_nodes, tile, h))
    log_z = np.empty(tile)
    for begin in range(0, n_rows, tile):
        end = min(begin + tile, n_rows)
        if end - begin < up.shape[1]:
            up, message = np.empty((n_nodes, end - begin, h)), np.empty((n_nodes, end - begin, h))
            log_z = np.empty(end - begin)
        upward(
            codes[begin:end], evidence, order, parent, edges_t, up, message, out[begin:end], log_z
        )
        for i in range(begin, end):
            for z in range(h):
                out[i, z] += log_z[i - begin]


@_compile
def expect_tree(codes, weights, offsets, evidence, tree, log_prior, tile, symbols, pairs, totals):  # type: ignore[no-untyped-def]
    """Add up posteriors by symbol, by edge and by the root's state; return the log-likelihood.

    `offsets` is the logarithm of what each row's symbols were scaled by; `tree` is order, parents,
    edges and their transposes.
    """
    order, parent, edges, edges_t = tree
    n_rows, n_nodes = codes.shape
    h = evidence.shape[1]
    root, log_likelihood = order[0], 0.0
    up, message = np.empty((n_nodes, tile, h)), np.empty((n_nodes, tile, h))
    logs, log_z, scratch = np.empty((tile, h)), np.empty(tile), np.empty((tile, h))
    small = np.empty((h, h))
    for begin in range(0, n_rows, tile):
        end = min(begin + tile, n_rows)
        n = end - begin
        if n < up.shape[1]:
            up, message = np.empty((n_nodes, n, h)), np.empty((n_nodes, n, h))
            logs, log_z, scratch = np.empty((n, h)), np.empty(n), np.empty((n, h))
        upward(codes[begin:end], evidence, order, parent, edges_t, up, message, logs, log_z)
        for i in range(n):
            found = _normalise(logs[i] + log_prior, up[root, i])
            log_likelihood += weights[begin + i] * (found + log_z[i] + offsets[begin + i])
            for z in range(h):
                up[root, i, z] *= weights[begin + i]
                totals[z] += up[root, i, z]
        downward(order, parent, edges, up, message, scratch, small, pairs)
        for v in range(n_nodes):
            for i in range(n):
                symbol = codes[begin + i, v]
                for z in range(h):
                    symbols[symbol, z] += up[v, i, z]
    return log_likelihood


@_compile
def posterior_tree(codes, evidence, order, parent, edges, edges_t, root_state, out):  # type: ignore[no-untyped-def]
    """Write P(z_v | evidence, the root's state), shape (n_nodes, n_rows, h)."""
    n_rows, h = out.shape[1:]
    message = np.empty(out.shape)
    logs, log_z, scratch = np.empty((n_rows, h)), np.empty(n_rows), np.empty((n_rows, h))
    upward(codes, evidence, order, parent, edges_t, out, message, logs, log_z)
    out[order[0]] = 0.0
    out[order[0], :, root_state] = 1.0
    nothing = np.empty((0, h, h))
    downward(order, parent, edges, out, message, scratch, np.empty((h, h)), nothing)


@_compile
def draw_states(codes, evidence, order, parent, edges, edges_t, root_state, uniforms, out):  # type: ignore[no-untyped-def]
    """Draw the state of every node, given the evidence and the root's state."""
    n_rows, n_nodes = codes.shape
    h = evidence.shape[1]
    up, message = np.empty((n_nodes, n_rows, h)), np.empty((n_nodes, n_rows, h))
    logs, log_z = np.empty((n_rows, h)), np.empty(n_rows)
    upward(codes, evidence, order, parent, edges_t, up, message, logs, log_z)
    out[:, order[0]] = root_state
    for at in range(1, n_nodes):
        v = order[at]
        for i in range(n_rows):
            s = out[i, parent[v]]
            left = uniforms[i, v] * message[v, i, s]
            chosen = 0
            for z in range(h):
                share = edges[v, s, z] * up[v, i, z]
                if share > 0.0:
                    chosen = z
                    left -= share
                    if left < 0.0:
                        break
            out[i, v] = chosen


@_compile
def best_states(codes, log_best, order, parent, log_edges, root_state, out):  # type: ignore[no-untyped-def]
    """Write the states of all nodes that are jointly most probable, with the best completion.

    `log_best` is the log-probability of each symbol's best completion, by state.
    """
    n_rows, n_nodes = codes.shape
    h = log_best.shape[1]
    value, arrow = np.empty((n_nodes, h)), np.empty((n_nodes, h), dtype=np.int64)
    for i in range(n_rows):
        for v in range(n_nodes):
            value[v] = log_best[codes[i, v]]
        for at in range(n_nodes - 1, 0, -1):
            v = order[at]
            for s in range(h):
                top, chosen = -np.inf, 0
                for z in range(h):
                    here = log_edges[v, s, z] + value[v, z]
                    if here > top:
                        top, chosen = here, z
                arrow[v, s] = chosen
                value[parent[v], s] += top
        out[i, order[0]] = root_state
        for at in range(1, n_nodes):
            v = order[at]
            out[i, v] = arrow[v, out[i, parent[v]]]
