"""Log-linear passes on a JAX device, in place of the compiled ones."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray
from exchangeable.data.examples import Examples
from exchangeable.data.observed import flags
from exchangeable.devices.choice import check_room, import_jax, out_of_memory_told, usable_on
from exchangeable.devices.passes.together import make_pass
from exchangeable.families.common.log_linear.scores import LinearSums, LogLinear
from exchangeable.families.common.tables import Tables
from exchangeable.families.sums import RowsInMemory

ROWS = "rows on a device"


def can(examples: Examples) -> bool:
    """Whether rows are complete, and none has a class."""
    return examples.holes is None and not examples.clamp.size


def put_rows(device: Any, data: RowsInMemory, n_classes: int) -> Any:
    """Return the rows in chunks: one that stays on a device, or several to be sent there."""
    (chunks,) = import_jax("device='gpu'", "exchangeable.devices.passes.chunks")
    memo, runs = (
        (data.memo, 1) if data.together is None else (data.together.memo, data.together.most)
    )
    if ROWS not in memo:
        rows = data.examples.rows
        bits = np.packbits(flags(rows), axis=1, bitorder="little")
        layout = chunks.layout(rows.n_rows, rows.n_variables, runs * n_classes, usable_on(device))
        what = f"EM over rows of {rows.n_variables:,} variables with {n_classes:,} components"
        check_room(device, layout.n_bytes, what if runs == 1 else f"{what}, {runs} runs together,")
        memo[ROWS] = chunks.put_rows(bits, data.examples.weights, layout.tile, layout.tiles, device)
    return memo[ROWS]


def expect(device: Any, data: RowsInMemory, model: LogLinear, log_prior: FloatArray) -> LinearSums:
    """Return the sums of a pass, including posteriors; runs that go together share one."""
    linear, passes = import_jax(
        "device='gpu'", "exchangeable.devices.passes.linear", "exchangeable.devices.passes.chunks"
    )
    examples, k = data.examples, model.base.size
    tables = block_tables(model.tables) if model.tables.starts.size else None
    parameters = linear.single(
        model.base + log_prior, model.slope, model.parent, model.pair, model.by_count, tables
    )
    halved = getattr(device, "platform", "cpu") != "cpu"

    def make(several: Sequence[Any]) -> Any:
        with out_of_memory_told(f"EM with {k:,} components"):
            rows = put_rows(device, data, k)
            return passes.expect_chunks(rows, several, examples.rows.n_rows, halved, device)

    shapes = tuple(each.shape for each in parameters)
    sums = make_pass(data.together, shapes, parameters, make)
    each, posterior, totals, ones, pairs, counts, blocks = sums
    return LinearSums(
        float(examples.weights @ each),
        posterior,
        totals,
        ones,
        pairs,
        counts,
        model.tables.split(blocks[:-1]) if tables is not None else [],
    )


def block_tables(
    tables: Tables,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], FloatArray]:
    """Return labels, starts and values of blocks in the form of a device."""
    first, n_classes = tables.first_block, tables.first_block.size - 1
    labels = tables.labels.astype(np.int64).T - first[:-1, None]
    most = int(np.diff(first).max())
    starts = np.full((n_classes, most), tables.values.size, dtype=np.int64)
    for y in range(n_classes):
        own = tables.starts[first[y] : first[y + 1]]
        starts[y, : own.size] = own
    return labels, starts, np.append(tables.values, 0.0)
