"""The possible completions of blocks with unknown entries, by their counts."""

import numpy as np

from exchangeable.arrays import FloatArray
from exchangeable.families.hidden_trees.passes import symbol_kernels
from exchangeable.families.hidden_trees.passes.messages import Messages, Symbols
from exchangeable.families.hidden_trees.search import Choices


def count_choices(tree: Messages, symbols: Symbols) -> Choices:
    """Return the counts that the symbols of rows may become.

    Codes of counts follow those of symbols, in the layout of the partition.
    """
    best = np.empty((symbols.block.size, tree.n_states))
    chosen = np.empty(best.shape, dtype=np.int64)
    symbol_kernels.best_holes(tree.emissions(symbols), best, chosen)
    first = symbols.block.size + tree.partition.starts[symbols.block] + symbols.ones
    return Choices(
        np.concatenate([best, log_rows(tree)]),
        first,
        symbols.holes + 1,
        first + chosen[:, 0],
        (chosen != chosen[:, :1]).any(axis=1),
    )


def log_rows(tree: Messages) -> FloatArray:
    """Return log P of one row with each count of each block, by state."""
    partition = tree.partition
    counted = Symbols(
        np.empty((0, 0), dtype=np.int32),
        np.repeat(np.arange(partition.n_blocks), partition.sizes + 1),
        np.concatenate([np.arange(m + 1) for m in partition.sizes]),
        np.zeros(tree.log_q.shape[0], dtype=np.int64),
    )
    return tree.log_evidence(counted)
