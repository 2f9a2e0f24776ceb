"""Passes of EM over packed rows: linear scores, pairs along trees, and look-ups by counts.

The score of a row in class y is base[y] + Σ_j slope[j, y]·x_j + Σ_j pair[j, y]·x_j·x_parent(j, y),
plus a look-up by its number of ones (`by_count`) or by that in each block (`values`). Rows lie on
the device as bits and are unpacked a tile at a time, so that the work consists of matrix products.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from exchangeable.devices.programs import program

PARTS = 3
"""A number is split into this many of half the precision, which tensor cores multiply."""
HIGHEST = jax.lax.Precision.HIGHEST


class Rows(NamedTuple):
    """Rows on a device, in tiles.

    Attributes
    ----------
    bits : array of shape (n_tiles, tile, n_bytes)
        The rows, eight variables per byte, the first in the lowest bit.
    weights : array of shape (n_tiles, tile)
        The weight of each row; 0 for the padding of the last tile.
    """

    bits: Any
    weights: Any


class Parameters(NamedTuple):
    """The parameters of scores; unused ones have no entries.

    Attributes
    ----------
    base : array of shape (n_classes,)
        Log-probability of the class, and the score of a row without ones.
    slope : array of shape (n_variables, n_classes)
        What a one adds.
    parent : array of shape (n_variables, n_classes) or (0, 0)
        Each variable's parent, n_variables for a root.
    pair : array of shape (n_variables, n_classes) or (0, 0)
        The term of a variable and its parent.
    by_count : array of shape (n_variables + 1, n_classes) or (0, 0)
        The term of the number of ones.
    labels : array of shape (n_classes, n_variables) or (0, 0)
        The block of each variable, numbered from 0 in each class.
    starts : array of shape (n_classes, n_blocks) or (0, 0)
        The start of each block's look-ups; the last entry of `values` if a class has fewer blocks.
    values : array
        The term of each number of ones in each block, and a zero at the end.
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
    """The sums of a pass, laid out as the parameters, and each row's log-likelihood.

    Attributes
    ----------
    each : array of shape (n_tiles, tile)
        The log-likelihood of each row.
    posterior : array of shape (n_tiles, tile, n_classes), or no classes
        The posteriors, if requested.
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


def unpacked(bits: Any, n_variables: int, dtype: Any) -> Any:
    """Return rows of bits as a matrix of zeros and ones."""
    each = (bits[:, :, None] >> jnp.arange(8, dtype=jnp.uint8)) & jnp.uint8(1)
    return each.reshape(bits.shape[0], -1)[:, :n_variables].astype(dtype)


def in_parts(values: Any, count: int = PARTS) -> Any:
    """Return numbers split into several of half the precision, side by side."""
    parts = []
    for _ in range(count):
        # Compilers optimise away rounding by a cast and back.
        part = jax.lax.reduce_precision(values, exponent_bits=8, mantissa_bits=7)
        parts.append(part.astype(jnp.bfloat16))
        values = values - part
    return jnp.concatenate(parts, axis=1)


def product(rows: Any, values: Any) -> Any:
    """Return the product of zeros and ones with numbers, to single precision.

    Rows are exact in half precision; the numbers are then multiplied in parts.
    """
    if rows.dtype != jnp.bfloat16:
        return jnp.matmul(rows, values, precision=HIGHEST)
    both = jnp.matmul(rows, in_parts(values), preferred_element_type=jnp.float32)
    return both.reshape(rows.shape[0], PARTS, -1).sum(axis=1)


@program("keep", "halved")
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
        Whether posteriors are requested.
    halved : bool
        Whether rows are multiplied in half precision, and numbers in parts, for tensor cores.
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


@program("keep", "halved")
def expect_several(
    rows: Rows, several: Parameters, keep: bool = False, halved: bool = False
) -> LinearSums:
    """Return the sums of passes under several parameters, stacked, over the same rows."""
    whole = expect_linear.__wrapped__
    sums: LinearSums = jax.vmap(lambda one: whole(rows, one, keep, halved))(several)
    return sums


def stacked(several: Sequence[Parameters]) -> Parameters:
    """Return parameters of the same shapes with a first axis of their own."""
    return Parameters(*[np.stack(each) for each in zip(*several, strict=True)])


def single(
    base: Any,
    slope: Any,
    parent: Any = None,
    pair: Any = None,
    by_count: Any = None,
    tables: tuple[Any, Any, Any] | None = None,
) -> Parameters:
    """Return parameters in single precision; empty ones are unused."""
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
