"""Hidden trees: symbols of the blocks of rows, and their probabilities given the states.

A *symbol* describes a block of a row: `ones` variables known to be on, and `holes` unknown ones.
Given the block's state z, k of the unknown ones are on with probability proportional to C(holes,
k)·q(ones + k | z) / C(size, ones + k).
"""

from typing import NamedTuple

import numpy as np

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.runtime.kernels.cache import compiled, for_kernels

_compile = compiled()
_helper = for_kernels()


class Emissions(NamedTuple):
    """Symbols, and the parameters for their probabilities.

    Attributes
    ----------
    block, ones, holes : arrays of shape (n_symbols,)
        The block of each symbol, and its number of known ones and of unknown entries.
    sizes, starts : arrays of shape (n_blocks,)
        Number of variables of each block, and the start of its counts in `log_q`.
    log_q : array of shape (table_size, h)
        log q(l | z) of every block and count.
    log_factorial : array
        log n! of all numbers up to the largest block.
    """

    block: IntArray
    ones: IntArray
    holes: IntArray
    sizes: IntArray
    starts: IntArray
    log_q: FloatArray
    log_factorial: FloatArray


@_helper
def _log_ways(log_factorial, m, on):  # type: ignore[no-untyped-def]
    """Return log C(m, on)."""
    return log_factorial[m] - log_factorial[on] - log_factorial[m - on]


@_helper
def log_completions(emissions, symbol, k):  # type: ignore[no-untyped-def]
    """Return log C(holes, k) − log C(size, ones + k) of a symbol."""
    log_factorial = emissions.log_factorial
    size, ones = emissions.sizes[emissions.block[symbol]], emissions.ones[symbol]
    return _log_ways(log_factorial, emissions.holes[symbol], k) - _log_ways(
        log_factorial, size, ones + k
    )


@_helper
def first_count(emissions, symbol):  # type: ignore[no-untyped-def]
    """Return the index in `log_q` of a symbol's count if all its unknown entries are off."""
    return emissions.starts[emissions.block[symbol]] + emissions.ones[symbol]


@_compile
def write_log_evidence(emissions, out):  # type: ignore[no-untyped-def]
    """Write log P(symbol | z): Σ_k C(holes, k)·q(ones + k | z) / C(size, ones + k)."""
    holes, log_q = emissions.holes, emissions.log_q
    for symbol in range(holes.size):
        first = first_count(emissions, symbol)
        for z in range(log_q.shape[1]):
            top = -np.inf
            for k in range(holes[symbol] + 1):
                top = max(top, log_completions(emissions, symbol, k) + log_q[first + k, z])
            total = 0.0
            if top > -np.inf:
                for k in range(holes[symbol] + 1):
                    ways = log_completions(emissions, symbol, k)
                    total += np.exp(ways + log_q[first + k, z] - top)
            out[symbol, z] = top + np.log(total) if total > 0.0 else -np.inf


@_compile
def spread(emissions, log_evidence, mass, out):  # type: ignore[no-untyped-def]
    """Add the mass of each symbol and state to the counts that the symbol may become.

    `log_evidence` is the result of `write_log_evidence`.
    """
    holes, log_q = emissions.holes, emissions.log_q
    for symbol in range(holes.size):
        first = first_count(emissions, symbol)
        for k in range(holes[symbol] + 1):
            ways = log_completions(emissions, symbol, k)
            for z in range(log_q.shape[1]):
                if mass[symbol, z] > 0.0:
                    chance = np.exp(ways + log_q[first + k, z] - log_evidence[symbol, z])
                    out[first + k, z] += mass[symbol, z] * chance


@_compile
def hole_means(emissions, log_evidence, out):  # type: ignore[no-untyped-def]
    """Write the probability of an unknown entry being on, by symbol and state.

    `log_evidence` is the result of `write_log_evidence`. Without unknown entries it is zero.
    """
    holes, log_q = emissions.holes, emissions.log_q
    for symbol in range(holes.size):
        first, n_holes = first_count(emissions, symbol), holes[symbol]
        out[symbol] = 0.0
        for k in range(1, n_holes + 1):
            ways = log_completions(emissions, symbol, k)
            for z in range(log_q.shape[1]):
                if log_evidence[symbol, z] > -np.inf:
                    chance = np.exp(ways + log_q[first + k, z] - log_evidence[symbol, z])
                    out[symbol, z] += chance * k / n_holes


@_compile
def best_holes(emissions, log_best, chosen):  # type: ignore[no-untyped-def]
    """Write the log-probability of each symbol's best completion, and its number of new ones."""
    holes, log_q, log_factorial = emissions.holes, emissions.log_q, emissions.log_factorial
    for symbol in range(holes.size):
        first, ones = first_count(emissions, symbol), emissions.ones[symbol]
        size = emissions.sizes[emissions.block[symbol]]
        log_best[symbol] = -np.inf
        chosen[symbol] = 0
        for k in range(holes[symbol] + 1):
            ways = _log_ways(log_factorial, size, ones + k)
            for z in range(log_q.shape[1]):
                log_prob = log_q[first + k, z] - ways
                if log_prob > log_best[symbol, z]:
                    log_best[symbol, z] = log_prob
                    chosen[symbol, z] = k


@_compile
def draw_holes(emissions, log_evidence, codes, states, uniforms, out):  # type: ignore[no-untyped-def]
    """Draw the number of unknown entries of each block that are on, given its state.

    ``codes[i, v]`` is the symbol of block v in row i; `log_evidence` is the result of
    `write_log_evidence`. If the symbol is impossible, all of them are on.
    """
    holes, log_q = emissions.holes, emissions.log_q
    for i in range(codes.shape[0]):
        for v in range(codes.shape[1]):
            symbol, z = np.int64(codes[i, v]), states[i, v]
            first, target = first_count(emissions, symbol), uniforms[i, v]
            out[i, v] = holes[symbol]
            if log_evidence[symbol, z] == -np.inf:
                continue
            for k in range(holes[symbol]):
                ways = log_completions(emissions, symbol, k)
                target -= np.exp(ways + log_q[first + k, z] - log_evidence[symbol, z])
                if target < 0.0:
                    out[i, v] = k
                    break
