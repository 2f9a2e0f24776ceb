"""Sums over complete rows for the start of hidden trees."""

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.data.examples import Examples
from exchangeable.data.observed import flags
from exchangeable.families.common.pool import all_pairs
from exchangeable.partitions import Partition

NOTHING = 1e-12
"""Smaller posteriors are ignored when EM starts."""


def block_counts(examples: Examples, partition: Partition) -> npt.NDArray[np.int64]:
    """Return the number of ones of each row in each block."""
    on = flags(examples.rows)
    if partition.n_blocks == partition.labels.size:
        return on[:, np.argsort(partition.labels)].astype(np.int64)
    return np.stack([on[:, block].sum(axis=1) for block in partition.blocks], axis=1)


def pair_masses(examples: Examples, partition: Partition) -> FloatArray:
    """Return the weight of the rows with each count in one block and each in another.

    For single variables only ones are counted: the result has one line per block. Otherwise it has
    one line per entry of the partition's layout.
    """
    if partition.n_blocks == partition.labels.size:
        order = np.argsort(partition.labels)
        return all_pairs(examples)[np.ix_(order, order)]
    counts = block_counts(examples, partition)
    levels = [np.eye(size + 1)[counts[:, b]] for b, size in enumerate(partition.sizes)]
    flat = np.concatenate(levels, axis=1)
    return np.asarray(flat.T @ (examples.weights[:, None] * flat))


def component_masses(examples: Examples, posterior: FloatArray) -> FloatArray:
    """Return the weight of each row in each component."""
    return examples.weights[:, None] * np.where(posterior > NOTHING, posterior, 0.0)


def count_masses(
    examples: Examples, posterior: FloatArray, partition: Partition
) -> tuple[list[FloatArray], list[FloatArray]]:
    """Return the mass of each count of each block by component, and of all components."""
    counts, mass = block_counts(examples, partition), component_masses(examples, posterior)
    every = mass.sum(axis=1)
    by_component: list[FloatArray] = []
    of_all: list[FloatArray] = []
    for column, size in zip(counts.T, partition.sizes, strict=True):
        by_component.append(np.eye(size + 1)[column].T @ mass)
        of_all.append(np.bincount(column, every, minlength=size + 1).astype(np.float64))
    return by_component, of_all


def half_masses(
    examples: Examples,
    posterior: FloatArray,
    partition: Partition,
    parent: npt.NDArray[np.int32],
    cuts: IntArray,
) -> FloatArray:
    """Return the mass of each component by whether a block's parent, and the block, has many ones.

    The result has shape (n_blocks, 2, 2, n_components); it is zero at the root.
    """
    many = block_counts(examples, partition) > cuts
    return halved_pairs(many, component_masses(examples, posterior), parent)


def halved_pairs(
    many: npt.NDArray[np.bool_], mass: FloatArray, parent: npt.NDArray[np.int32]
) -> FloatArray:
    """Return the same, given which blocks have many ones, and the rows' masses."""
    pairs = np.zeros((parent.size, 2, 2, mass.shape[1]))
    for b in np.flatnonzero(parent < parent.size):
        above = many[:, parent[b]]
        for m, n in np.ndindex(2, 2):
            pairs[b, m, n] = mass[(above == m) & (many[:, b] == n)].sum(axis=0)
    return pairs
