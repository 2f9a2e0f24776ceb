"""The possible completions of the blocks of rows, and local search among them."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.data.columns.schema import typed, typed_rows
from exchangeable.data.observed import Observed
from exchangeable.data.rows import TypedRows
from exchangeable.families.hidden_trees.passes.states import TreeOfStates, scaled
from exchangeable.families.hidden_trees.search import Choices
from exchangeable.families.leaf_trees.leaves import Leaf, Shown

MOST_ALTERNATIVES = 256
"""Maximum number of completions of a block that are listed."""
BETTER = 1e-9
"""Changes of one block that gain less than this are not made."""


class Completed(NamedTuple):
    """The possible completions of the blocks of rows.

    Attributes
    ----------
    choices : Choices
        The completions of every distinct row of a leaf, as codes.
    preferred : array of shape (n_symbols, n_states)
        The completion that is best in each state.
    loose : array of shape (n_symbols,)
        Whether there are completions that are not listed.
    rows : list of arrays
        The completions of each leaf.
    first : array of shape (n_leaves,)
        The first code of each leaf's completions.
    """

    choices: Choices
    preferred: IntArray
    loose: npt.NDArray[np.bool_]
    rows: list[Any]
    first: IntArray


def completed_blocks(leaves: Sequence[Leaf], shown: Shown) -> Completed:
    """Return the possible completions of every distinct row of the leaves.

    If a leaf lists no alternatives, these are the best ones in each of its states.
    """
    n_symbols = int(shown.first[-1])
    begin, firsts, rows = n_symbols, list[int](), list[Any]()
    tables, numbers, loose = list[FloatArray](), list[IntArray](), list[Any]()
    for leaf, examples in zip(leaves, shown.rows, strict=True):
        observed = examples.observed
        found = leaf.model.alternatives(observed, MOST_ALTERNATIVES)
        loose.append(np.full(observed.n_rows, found is None) & observed.hole_flags().any(axis=1))
        if found is None:
            by_state = [leaf.model.complete(observed, z)[0] for z in range(leaf.model.n_classes)]
            found = [np.unique(each, axis=0) for each in np.stack(by_state, axis=1)]
        rows.append(np.concatenate(found))
        numbers.append(np.array([len(each) for each in found], dtype=np.int64))
        tables.append(leaf.model.score(_as_observed(rows[-1], observed)))
        firsts.append(begin)
        begin += len(rows[-1])
    number, table = np.concatenate(numbers), np.concatenate(tables)
    first = n_symbols + np.concatenate([[0], np.cumsum(number)[:-1]])
    best = np.maximum.reduceat(table, first - n_symbols, axis=0)
    preferred = _first_best(table, best, first - n_symbols, number) + first[:, None]
    choices = Choices(
        np.concatenate([best, table]),
        first,
        number,
        preferred[:, 0],
        (preferred != preferred[:, :1]).any(axis=1),
    )
    return Completed(choices, preferred, np.concatenate(loose), rows, np.array(firsts))


def _as_observed(rows: Any, like: Observed) -> Observed:
    """Return complete rows in the form of others."""
    if isinstance(like.ones, TypedRows):
        return typed(np.asarray(rows, dtype=np.float64), typed_rows(like).types)
    return Observed.from_symbols(np.asarray(rows, dtype=np.int8))


def _first_best(
    table: FloatArray, best: FloatArray, first: IntArray, number: IntArray
) -> npt.NDArray[np.int64]:
    """Return the index of the first of each symbol's lines with its highest entry, by column."""
    symbol = np.repeat(np.arange(number.size), number)
    place = np.arange(len(table)) - first[symbol]
    reached = np.where(table == best[symbol], place[:, None], len(table))
    return np.minimum.reduceat(reached, first, axis=0)


def climb(
    tree: TreeOfStates, choices: Choices, symbols: Any, codes: npt.NDArray[np.int32], state: int
) -> None:
    """Change one block of a row at a time, the one with the largest gain, until none gains.

    `symbols` are the codes of the rows; `codes`, those of completions, are modified.
    """
    evidence, top = scaled(choices.log_evidence)
    active = np.flatnonzero((choices.number[symbols] > 1).any(axis=1))
    while active.size:
        posterior = tree.posterior(codes[active], evidence, state)
        row, block, code = _options(choices, symbols[active])
        present = codes[active[row], block]
        known = evidence[present]
        others = np.divide(posterior[block, row], known, out=np.zeros_like(known), where=known > 0)
        value = (others * evidence[code]).sum(axis=1)
        with np.errstate(divide="ignore"):
            gain = np.log(value) + top[code] - top[present]
        order = np.lexsort((-gain, row))
        best = order[np.unique(row[order], return_index=True)[1]]
        best = best[gain[best] > BETTER]
        codes[active[row[best]], block[best]] = code[best]
        active = active[row[best]]


def _options(choices: Choices, symbols: Any) -> tuple[IntArray, IntArray, IntArray]:
    """Return the row, the block and the code of every completion of every block with several."""
    row, block = np.nonzero(choices.number[symbols] > 1)
    symbol = symbols[row, block]
    number = choices.number[symbol]
    begin = np.repeat(np.cumsum(number) - number, number)
    code = np.repeat(choices.first[symbol], number) + np.arange(begin.size) - begin
    return np.repeat(row, number), np.repeat(block, number), code
