"""Most probable completions under a hidden tree, by branch and bound.

The probability of a row is a sum over hidden states, whose maximum over the unknown entries has no
closed form. If every state may choose its own completion of a block, the sum can only increase:

    max_x Σ_z P(z) Π_b P(x_b | z_b)  ≤  Σ_z P(z) Π_b max_{x_b} P(x_b | z_b),

and the right side takes one pass of messages. Blocks whose completion is the same for every state
do not loosen the bound. The search fixes the block on which the states disagree most, with one
branch per completion (one is enough of those that all states find equally probable), continues
where the bound is highest, and ends when no bound is above the best completion found.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.families.hidden_trees.passes import kernels
from exchangeable.families.hidden_trees.passes.states import TreeOfStates, scaled

MOST_WORK = 1 << 26
"""Number of message products after which the search for one row stops with its best result."""
MOST_BRANCHES = 1 << 12
"""Number of branches after which it stops, whatever their cost."""
AT_ONCE = 16
"""Branches of a row that are explored together."""
LEVEL = 1e-9
"""A bound is reached if the best log-probability is this close to it."""
Codes = npt.NDArray[np.int32]


class Choices(NamedTuple):
    """The possible completions of blocks.

    Codes number the symbols of rows first, and then complete blocks.

    Attributes
    ----------
    log_evidence : array of shape (n_codes, n_states)
        log P of a symbol's best completion, which may differ between states, and of complete
        blocks.
    first, number : arrays of shape (n_symbols,)
        The codes of a symbol's completions: the first, and their number.
    agreed : array of shape (n_symbols,)
        The one that the first state prefers.
    open : array of shape (n_symbols,)
        Whether another state prefers another one.
    """

    log_evidence: FloatArray
    first: IntArray
    number: IntArray
    agreed: IntArray
    open: npt.NDArray[np.bool_]


class Found(NamedTuple):
    """The best completions of some rows.

    Attributes
    ----------
    codes : array of shape (n_rows, n_blocks)
        The codes of the completed blocks.
    state : array of shape (n_rows,)
        The root's state, as an index into the requested states.
    log_prob, bound : arrays of shape (n_rows,)
        log P(x, z_root), and an upper bound of it over all completions.
    """

    codes: Codes
    state: IntArray
    log_prob: FloatArray
    bound: FloatArray


class Branch(NamedTuple):
    """Some completions of a row: the codes of the blocks, and the block to fix next."""

    codes: Codes
    block: int


@dataclass(frozen=True)
class Looked:
    """The result of exploring some branches.

    Attributes
    ----------
    bound : array of shape (n_branches,)
        Upper bound over all completions of a branch.
    block : array of shape (n_branches,)
        The block on which states disagree most.
    codes : array of shape (n_branches, n_blocks)
        A completion of each branch.
    state, log_prob : arrays of shape (n_branches,)
        The root's state with the highest probability, and log P.
    """

    bound: FloatArray
    block: IntArray
    codes: Codes
    state: IntArray
    log_prob: FloatArray


class Search:
    """The completions of some rows, explored branch by branch.

    Parameters
    ----------
    tree : TreeOfStates
        The tree.
    codes : array of shape (n_rows, n_blocks)
        The symbols that its blocks show in the rows.
    choices : Choices
        How these can be completed.
    states : array
        The requested states of the root.
    log_prior : array
        Their log-probabilities.
    """

    def __init__(
        self,
        tree: TreeOfStates,
        codes: Codes,
        choices: Choices,
        states: IntArray,
        log_prior: FloatArray,
    ) -> None:
        self.tree, self.codes, self.choices = tree, codes, choices
        self.states, self.log_prior = states, log_prior
        self.evidence, self.top = scaled(choices.log_evidence)

    def run(
        self, most: int | IntArray = MOST_BRANCHES, at_least: FloatArray | None = None
    ) -> Found:
        """Return the best completions, with bounds that equal them if there was enough time.

        Parameters
        ----------
        most : int or array of shape (n_rows,)
            Maximum number of branches per row.
        at_least : array of shape (n_rows,), optional
            log P of known completions; only better ones are searched for.
        """
        starts = self.codes
        looked = self._look(starts)
        n_rows = len(starts)
        best, state, codes = looked.log_prob, looked.state, looked.codes
        if at_least is not None:
            best = np.maximum(best, at_least)
        heaps: list[list[tuple[float, int, Branch]]] = [[] for _ in range(n_rows)]
        number = count()
        for i in range(n_rows):
            branch = Branch(starts[i], int(looked.block[i]))
            heappush(heaps[i], (-looked.bound[i], next(number), branch))
        left = np.full(n_rows, np.minimum(most, self._patience()))
        while True:
            taken = [
                (i, branch) for i in range(n_rows) for branch in _take(heaps[i], best, left, i)
            ]
            if not taken:
                break
            parts = [self._parts(branch) for _, branch in taken]
            rows = np.repeat([i for i, _ in taken], [len(each) for each in parts])
            branches = np.concatenate(parts)
            looked = self._look(branches)
            for j, i in enumerate(rows):
                if looked.log_prob[j] > best[i]:
                    best[i], state[i] = looked.log_prob[j], looked.state[j]
                    codes[i] = looked.codes[j]
            for j, i in enumerate(rows):
                left[i] -= 1
                if looked.bound[j] > best[i] + LEVEL:
                    branch = Branch(branches[j], int(looked.block[j]))
                    heappush(heaps[i], (-looked.bound[j], next(number), branch))
        highest = np.array([-heap[0][0] if heap else -np.inf for heap in heaps])
        loose = highest > best + LEVEL
        return Found(self._complete(codes), state, best, np.where(loose, highest, best))

    def _patience(self) -> int:
        """Return the maximum number of branches of a row."""
        products = self.tree.parent.size * self.tree.n_states**2
        return int(min(MOST_BRANCHES, max(MOST_WORK // products, AT_ONCE)))

    def _completions(self, symbol: int) -> IntArray:
        """Return the codes of a symbol's completions."""
        first = self.choices.first[symbol]
        return np.arange(first, first + self.choices.number[symbol])

    def _parts(self, branch: Branch) -> Codes:
        """Return a branch with each completion of its block."""
        completions = self._completions(int(branch.codes[branch.block]))
        parts = np.repeat(branch.codes[None, :], completions.size, axis=0)
        parts[:, branch.block] = completions
        return parts

    def _joint(self, codes: Codes) -> FloatArray:
        """Return log P of some branches, for each requested state of the root."""
        out = np.empty((len(codes), self.tree.n_states))
        kernels.score_tree(codes, self.evidence, self.tree.tree, self.tree.room(), out)
        offsets = self.top[codes].sum(axis=1)
        return np.asarray(out[:, self.states] + offsets[:, None] + self.log_prior)

    def _look(self, codes: Codes) -> Looked:
        """Compute bounds for branches, and complete each by majority of its states."""
        joint = self._joint(codes)
        likeliest = joint.argmax(axis=1)
        bound = joint[np.arange(len(codes)), likeliest]
        completed, block = codes.copy(), np.zeros(len(codes), dtype=np.int64)
        for state in np.unique(likeliest):
            mine = np.flatnonzero(likeliest == state)
            for part in np.array_split(mine, -(-mine.size // self.tree.tile)):
                completed[part], block[part] = self._agree(codes[part], int(self.states[state]))
        exact = self._joint(completed)
        best = exact.argmax(axis=1)
        return Looked(bound, block, completed, best, exact[np.arange(len(codes)), best])

    def _agree(self, codes: Codes, state: int) -> tuple[Codes, IntArray]:
        """Return the counts with the majority of the states' mass, and the most disputed block."""
        tree = self.tree
        posterior = tree.posterior(codes, self.evidence, state)
        completed, worst = codes.copy(), np.zeros(len(codes), dtype=np.int64)
        least = np.full(len(codes), np.inf)
        for b in range(tree.parent.size):
            for symbol in _open_symbols(codes[:, b], self.choices.open):
                mine = np.flatnonzero(codes[:, b] == symbol)
                fixed = self._completions(symbol)
                weight = posterior[b, mine] / np.maximum(self.evidence[symbol], 1e-300)
                chance = np.exp(self.top[fixed] - self.top[symbol])
                shares = weight @ (self.evidence[fixed] * chance[:, None]).T
                completed[mine, b] = fixed[shares.argmax(axis=1)]
                agreeing = shares.max(axis=1)
                worse = agreeing < least[mine]
                least[mine[worse]], worst[mine[worse]] = agreeing[worse], b
        return completed, worst

    def _complete(self, codes: Codes) -> Codes:
        """Return the codes of the blocks, including those that all states complete alike."""
        agreed = self.choices.agreed
        known = agreed[np.minimum(codes, agreed.size - 1)]
        return np.where(codes < agreed.size, known, codes).astype(np.int32)


def _take(
    heap: list[tuple[float, int, Branch]], best: FloatArray, left: IntArray, i: int
) -> Sequence[Branch]:
    """Take the next branches of a row to explore: those with the highest bounds."""
    taken: list[Branch] = []
    while heap and len(taken) < AT_ONCE and left[i] > 0 and -heap[0][0] > best[i] + LEVEL:
        taken.append(heappop(heap)[2])
    return taken


def _open_symbols(codes: Codes, is_open: npt.NDArray[np.bool_]) -> IntArray:
    """Return the symbols among some codes that states complete in different ways."""
    present = np.unique(codes).astype(np.int64)
    present = present[present < is_open.size]
    return present[is_open[present]]
