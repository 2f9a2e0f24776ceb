"""Steps of EM over batches of rows for a tree of hidden states, entirely on a device."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from exchangeable.devices.passes.hidden import Shape, expect_tile, tuned

SMALLEST_SHARE, TINY = 1e-12, 1e-30
"""Lower bound of the probability of a state of the root, and of divisors."""


class Priors(NamedTuple):
    """Constants for turning sums into parameters.

    Attributes
    ----------
    pseudo : array of shape (n_counts,)
        Pseudo-rows of each count of each block.
    shrinkage : float
        Those of each line of an edge.
    block : array of shape (n_counts,)
        The block of each count.
    count : array of shape (n_symbols,)
        The count of each symbol; rows are complete.
    log_ways : array of shape (n_symbols,)
        The number of ways in which a block can have that count.
    """

    pseudo: Any
    shrinkage: Any
    block: Any
    count: Any
    log_ways: Any


class TreeSums(NamedTuple):
    """Sums from which parameters are computed.

    Attributes
    ----------
    log_likelihood : float
        Log-likelihood of all rows, approximately.
    totals : array of shape (n_states,)
        Posterior weight of each state of the root.
    counts : array of shape (n_counts, n_states)
        The same for each count and state of each block.
    pairs : array of shape (n_blocks, n_states, n_states)
        The same for each state of a block's parent and of the block.
    """

    log_likelihood: Any
    totals: Any
    counts: Any
    pairs: Any


class Batches(NamedTuple):
    """Rows of each step, padded with rows of weight 0, and rates."""

    rows: Any
    weights: Any
    rates: Any


def put(codes: Any, device: Any) -> Any:
    """Return the symbols of rows, on a device."""
    return jax.device_put(np.asarray(codes, dtype=np.int32), device)


def parameters(sums: TreeSums, priors: Priors) -> tuple[Any, Any, Any]:
    """Return P(symbol | state), edges, and log P of the root's states."""
    n_blocks = sums.pairs.shape[0]

    def by_block(each: Any) -> Any:
        return jax.ops.segment_sum(each, priors.block, n_blocks)

    counts = sums.counts + priors.pseudo[:, None]
    evidence = (counts / jnp.maximum(by_block(counts), TINY)[priors.block])[priors.count]
    masses = by_block(sums.counts)
    usual = masses / jnp.maximum(masses.sum(axis=1, keepdims=True), TINY)
    edges = sums.pairs + priors.shrinkage * usual[:, None, :]
    edges /= jnp.maximum(edges.sum(axis=2, keepdims=True), TINY)
    shares = jnp.maximum(sums.totals / sums.totals.sum(), SMALLEST_SHARE)
    return evidence, edges, jnp.log(shares / shares.sum())


@tuned
def steps_of(
    shape: Shape, codes: Any, priors: Priors, sums: TreeSums, batches: Batches, widest: int
) -> TreeSums:
    """Return sums after a step for each batch; `widest` is that of the shape."""
    tile = expect_tile.__wrapped__

    def one(sums: TreeSums, batch: tuple[Any, Any, Any]) -> tuple[TreeSums, None]:
        rows, weights, rate = batch
        evidence, edges, log_prior = parameters(sums, priors)
        shown = codes[rows]
        found = tile(shape, shown, weights, evidence, edges, log_prior, widest)
        each = found.each - priors.log_ways[shown].sum(axis=1)
        counts = jnp.zeros(sums.counts.shape).at[priors.count].add(found.by_symbol)
        to = TreeSums(weights @ each, found.totals, counts, found.pairs * edges)
        return jax.tree.map(lambda old, new: (1 - rate) * old + rate * new, sums, to), None

    after: TreeSums = jax.lax.scan(one, sums, batches)[0]
    return after


def take_steps(
    shape: Shape, codes: Any, priors: Priors, sums: Any, batches: Sequence[Any], device: Any
) -> TreeSums:
    """Return the sums, in double precision, after a step for each batch.

    Parameters
    ----------
    shape : Shape
        The tree.
    codes : array of shape (n_rows, n_nodes)
        The symbols of all rows, on the device.
    priors : Priors
        Constants for turning sums into parameters.
    sums : TreeSums
        The initial sums.
    batches : sequence of Batch
        The rows of each step.
    device : jax device
        Where steps are taken.
    """
    widest = max(batch.rows.size for batch in batches)
    rows = np.zeros((len(batches), widest), dtype=np.int32)
    weights = np.zeros(rows.shape, dtype=np.float32)
    for number, batch in enumerate(batches):
        rows[number, : batch.rows.size] = batch.rows
        weights[number, : batch.rows.size] = batch.weights
    rates = np.array([batch.rate for batch in batches], dtype=np.float32)
    tree = Shape(*(np.asarray(part, dtype=np.int32) for part in shape))
    given = Priors(
        np.asarray(priors.pseudo, dtype=np.float32),
        np.float32(priors.shrinkage),
        np.asarray(priors.block, dtype=np.int32),
        np.asarray(priors.count, dtype=np.int32),
        np.asarray(priors.log_ways, dtype=np.float32),
    )
    before = TreeSums(
        *(np.asarray(getattr(sums, name), dtype=np.float32) for name in TreeSums._fields)
    )
    there = jax.device_put((tree, given, before, Batches(rows, weights, rates)), device)
    after = steps_of(there[0], codes, *there[1:], shape.widest)
    found = TreeSums(*(np.asarray(part, dtype=np.float64) for part in after))
    return found._replace(log_likelihood=float(found.log_likelihood))
