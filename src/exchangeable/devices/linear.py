"""Passes of EM over packed rows: linear scores, pairs along trees, and look-ups by counts.

The score of a row in class y is base[y] + Σ_j slope[j, y]·x_j + Σ_j pair[j, y]·x_j·x_parent(j, y),
plus a look-up by its number of ones (`by_count`) or by that in each block (`values`). Rows lie on
the device as bits and are unpacked a tile at a time, so that the work is products of matrices.
Where it has no room for all of them they are sent there in chunks, anew for every pass.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

TILE_BYTES = 1 << 28
"""The unpacked rows and the posteriors of a tile take about this much."""
LARGEST_TILE = 1 << 16
PARTS = 3
"""A number is the sum of this many of half the precision, which tensor cores multiply."""
HIGHEST = jax.lax.Precision.HIGHEST


class Rows(NamedTuple):
    """Rows on a device, in tiles.

    Attributes
    ----------
    bits : array of shape (n_tiles, tile, n_bytes)
        The rows, eight variables per byte, the first in the lowest bit.
    weights : array of shape (n_tiles, tile)
        How much each row counts; 0 for those that fill the last tile up.
    """

    bits: Any
    weights: Any


class Parameters(NamedTuple):
    """What scores are made of; what is not in use has no entries.

    Attributes
    ----------
    base : array of shape (n_classes,)
        Log-probability of the class, and the score of a row without ones.
    slope : array of shape (n_variables, n_classes)
        What a one adds.
    parent : array of shape (n_variables, n_classes) or (0, 0)
        Each variable's parent, n_variables for a root.
    pair : array of shape (n_variables, n_classes) or (0, 0)
        What a variable and its parent add together.
    by_count : array of shape (n_variables + 1, n_classes) or (0, 0)
        What the number of ones adds.
    labels : array of shape (n_classes, n_variables) or (0, 0)
        The block of each variable, numbered from 0 in each class.
    starts : array of shape (n_classes, n_blocks) or (0, 0)
        Where the look-ups of each block begin; the last entry of `values` where a class has fewer.
    values : array
        What each number of ones in each block adds, and a zero at the end.
    """

    base: Any
    slope: Any
    parent: Any
    pair: Any
    by_count: Any
    labels: Any
    starts: Any
    values: Any


class LinearSums(NamedTuple):
    """What a pass sums, laid out as the parameters, and each row's log-likelihood.

    Attributes
    ----------
    each : array of shape (n_tiles, tile)
        The log-likelihood of each row.
    posterior : array of shape (n_tiles, tile, n_classes), or no classes
        The posteriors, where they are wanted.
    totals, ones, pairs, counts, blocks : arrays
        Sums of posteriors over rows, rows with a one, with a pair, with a count, with a count in a
        block.
    """

    each: Any
    posterior: Any
    totals: Any
    ones: Any
    pairs: Any
    counts: Any
    blocks: Any


class Layout(NamedTuple):
    """How rows are laid out on a device.

    Attributes
    ----------
    tile : int
        Rows that are unpacked at once.
    tiles : int
        Tiles that lie on the device together.
    n_bytes : float
        What that takes, with scores, posteriors and parameters.
    """

    tile: int
    tiles: int
    n_bytes: float


def layout(n_rows: int, n_variables: int, n_classes: int, room: float) -> Layout:
    """Return a layout of all rows if there is room for them, else of as many as there is for twice.

    While a pass works on some of the rows the next are on their way.
    """
    row = 4.0 * (n_variables + 3 * n_classes)
    tile = tile_size(n_rows, max(8, int(min(TILE_BYTES, room / 8) / row)))
    fixed = 2.0 * tile * row + 24.0 * n_variables * n_classes
    each = float(tile) * (-(-n_variables // 8) + 4 * (n_classes + 2))
    tiles = -(-n_rows // tile)
    if fixed + tiles * each > room:
        tiles = max(1, int((room - fixed) / (2 * each)))
        each *= 2
    return Layout(tile, tiles, fixed + tiles * each)


def tile_size(n_rows: int, most: int) -> int:
    """Return how many rows are unpacked at once, a power of two.

    >>> tile_size(300, 1000), tile_size(10_000, 1000)
    (512, 512)
    """
    return min(1 << (most.bit_length() - 1), LARGEST_TILE, 1 << max(3, (n_rows - 1).bit_length()))


def put_rows(bits: Any, weights: Any, tile: int, tiles: int, device: Any) -> list[Rows]:
    """Return packed rows in chunks of this many tiles, the last filled up with rows of no weight.

    A single chunk lies on the device, several stay where they are until a pass needs them.
    """
    n_rows, width = bits.shape
    size = tile * tiles
    chunks = []
    for begin in range(0, n_rows, size):
        some, counted = bits[begin : begin + size], weights[begin : begin + size]
        missing = size - len(some)
        padded = np.pad(some, ((0, missing), (0, 0))).reshape(tiles, tile, width)
        own = np.pad(counted.astype(np.float32), (0, missing)).reshape(tiles, tile)
        chunks.append(Rows(padded, own))
    return [jax.device_put(chunks[0], device)] if len(chunks) == 1 else chunks


def expect_chunks(
    chunks: list[Rows], parameters: "Parameters", n_rows: int, halved: bool, device: Any
) -> "LinearSums":
    """Return the sums of a pass over all rows, added up in double precision, and posteriors.

    Where there are several chunks the device holds two of them: one at work and the next.
    """
    k = parameters.base.size
    each, posterior = np.empty(n_rows), np.empty((n_rows, k))
    sums: list[Any] = [0.0] * 5

    def take(number: int, found: LinearSums) -> None:
        begin = number * chunks[0].weights.size
        end = min(n_rows, begin + chunks[0].weights.size)
        each[begin:end] = np.asarray(found.each).ravel()[: end - begin]
        posterior[begin:end] = np.asarray(found.posterior).reshape(-1, k)[: end - begin]
        for position, summed in enumerate(found[2:]):
            sums[position] = sums[position] + np.asarray(summed, dtype=np.float64)

    before: LinearSums | None = None
    for number, chunk in enumerate(chunks):
        there = jax.device_put(chunk, device)
        found = expect_linear(there, parameters, keep=True, halved=halved)
        if before is not None:
            take(number - 1, before)
        before = found
    assert before is not None
    take(len(chunks) - 1, before)
    return LinearSums(each, posterior, *sums)


def unpacked(bits: Any, n_variables: int, dtype: Any) -> Any:
    """Return rows of bits as a matrix of zeros and ones."""
    each = (bits[:, :, None] >> jnp.arange(8, dtype=jnp.uint8)) & jnp.uint8(1)
    return each.reshape(bits.shape[0], -1)[:, :n_variables].astype(dtype)


def in_parts(values: Any, count: int = PARTS) -> Any:
    """Return numbers as several of half the precision that add up to them, side by side."""
    parts = []
    for _ in range(count):
        # Rounding by a cast and back is something compilers leave out.
        part = jax.lax.reduce_precision(values, exponent_bits=8, mantissa_bits=7)
        parts.append(part.astype(jnp.bfloat16))
        values = values - part
    return jnp.concatenate(parts, axis=1)


def product(rows: Any, values: Any) -> Any:
    """Return the product of zeros and ones with numbers, to single precision.

    Rows of half precision are exact; the numbers are then multiplied in parts.
    """
    if rows.dtype != jnp.bfloat16:
        return jnp.matmul(rows, values, precision=HIGHEST)
    both = jnp.matmul(rows, in_parts(values), preferred_element_type=jnp.float32)
    return both.reshape(rows.shape[0], PARTS, -1).sum(axis=1)


@partial(jax.jit, static_argnames=("keep", "halved"))
def expect_linear(
    rows: Rows, parameters: Parameters, keep: bool = False, halved: bool = False
) -> LinearSums:
    """Return the sums of a pass.

    Parameters
    ----------
    rows : Rows
        The rows.
    parameters : Parameters
        What their scores are made of.
    keep : bool
        Whether posteriors are wanted.
    halved : bool
        Whether rows are multiplied in half precision, numbers in parts: for tensor cores.
    """
    n, k = parameters.slope.shape

    def one(sums: Any, tile: Rows) -> tuple[Any, Any]:
        x = unpacked(tile.bits, n, jnp.bfloat16 if halved else jnp.float32)
        scores = product(x, parameters.slope) + parameters.base
        counted = None
        if parameters.by_count.size:
            counts = x.astype(jnp.float32).sum(axis=1).astype(jnp.int32)
            counted = jax.nn.one_hot(counts, n + 1, dtype=x.dtype)
            scores += parameters.by_count[counts]
        wide = jnp.pad(x, ((0, 0), (0, 1)))
        if parameters.parent.size:

            def paired(given: Any) -> Any:
                parent, pair = given
                both = (x * wide[:, parent]).astype(jnp.float32)
                return jnp.matmul(both, pair, precision=HIGHEST)

            scores += jax.lax.map(paired, (parameters.parent.T, parameters.pair.T)).T
        entries = None
        if parameters.starts.size:
            single, blocks = x.astype(jnp.float32), jnp.arange(parameters.starts.shape[1])

            def found(given: Any) -> Any:
                labels, starts = given
                member = (labels[:, None] == blocks).astype(jnp.float32)
                return starts + jnp.matmul(single, member, precision=HIGHEST).astype(jnp.int32)

            entries = jax.lax.map(found, (parameters.labels, parameters.starts))
            scores += parameters.values[entries].sum(axis=2).T
        each = jax.nn.logsumexp(scores, axis=1)
        possible = jnp.isfinite(each)[:, None]
        posterior = jnp.where(possible, jnp.exp(scores - each[:, None]), 0.0)
        mass = tile.weights[:, None] * posterior
        totals, ones, pairs, by_count, by_block = sums
        totals, ones = totals + mass.sum(axis=0), ones + product(x.T, mass)
        if counted is not None:
            by_count += product(counted.T, mass)
        if entries is not None:
            by_block = by_block.at[entries].add(mass.T[:, :, None])
        if parameters.parent.size:

            def summed(given: Any) -> Any:
                parent, own = given
                both = (x * wide[:, parent]).astype(jnp.float32)
                return jnp.matmul(own, both, precision=HIGHEST)

            pairs += jax.lax.map(summed, (parameters.parent.T, mass.T)).T
        return (totals, ones, pairs, by_count, by_block), (
            each,
            posterior if keep else posterior[:, :0],
        )

    begin = (
        jnp.zeros(k),
        jnp.zeros((n, k)),
        jnp.zeros(parameters.pair.shape),
        jnp.zeros(parameters.by_count.shape),
        jnp.zeros(parameters.values.shape),
    )
    (totals, ones, pairs, counts, blocks), (each, posterior) = jax.lax.scan(one, begin, rows)
    return LinearSums(each, posterior, totals, ones, pairs, counts, blocks)


def single(
    base: Any,
    slope: Any,
    parent: Any = None,
    pair: Any = None,
    by_count: Any = None,
    tables: tuple[Any, Any, Any] | None = None,
) -> Parameters:
    """Return parameters in single precision; what is left away, or empty, is not in use."""
    nothing = np.zeros((0, 0))
    numbers = [np.zeros((0, 0)) if each is None else each for each in (pair, by_count)]
    labels, starts, values = tables or (nothing, nothing, np.zeros(0))
    both, counts = (np.asarray(each, dtype=np.float32) for each in numbers)
    return Parameters(
        np.asarray(base, dtype=np.float32),
        np.asarray(slope, dtype=np.float32),
        np.asarray(nothing if parent is None else parent, dtype=np.int32),
        both,
        counts,
        np.asarray(labels, dtype=np.int32),
        np.asarray(starts, dtype=np.int32),
        np.asarray(values, dtype=np.float32),
    )
