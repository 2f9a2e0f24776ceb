"""Steps of EM over batches of rows for a hidden tree, on the CPU or a JAX device."""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.devices.choice import import_jax, out_of_memory_told
from exchangeable.families.contract import Model
from exchangeable.families.hidden_trees.model import HiddenSums
from exchangeable.families.hidden_trees.passes.messages import (
    Messages,
    Symbols,
    TreeSums,
    expect_messages,
)
from exchangeable.families.mixture import Mixture
from exchangeable.families.sums import NO_POSTERIOR, Batch, RowsInMemory
from exchangeable.partitions import Partition, log_factorials

SYMBOLS, DEVICE_ROWS = "symbols of steps", "rows of steps on a device"


class Stepping(Protocol):
    """Turns sums into parameters: the family of hidden trees."""

    partition: Partition

    def following(self, data: Any, model: Any, sums: Any, step: int) -> list[Model]:
        """Return the parameters for given posteriors."""

    def log_shares(self, totals: FloatArray) -> FloatArray:
        """Return log P of the root's states."""

    def pseudo_counts(self) -> tuple[FloatArray, float]:
        """Return the pseudo-rows of each count, and those of each row of an edge's table."""


def take_steps(
    family: Stepping,
    data: RowsInMemory,
    mixture: Mixture,
    sums: HiddenSums,
    batches: Sequence[Batch],
) -> tuple[Mixture, HiddenSums]:
    """Take a step for each batch, as described in `Family.steps`."""
    if SYMBOLS not in data.memo:
        data.memo[SYMBOLS] = Symbols.of(data.examples.observed, family.partition)
    symbols: Symbols = data.memo[SYMBOLS]
    tree = sums.tree
    if data.device is not None and not symbols.holes.any():
        tree = _on_device(family, data, symbols, mixture, tree, batches)
        return _after(family, data, mixture, tree)
    for batch in batches:
        mixture, _ = _after(family, data, mixture, tree)
        model: Any = mixture.model
        found = expect_messages(
            model.trees[0].messages,
            batch.weights,
            symbols.take(batch.rows),
            mixture.log_prior,
            data.n_jobs,
        )
        tree = tree.moved(found, batch.rate)
    return _after(family, data, mixture, tree)


def _after(
    family: Stepping, data: RowsInMemory, mixture: Mixture, tree: TreeSums
) -> tuple[Mixture, HiddenSums]:
    """Return the parameters computed from sums."""
    sums = HiddenSums(tree.log_likelihood, NO_POSTERIOR, tree.totals, tree)
    (model,) = family.following(data, mixture.model, sums, 1)
    return Mixture(model, family.log_shares(tree.totals)), sums


def _on_device(
    family: Stepping,
    data: RowsInMemory,
    symbols: Symbols,
    mixture: Mixture,
    sums: TreeSums,
    batches: Sequence[Batch],
) -> TreeSums:
    """Return the sums after steps that all run on a device, so that sums need not leave it."""
    (hidden,) = import_jax("device='gpu'", "exchangeable.devices.passes.hidden_steps")
    partition, model = family.partition, mixture.model
    messages: Messages = model.trees[0].messages  # type: ignore[attr-defined]
    n_blocks, h = messages.parent.size, messages.n_states
    if DEVICE_ROWS not in data.memo:
        data.memo[DEVICE_ROWS] = hidden.put(symbols.codes, data.device)
    priors = hidden.Priors(
        *family.pseudo_counts(),
        np.repeat(np.arange(n_blocks), partition.sizes + 1),
        partition.starts[symbols.block] + symbols.ones,
        _log_ways(partition.sizes[symbols.block], symbols.ones),
    )
    first = np.searchsorted(symbols.block, np.arange(n_blocks + 1))
    shape = hidden.Shape(messages.order, messages.parent, first)
    with out_of_memory_told(f"EM of {h:,} states in {n_blocks:,} blocks"):
        found = hidden.take_steps(shape, data.memo[DEVICE_ROWS], priors, sums, batches, data.device)
    return TreeSums(*found)


def _log_ways(sizes: IntArray, ones: IntArray) -> FloatArray:
    """Return log C(size, ones), in how many ways this many variables can be on."""
    log_factorial = log_factorials(int(sizes.max()))
    return np.asarray(log_factorial[sizes] - log_factorial[ones] - log_factorial[sizes - ones])
