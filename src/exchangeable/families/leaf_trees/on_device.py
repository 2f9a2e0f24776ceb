"""Messages between the states of trees with leaves on a JAX device, in place of compiled ones.

A tree sees its leaves as codes, whatever these are; the probability of a code in each state is
computed by the leaves, on the CPU, once for every distinct one.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from exchangeable.arrays import FloatArray
from exchangeable.devices.choice import check_room, import_jax, out_of_memory_told, usable_on
from exchangeable.devices.passes.together import make_pass
from exchangeable.families.hidden_trees.passes.kernels import PosteriorSums
from exchangeable.families.hidden_trees.passes.states import TreeOfStates, scaled
from exchangeable.families.leaf_trees.leaves import Shown
from exchangeable.families.sums import RowsInMemory

ROWS = "codes on a device"


class SummedOnDevice(NamedTuple):
    """The log-likelihood of some rows, without their Jacobians, and the sums of their states."""

    log_likelihood: float
    sums: PosteriorSums


def expect_on_device(
    tree: TreeOfStates,
    shown: Shown,
    log_evidence: FloatArray,
    weights: FloatArray,
    log_prior: FloatArray,
    device: Any,
    data: RowsInMemory,
    begin: int,
) -> SummedOnDevice:
    """Compute the posteriors of all hidden states of some rows, and their sums.

    Parameters
    ----------
    tree : TreeOfStates
        The tree.
    shown : Shown
        The codes of its leaves in the rows.
    log_evidence : array of shape (n_codes, n_states)
        The probability of each code.
    weights : array of shape (n_rows,)
        How much each row counts.
    log_prior : array of shape (n_states,)
        Log-probabilities of the root's states.
    device : device of JAX
        Where the pass is made.
    data : RowsInMemory
        All rows; data on the device are cached with them.
    begin : int
        The number of the first row.
    """
    (hidden,) = import_jax("device='gpu'", "exchangeable.devices.passes.hidden")
    memo, runs = (
        (data.memo, 1) if data.together is None else (data.together.memo, data.together.most)
    )
    n_rows, n_nodes = shown.codes.shape
    key = f"{ROWS}, {n_nodes} of {shown.first.tolist()}, from {begin}"
    if key not in memo:
        room = usable_on(device)
        tile = hidden.tile_size(n_rows, n_nodes, runs * tree.n_states, room)
        work = 20.0 * tile * n_nodes * runs * tree.n_states + 16.0 * runs * tree.edges.size
        check_room(device, work, f"EM of {tree.n_states:,} states in {n_nodes:,} blocks")
        stay = 4.0 * shown.codes.size + work <= room
        memo[key] = hidden.put_rows(shown.codes, weights, tile, device, stay)
    rows = memo[key]
    evidence, top = scaled(log_evidence)
    shape = hidden.Shape(tree.order, tree.parent, shown.first)
    given = hidden.single(evidence, tree.edges, log_prior)

    def make(several: Sequence[Any]) -> Any:
        with out_of_memory_told(f"EM of {tree.n_states:,} states in {n_nodes:,} blocks"):
            return hidden.expect_hidden(shape, rows, several, device)

    ways = tuple(tree.order.tolist()), tuple(tree.parent.tolist())
    found = make_pass(data.together, (key, ways, evidence.shape), given, make)
    each = found.each + top[shown.codes].sum(axis=1)
    by_symbol, pairs = (np.asarray(part, np.float64) for part in (found.by_symbol, found.pairs))
    sums = PosteriorSums(by_symbol, pairs, np.asarray(found.totals, np.float64))
    return SummedOnDevice(float(weights @ each), sums)
