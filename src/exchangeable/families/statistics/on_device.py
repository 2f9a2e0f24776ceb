"""Passes over values of statistics on a JAX device, in place of those in NumPy.

T of complete rows is computed once, on the CPU. A row is then an indicator for each value of each
statistic, beside its other variables: blocks of one variable, whose look-up is 0 or the log-urns.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.data.examples import Examples
from exchangeable.data.observed import flags
from exchangeable.data.rows import Rows, as_rows
from exchangeable.families.blocks.model import BlockModel
from exchangeable.families.blocks.passes import BlockSums, expect_on
from exchangeable.families.common.em_data import InMemory
from exchangeable.families.common.tables import Tables
from exchangeable.families.statistics.values import Values
from exchangeable.families.sums import RowsInMemory
from exchangeable.partitions import Partition

INDICATORS = "rows as indicators of values"


class Summed(NamedTuple):
    """The sums of a pass: of all rows, by value of each statistic, and of the other variables."""

    whole: BlockSums
    histograms: list[FloatArray]
    inner: BlockSums | None


def expect_values(
    device: Any,
    data: RowsInMemory,
    values: Sequence[Values],
    log_urns: Sequence[FloatArray],
    rest: BlockModel | None,
    other_rows: Rows | None,
    log_prior: FloatArray,
) -> Summed:
    """Compute the posteriors of complete rows, and the sums for the next parameters.

    Parameters
    ----------
    device : device of JAX
        Where the pass is made.
    data : RowsInMemory
        The rows.
    values : sequence of Values
        T of the rows, for each block.
    log_urns : sequence of arrays of shape (n_values, n_classes)
        The log-probability of one row with each value.
    rest, other_rows
        The blocks of the remaining variables, and the rows of these.
    log_prior : array of shape (n_classes,)
        Log-probabilities of the classes.
    """
    sizes, k = [len(urns) for urns in log_urns], log_prior.size
    n_values = sum(sizes)
    if INDICATORS not in data.memo:
        data.memo[INDICATORS] = _indicators(data, values, sizes, other_rows)
    partitions, parts = list[Partition](), list[FloatArray]()
    own = np.concatenate(log_urns)
    for y in range(k):
        labels: list[IntArray] = [np.arange(n_values)]
        parts.append(np.stack([np.zeros(n_values), own[:, y]], axis=1).ravel())
        if rest is not None:
            labels.append(rest.partitions[y].labels.astype(np.int64) + n_values)
            parts.append(rest.made_tables.of_class(y))
        partitions.append(Partition.from_labels(np.concatenate(labels)))
    tables = Tables.layout(partitions, np.concatenate(parts))
    whole = expect_on(device, data.memo[INDICATORS], tables, log_prior)
    mass = np.stack([histogram[1 : 2 * n_values : 2] for histogram in whole.histograms], axis=1)
    inner = None
    if rest is not None:
        others = [histogram[2 * n_values :] for histogram in whole.histograms]
        inner = BlockSums(0.0, whole.posterior, whole.totals, others)
    return Summed(whole, np.split(mass, np.cumsum(sizes)[:-1]), inner)


def _indicators(
    data: RowsInMemory, values: Sequence[Values], sizes: Sequence[int], other_rows: Rows | None
) -> InMemory:
    """Return the rows as indicators of values, and then the other variables."""
    n_rows = data.examples.rows.n_rows
    bits = np.zeros((n_rows, sum(sizes)), dtype=np.uint8)
    for found, first in zip(values, np.cumsum([0, *sizes]), strict=False):
        bits[found.complete, first + found.position] = 1
    if other_rows is not None:
        bits = np.concatenate([bits, flags(other_rows).astype(np.uint8)], axis=1)
    examples = Examples(as_rows(bits, None), data.examples.weights)
    return InMemory(examples, n_jobs=data.n_jobs, together=data.together)
