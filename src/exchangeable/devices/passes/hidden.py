"""Passes of EM over a tree of hidden states: messages up, posteriors down, and their sums.

Every node has a symbol in every row; `evidence` is the probability of each symbol in each state,
scaled such that the largest of a symbol is one. Messages are products of a tile of rows with the
matrix of an edge.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

TILE_BYTES = 1 << 32
"""Messages of a tile of rows take about this much memory, if available."""
SMALLEST_TILE = 64
HIGHEST = jax.lax.Precision.HIGHEST
UNLIKELY = 1e-30
"""Smaller posteriors are not passed down."""
tuned = partial(jax.jit, static_argnames="widest")
"""Compiles with XLA's autotuning, which `program` switches off: it makes passes over a hidden tree
nearly five times as fast on a GPU."""


class Shape(NamedTuple):
    """A tree. Compiled code does not depend on the tree itself, so that other trees share it.

    Attributes
    ----------
    order : array of shape (n_nodes,)
        The nodes, parents before children.
    parent : array of shape (n_nodes,)
        Each node's parent; the root's is not read.
    first : array of shape (n_nodes + 1,)
        The first symbol of each node, and the number of all symbols.
    """

    order: Any
    parent: Any
    first: Any

    @property
    def widest(self) -> int:
        """The largest number of symbols of a node."""
        return int(np.diff(self.first).max())


class HiddenSums(NamedTuple):
    """The sums of a pass over a tile, and each row's log-likelihood.

    Attributes
    ----------
    each : array of shape (n_rows,)
        The log-likelihood of each row, without the scales of symbols.
    totals : array of shape (n_states,)
        Posteriors of the root's states.
    pairs : array of shape (n_nodes, n_states, n_states)
        Posteriors of the states of a node's parent and of the node, divided by its edge.
    by_symbol : array of shape (n_symbols, n_states)
        Posteriors of the states of the nodes that show each symbol.
    """

    each: Any
    totals: Any
    pairs: Any
    by_symbol: Any


def tile_size(n_rows: int, n_nodes: int, n_states: int, room: float = float("inf")) -> int:
    """Return how many rows are handled at once: all, or a power of two."""
    most = int(min(TILE_BYTES, room / 2))
    fitting = max(SMALLEST_TILE, most // (16 * n_nodes * n_states))
    return min(n_rows, 1 << (fitting.bit_length() - 1))


def matmul(left: Any, right: Any) -> Any:
    """Return a product in single precision, whatever the device's default is."""
    return jnp.matmul(left, right, precision=HIGHEST)


@tuned
def expect_tile(
    shape: Shape,
    codes: Any,
    weights: Any,
    evidence: Any,
    edges: Any,
    log_prior: Any,
    widest: int,
) -> HiddenSums:
    """Return the sums of a tile of rows; `widest` is that of the shape.

    Nodes are visited by loops on the device: compiling takes seconds whatever their number.
    """
    order, parent, first = shape
    root, below = order[0], order[1:]

    def inward(state: tuple[Any, Any], v: Any) -> tuple[tuple[Any, Any], Any]:
        up, scale = state
        message = matmul(up[v], edges[v].T)
        product = up[parent[v]] * message
        top = product.max(axis=1)
        safe = jnp.where(top > 0, top, 1.0)
        return (up.at[parent[v]].set(product / safe[:, None]), scale + jnp.log(safe)), message

    begin = (evidence[codes.T], jnp.zeros(codes.shape[0]))
    (up, scale), messages = jax.lax.scan(inward, begin, below[::-1])
    with_prior = up[root] * jnp.exp(log_prior - log_prior.max())
    total = with_prior.sum(axis=1)
    each = jnp.log(total) + log_prior.max() + scale
    safe = jnp.where(total > 0, total, 1.0)
    up = up.at[root].set(with_prior * (weights / safe)[:, None])

    def outward(up: Any, step: tuple[Any, Any]) -> tuple[Any, Any]:
        v, message = step
        above = up[parent[v]]
        known = (above > UNLIKELY) & (message > 0)
        share = jnp.where(known, above / jnp.where(known, message, 1.0), 0.0)
        pair = matmul(share.T, up[v])
        return up.at[v].set(up[v] * matmul(share, edges[v])), pair

    up, pairs = jax.lax.scan(outward, up, (below, messages[::-1]))
    every = jnp.zeros(edges.shape, dtype=pairs.dtype).at[below].set(pairs)

    def shown(by_symbol: Any, v: Any) -> tuple[Any, None]:
        symbols = first[v] + jnp.arange(widest)
        flags = (codes[:, v, None] == symbols).astype(jnp.float32)
        return by_symbol.at[symbols].add(matmul(flags.T, up[v]), mode="drop"), None

    by_symbol = jax.lax.scan(shown, jnp.zeros(evidence.shape), order)[0]
    return HiddenSums(each, up[root].sum(axis=0), every, by_symbol)


