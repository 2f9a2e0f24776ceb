"""Completing rows under a hidden tree, by draws and by local search; arguments as in `kernels`."""

import numpy as np

from exchangeable.families.hidden_trees.passes.kernels import upward
from exchangeable.runtime.kernels.cache import compiled

_compile = compiled()


@_compile
def draw_states(codes, evidence, tree, root_state, uniforms, messages, out):  # type: ignore[no-untyped-def]
    """Draw the state of every node, given the evidence and the root's state."""
    n_rows, h = codes.shape[0], evidence.shape[1]
    order, parent, edges = tree.order, tree.parent, tree.edges
    upward(codes, evidence, tree, messages)
    up, message = messages.up, messages.message
    out[:, order[0]] = root_state
    for v in order[1:]:
        for i in range(n_rows):
            s = out[i, parent[v]]
            target = uniforms[i, v] * message[v, i, s]
            chosen = 0
            for z in range(h):
                share = edges[v, s, z] * up[v, i, z]
                if share > 0.0:
                    chosen = z
                    target -= share
                    if target < 0.0:
                        break
            out[i, v] = chosen


@_compile
def best_states(codes, log_best, tree, log_edges, root_state, out):  # type: ignore[no-untyped-def]
    """Write the jointly most probable states of all nodes, together with the best completion.

    `log_best` is the log-probability of each symbol's best completion, by state; `log_edges` are
    the logarithms of the tree's edges.
    """
    n_rows, n_nodes = codes.shape
    h = log_best.shape[1]
    order, parent = tree.order, tree.parent
    value, arrow = np.empty((n_nodes, h)), np.empty((n_nodes, h), dtype=np.int64)
    for i in range(n_rows):
        for v in range(n_nodes):
            value[v] = log_best[codes[i, v]]
        for v in order[:0:-1]:
            for s in range(h):
                top, chosen = -np.inf, 0
                for z in range(h):
                    log_prob = log_edges[v, s, z] + value[v, z]
                    if log_prob > top:
                        top, chosen = log_prob, z
                arrow[v, s] = chosen
                value[parent[v], s] += top
        out[i, order[0]] = root_state
        for v in order[1:]:
            out[i, v] = arrow[v, out[i, parent[v]]]


@_compile
def fill(states, labels, holes, taken, uniforms):  # type: ignore[no-untyped-def]
    """Turn on `taken` of the unknown entries of each block, at random, and the others off.

    ``holes[i, b]`` counts the entries of row i in block b that are still to be filled; it and
    `taken` are modified. With `uniforms` of zero the first entries are turned on.
    """
    for i in range(states.shape[0]):
        for j in range(states.shape[1]):
            if states[i, j] < 0:
                b = labels[j]
                on = uniforms[i, j] * holes[i, b] < taken[i, b]
                states[i, j] = 1 if on else 0
                holes[i, b] -= 1
                taken[i, b] -= 1 if on else 0


@_compile
def best_changes(posterior, evidence, emissions, codes, least, holes, chances, gain, best):  # type: ignore[no-untyped-def]
    """Write the gain in log-probability of each block's best count, with all others unchanged.

    `posterior` is that of the states of complete rows; `evidence` and `codes` are those it was
    computed from; `least` and `holes` are the known ones and the unknown entries that each block
    had; `chances` is P(one row with a count | z), in the layout of `emissions.log_q`, up to a
    factor per block.
    """
    n_rows, n_blocks = codes.shape
    h = evidence.shape[1]
    ones, starts = emissions.ones, emissions.starts
    others = np.empty(h)
    for i in range(n_rows):
        for b in range(n_blocks):
            if holes[i, b] == 0:
                continue
            symbol = codes[i, b]
            for z in range(h):
                known = evidence[symbol, z]
                others[z] = posterior[b, i, z] / known if known > 0.0 else 0.0
            present, top = 0.0, 0.0
            for count in range(least[i, b], least[i, b] + holes[i, b] + 1):
                value = 0.0
                for z in range(h):
                    value += others[z] * chances[starts[b] + count, z]
                if count == ones[symbol]:
                    present = value
                if value > top:
                    top, best[i, b] = value, count
            gain[i, b] = np.log(top / present) if present > 0.0 else 0.0
