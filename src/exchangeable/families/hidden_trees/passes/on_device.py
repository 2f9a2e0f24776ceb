"""Messages along a tree of hidden states on a device of JAX, in place of the compiled ones."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from exchangeable.arrays import FloatArray
from exchangeable.devices.choice import check_room, import_jax, out_of_memory_told, usable_on
from exchangeable.devices.passes.together import make_pass
from exchangeable.families.hidden_trees.passes.messages import Messages, Symbols, TreeSums
from exchangeable.families.hidden_trees.passes.states import scaled
from exchangeable.families.sums import RowsInMemory

ROWS = "symbols on a device"


def expect_on_device(
    messages: Messages, device: Any, data: RowsInMemory, log_prior: FloatArray
) -> TreeSums:
    """Compute the posteriors of all hidden states, and their sums."""
    (hidden,) = import_jax("device='gpu'", "exchangeable.devices.passes.hidden")
    n_blocks, examples = messages.parent.size, data.examples
    memo, runs = (
        (data.memo, 1) if data.together is None else (data.together.memo, data.together.most)
    )
    blocks = f"{ROWS}, blocks {messages.partition.labels.tolist()}"
    if blocks not in memo:  # rows and blocks stay the same from pass to pass
        symbols = Symbols.of(examples.observed, messages.partition)
        room, n_states = usable_on(device), messages.n_states
        tile = hidden.tile_size(examples.rows.n_rows, n_blocks, runs * n_states, room)
        work = 20.0 * tile * n_blocks * runs * n_states + 16.0 * runs * messages.edges.size
        check_room(device, work, f"EM of {n_states:,} states in {n_blocks:,} blocks")
        stay = 4.0 * symbols.codes.size + work <= room
        rows = hidden.put_rows(symbols.codes, examples.weights, tile, device, stay)
        memo[blocks] = symbols, rows
    symbols, rows = memo[blocks]
    log_evidence = messages.log_evidence(symbols)
    evidence, top = scaled(log_evidence)
    first = np.searchsorted(symbols.block, np.arange(n_blocks + 1))
    shape = hidden.Shape(messages.order, messages.parent, first)
    given = hidden.single(evidence, messages.edges, log_prior)

    def make(several: Sequence[Any]) -> Any:
        with out_of_memory_told(f"EM of {messages.n_states:,} states in {n_blocks:,} blocks"):
            return hidden.expect_hidden(shape, rows, several, device)

    tree = tuple(messages.order.tolist()), tuple(messages.parent.tolist())
    sums = make_pass(data.together, (blocks, tree, evidence.shape), given, make)
    each = sums.each + top[symbols.codes].sum(axis=1)
    counts = messages.counts(symbols, log_evidence, sums.by_symbol)
    return TreeSums(
        float(examples.weights @ each), sums.totals, counts, sums.pairs * messages.edges
    )