class HiddenRows(NamedTuple):
    """The symbols of rows, in tiles of equal size, on a device or sent there by every pass.

    Attributes
    ----------
    codes : list of arrays of shape (tile, n_nodes)
        The symbol of each node in each row.
    weights : list of arrays of shape (tile,)
        The weight of each row; 0 for the padding of the last tile.
    n_rows : int
        Number of rows.
    """

    codes: list[Any]
    weights: list[Any]
    n_rows: int


def put_rows(codes: Any, weights: Any, tile: int, device: Any, stay: bool = True) -> HiddenRows:
    """Return rows, which `stay` on a device, the last tile padded with copies of weight 0."""
    n_rows = len(codes)
    missing = -n_rows % tile
    codes = np.pad(codes, ((0, missing), (0, 0)), mode="edge")
    weights = np.pad(weights.astype(np.float32), (0, missing))
    starts = range(0, len(codes), tile)
    tiles = [(codes[begin : begin + tile], weights[begin : begin + tile]) for begin in starts]
    if stay:
        tiles = jax.device_put(tiles, device)
    return HiddenRows([each for each, _ in tiles], [each for _, each in tiles], n_rows)


class HiddenParameters(NamedTuple):
    """The parameters of a pass, in single precision.

    Attributes
    ----------
    evidence : array of shape (n_symbols, n_states)
        The probability of each symbol in each state, scaled such that the largest of a symbol is
        one.
    edges : array of shape (n_nodes, n_states, n_states)
        P(state of a node | state of its parent), by the parent's state first.
    log_prior : array of shape (n_states,)
        Log-probabilities of the root's states.
    """

    evidence: Any
    edges: Any
    log_prior: Any


def single(evidence: Any, edges: Any, log_prior: Any) -> HiddenParameters:
    """Return parameters in single precision."""
    return HiddenParameters(
        *[np.asarray(each, dtype=np.float32) for each in (evidence, edges, log_prior)]
    )


@tuned
def expect_several(
    shape: Shape, codes: Any, weights: Any, several: HiddenParameters, widest: int
) -> HiddenSums:
    """Return the sums of a tile of rows under several parameters, stacked."""
    tile = expect_tile.__wrapped__
    sums: HiddenSums = jax.vmap(lambda one: tile(shape, codes, weights, *one, widest))(several)
    return sums


def expect_hidden(
    shape: Shape, rows: HiddenRows, several: Sequence[HiddenParameters], device: Any
) -> list[HiddenSums]:
    """Return the sums over all rows, added up in double precision, under several parameters.

    The device works on one tile while the sums of the previous one are fetched.
    """
    tree = jax.device_put(Shape(*(np.asarray(part, dtype=np.int32) for part in shape)), device)
    count = len(several)
    stacked = HiddenParameters(*[np.stack(each) for each in zip(*several, strict=True)])
    given = jax.device_put(several[0] if count == 1 else stacked, device)
    each: list[Any] = []
    sums: list[Any] = [0.0] * 3

    def take(found: HiddenSums) -> None:
        wide = [np.asarray(part, dtype=np.float64) for part in found]
        if count == 1:
            wide = [part[None] for part in wide]
        each.append(wide[0])
        for position, summed in enumerate(wide[1:]):
            sums[position] = sums[position] + summed

    before: HiddenSums | None = None
    for tile in zip(rows.codes, rows.weights, strict=True):
        there = jax.device_put(tile, device)
        if count == 1:
            found = expect_tile(tree, *there, *given, shape.widest)
        else:
            found = expect_several(tree, *there, given, shape.widest)
        if before is not None:
            take(before)
        before = found
    assert before is not None
    take(before)
    every = np.concatenate(each, axis=1)[:, : rows.n_rows]
    return [HiddenSums(*one) for one in zip(every, *sums, strict=True)]
