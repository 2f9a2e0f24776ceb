"""Many trees with the same edges, with some of their variables known: scores and marginals.

The innermost loops are over trees, a group of `WIDTH` trees at a time whose messages stay in the
first-level caches. Common arguments:

- `states` holds 0, 1 or −1 (unknown) for every row and node, in the order of the nodes;
- `active` marks nodes with known values at or below them: all other messages are one;
- `trees` is a `shared.Conditionals`.
"""

from exchangeable.runtime.kernels.cache import compiled, for_kernels
from exchangeable.runtime.kernels.vectors import logarithm

_compile = compiled(fastmath={"reassoc", "contract"})
_helper = for_kernels(fastmath={"reassoc", "contract"})

WIDTH = 64
"""Number of trees whose messages are sent together."""
MOST_FACTORS = 16
"""Number of factors that are multiplied before the logarithm of their product is taken."""


@_compile
def mark_active(states, parent, active):  # type: ignore[no-untyped-def]
    """Write which nodes are known or have known descendants; `active` has a column for the root."""
    n = parent.size
    for row in range(states.shape[0]):
        for v in range(n + 1):
            active[row, v] = v < n and states[row, v] >= 0
        for v in range(n - 1, -1, -1):
            active[row, parent[v]] |= active[row, v]


@_helper
def _send_upward(state, active, parent, given_off, given_on, below, logs):  # type: ignore[no-untyped-def]
    """Write P(known values below | node off, on), scaled, and the logarithms of the scales.

    `below` has shape (2, n + 1, WIDTH), `logs` shape (2, WIDTH): logarithms, and factors since the
    last one.
    """
    n = parent.size
    for v in range(n + 1):
        if active[v]:
            off, on = 1.0, 1.0
            if v == n:  # above all roots, and off
                on = 0.0
            elif state[v] >= 0:
                off, on = 1.0 - state[v], 1.0 * state[v]
            for i in range(WIDTH):
                below[0, v, i], below[1, v, i] = off, on
    for i in range(WIDTH):
        logs[0, i], logs[1, i] = 0.0, 1.0
    n_factors = 0
    for v in range(n - 1, -1, -1):
        if not active[v]:
            continue
        p = parent[v]
        for i in range(WIDTH):
            off, rise = below[0, v, i], below[1, v, i] - below[0, v, i]
            to_off = below[0, p, i] * (off + rise * given_off[v, i])
            to_on = below[1, p, i] * (off + rise * given_on[v, i])
            both = to_off + to_on
            scale = 1.0 / both
            below[0, p, i], below[1, p, i] = to_off * scale, to_on * scale
            logs[1, i] *= both
        n_factors += 1
        if n_factors % MOST_FACTORS == 0:
            for i in range(WIDTH):
                logs[0, i] += logarithm(logs[1, i])
                logs[1, i] = 1.0


@_compile
def score_shared(states, active, trees, stretches, below, logs, out):  # type: ignore[no-untyped-def]
    """Write log P(known entries) of every row in some groups of trees, minus that of no entries."""
    for number in range(stretches[0], stretches[1]):
        given_off, given_on = trees.given_off[number], trees.given_on[number]
        for row in range(states.shape[0]):
            _send_upward(states[row], active[row], trees.parent, given_off, given_on, below, logs)
            first = number * WIDTH
            for i in range(min(WIDTH, out.shape[1] - first)):
                out[row, first + i] = logs[0, i] + logarithm(logs[1, i])


@_compile
def marginals_shared(states, active, trees, shares, least, below, logs, out):  # type: ignore[no-untyped-def]
    """Add Σ_y share_y·P(x = 1 | known entries, y) of every row and node to `out`.

    Groups of trees whose shares are all below `least` of a row are skipped.
    """
    parent, n = trees.parent, trees.parent.size
    share, on_mass = logs[2], below[2]
    for number in range(trees.given_off.shape[0]):
        given_off, given_on = trees.given_off[number], trees.given_on[number]
        first = number * WIDTH
        for row in range(states.shape[0]):
            state, highest = states[row], 0.0
            for i in range(WIDTH):
                share[i] = shares[row, first + i] if first + i < shares.shape[1] else 0.0
                highest = max(highest, share[i])
                on_mass[n, i] = 0.0
            if highest < least[row]:
                continue
            _send_upward(state, active[row], parent, given_off, given_on, below, logs)
            for v in range(n):
                p, total = parent[v], 0.0
                if state[v] >= 0:
                    for i in range(WIDTH):
                        on_mass[v, i] = share[i] * state[v]
                        total += on_mass[v, i]
                elif active[row, v]:
                    for i in range(WIDTH):
                        off, rise = below[0, v, i], below[1, v, i] - below[0, v, i]
                        on = below[1, v, i]
                        from_off = given_off[v, i] * on / (off + given_off[v, i] * rise)
                        from_on = given_on[v, i] * on / (off + given_on[v, i] * rise)
                        on_mass[v, i] = share[i] * from_off + on_mass[p, i] * (from_on - from_off)
                        total += on_mass[v, i]
                else:
                    for i in range(WIDTH):
                        rise = given_on[v, i] - given_off[v, i]
                        on_mass[v, i] = share[i] * given_off[v, i] + on_mass[p, i] * rise
                        total += on_mass[v, i]
                out[row, v] += total
