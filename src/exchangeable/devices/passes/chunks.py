"""Packed rows on a device: all of them, or in chunks that are sent again in every pass."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from exchangeable.devices.passes.linear import (
    LinearSums,
    Parameters,
    Rows,
    expect_linear,
    expect_several,
    stacked,
)

TILE_BYTES = 1 << 28
"""The unpacked rows and the posteriors of a tile take about this much memory."""
LARGEST_TILE = 1 << 16


class Layout(NamedTuple):
    """The layout of rows on a device.

    Attributes
    ----------
    tile : int
        Number of rows that are unpacked at once.
    tiles : int
        Number of tiles on the device at once.
    n_bytes : float
        Their memory, with scores, posteriors and parameters.
    """

    tile: int
    tiles: int
    n_bytes: float


def layout(n_rows: int, n_variables: int, n_classes: int, room: float) -> Layout:
    """Return a layout of all rows if they fit, otherwise of chunks two of which fit.

    While a pass works on one chunk, the next one is transferred.
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
    """Return packed rows in chunks of `tiles` tiles, the last padded with rows of weight 0.

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
    chunks: list[Rows], several: Sequence[Parameters], n_rows: int, halved: bool, device: Any
) -> list[LinearSums]:
    """Return the sums of passes over all rows, added up in double precision, and posteriors.

    Passes under several parameters of the same shapes are made together. If there are several
    chunks, the device holds two of them: the current one and the next.
    """
    count, k = len(several), several[0].base.size
    parameters = several[0] if count == 1 else stacked(several)
    make = expect_linear if count == 1 else expect_several
    each, posterior = np.empty((count, n_rows)), np.empty((count, n_rows, k))
    sums: list[Any] = [0.0] * 5

    def take(number: int, found: LinearSums) -> None:
        begin = number * chunks[0].weights.size
        end = min(n_rows, begin + chunks[0].weights.size)
        each[:, begin:end] = np.asarray(found.each).reshape(count, -1)[:, : end - begin]
        shares = np.asarray(found.posterior).reshape(count, -1, k)
        posterior[:, begin:end] = shares[:, : end - begin]
        for position, summed in enumerate(found[2:]):
            total = np.asarray(summed, dtype=np.float64)
            sums[position] = sums[position] + (total[None] if count == 1 else total)

    before: LinearSums | None = None
    for number, chunk in enumerate(chunks):
        there = jax.device_put(chunk, device)
        found = make(there, parameters, keep=True, halved=halved)
        if before is not None:
            take(number - 1, before)
        before = found
    assert before is not None
    take(len(chunks) - 1, before)
    return [LinearSums(*one) for one in zip(each, posterior, *sums, strict=True)]
