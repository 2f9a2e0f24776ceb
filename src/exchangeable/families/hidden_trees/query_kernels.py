"""Completing rows of a hidden tree, once the states of its blocks are known or weighed.

A symbol is what a block shows: `ones` variables known to be on, `holes` that are not known. Given
the block's state z, k of the holes are on with probability proportional to
C(holes, k)·q(ones + k | z) / C(size, ones + k), and any k of them are as good as any other k.
"""

import numpy as np
from numba import njit

from exchangeable.families.hidden_trees.kernels import log_ways

_compile = njit(cache=True, nogil=True, error_model="numpy")


@_compile
def hole_means(block, ones, holes, sizes, starts, log_q, log_factorial, seen, out):  # type: ignore[no-untyped-def]
    """Write how probable a hole of each symbol is to be on, by state; zero without holes.

    `seen` is what `hidden_kernels.log_evidence` wrote.
    """
    for symbol in range(block.size):
        b, c, u = block[symbol], ones[symbol], holes[symbol]
        out[symbol] = 0.0
        for k in range(1, u + 1):
            ways = log_ways(log_factorial, u, k) - log_ways(log_factorial, sizes[b], c + k)
            for z in range(log_q.shape[1]):
                if seen[symbol, z] > -np.inf:
                    chance = np.exp(ways + log_q[starts[b] + c + k, z] - seen[symbol, z])
                    out[symbol, z] += chance * k / u


@_compile
def best_holes(block, ones, holes, sizes, starts, log_q, log_factorial, out, chosen):  # type: ignore[no-untyped-def]
    """Write the log-probability of each symbol's best completion, and how many holes are on."""
    for symbol in range(block.size):
        b, c, u = block[symbol], ones[symbol], holes[symbol]
        out[symbol] = -np.inf
        chosen[symbol] = 0
        for k in range(u + 1):
            ways = log_ways(log_factorial, sizes[b], c + k)
            for z in range(log_q.shape[1]):
                here = log_q[starts[b] + c + k, z] - ways
                if here > out[symbol, z]:
                    out[symbol, z] = here
                    chosen[symbol, z] = k


@_compile
def draw_holes(block, ones, holes, sizes, starts, log_q, log_factorial, seen, codes, states, uniforms, out):  # type: ignore[no-untyped-def]  # fmt: skip  # noqa: E501
    """Draw how many holes of each block are on, given its state."""
    for i in range(codes.shape[0]):
        for v in range(codes.shape[1]):
            symbol, z = codes[i, v], states[i, v]
            b, c, u = block[symbol], ones[symbol], holes[symbol]
            left, k = uniforms[i, v], 0
            for k in range(u + 1):
                ways = log_ways(log_factorial, u, k) - log_ways(log_factorial, sizes[b], c + k)
                left -= np.exp(ways + log_q[starts[b] + c + k, z] - seen[symbol, z])
                if left < 0.0:
                    break
            out[i, v] = k


@_compile
def fill(states, labels, holes, taken, uniforms):  # type: ignore[no-untyped-def]
    """Turn `taken` of the holes of each block on, each as probable, and the others off.

    `holes` counts those that are left, and is used up; with `uniforms` of zero the first are taken.
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
def best_changes(posterior, evidence, codes, ones, least, holes, starts, chances, gain, best):  # type: ignore[no-untyped-def]
    """Write what each block's best count gains in log-probability, all others as they are.

    `posterior` is that of the states of complete rows; `least` and `holes` are the known ones and
    the holes that each block had.
    """
    n_rows, n_blocks = codes.shape
    h = evidence.shape[1]
    around = np.empty(h)
    for i in range(n_rows):
        for b in range(n_blocks):
            if holes[i, b] == 0:
                continue
            symbol = codes[i, b]
            for z in range(h):
                known = evidence[symbol, z]
                around[z] = posterior[b, i, z] / known if known > 0.0 else 0.0
            present, top = 0.0, 0.0
            for count in range(least[i, b], least[i, b] + holes[i, b] + 1):
                value = 0.0
                for z in range(h):
                    value += around[z] * chances[starts[b] + count, z]
                if count == ones[symbol]:
                    present = value
                if value > top:
                    top, best[i, b] = value, count
            gain[i, b] = np.log(top / present) if present > 0.0 else 0.0
