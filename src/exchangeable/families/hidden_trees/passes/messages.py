"""Passes over rows for a tree of blocks with hidden states: symbols, scores and sums."""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.data.examples import row_parts
from exchangeable.data.observed import Observed
from exchangeable.families.hidden_trees.passes import kernels, symbol_kernels
from exchangeable.families.hidden_trees.passes.kernels import PosteriorSums
from exchangeable.families.hidden_trees.passes.states import TreeOfStates, scaled
from exchangeable.families.hidden_trees.passes.symbol_kernels import Emissions
from exchangeable.partitions import Partition, log_factorials
from exchangeable.runtime.threads import row_ranges, run

MOST_SLOTS = 1 << 20
"""Blocks with at most this many symbols have a slot for each; otherwise those present are
sorted."""
SCORE_CHUNK = 1 << 11
ROW_STEPS = 0.25
"""Steps of a row for each cell of the tables; few rows would make products of matrices slow."""


@dataclass(frozen=True)
class Symbols:
    """The symbols of the blocks in some rows: their known ones, and their unknown entries.

    Attributes
    ----------
    codes : array of shape (n_rows, n_blocks)
        The symbol of each block.
    block, ones, holes : arrays of shape (n_symbols,)
        The block of each symbol, and its number of known ones and of unknown entries.

    Examples
    --------
    >>> rows = Observed.from_symbols(np.array([[1, 0, 1], [1, -1, 0], [0, 1, 1]]))
    >>> shown = Symbols.of(rows, Partition.from_labels([0, 0, 1]))
    >>> shown.codes.tolist()
    [[0, 3], [1, 2], [0, 3]]
    >>> list(zip(shown.block.tolist(), shown.ones.tolist(), shown.holes.tolist()))
    [(0, 1, 0), (0, 1, 1), (1, 0, 0), (1, 1, 0)]
    """

    codes: npt.NDArray[np.int32]
    block: IntArray
    ones: IntArray
    holes: IntArray

    @classmethod
    def of(cls, observed: Observed, partition: Partition) -> "Symbols":
        """Return the symbols of the blocks of a partition in each row."""
        states = observed.symbols()
        codes = np.empty((observed.n_rows, partition.n_blocks), dtype=np.int32)
        symbols: list[npt.NDArray[np.int64]] = []
        begin = 0
        for b, members in enumerate(partition.blocks):
            width, shown = members.size + 1, states[:, members]
            key = (shown == 1).sum(axis=1) * width + (shown < 0).sum(axis=1)
            if width * width <= max(MOST_SLOTS, key.size):
                present = np.flatnonzero(np.bincount(key, minlength=width * width))
                code = np.empty(width * width, dtype=np.int32)
                code[present] = np.arange(begin, begin + present.size)
                codes[:, b] = code[key]
            else:
                present, position = np.unique(key, return_inverse=True)
                codes[:, b] = begin + position.ravel()
            begin += present.size
            symbols.append(np.stack([np.full(present.size, b), present // width, present % width]))
        block, ones, holes = np.concatenate(symbols, axis=1)
        return cls(codes, block, ones, holes)

    def take(self, rows: IntArray) -> "Symbols":
        """Return the symbols of the blocks in some of the rows."""
        return replace(self, codes=self.codes[rows])


@dataclass(frozen=True)
class Messages(TreeOfStates):
    """Everything that messages along one tree need, computed from its parameters.

    Attributes
    ----------
    partition : Partition
        The blocks, which are the nodes of the tree.
    parent : array of shape (n_blocks,)
        Each block's parent, n_blocks for the root.
    log_q : array of shape (table_size, n_states)
        log q(l | z) of every block and count, in the layout of the partition.
    edges : array of shape (n_blocks, n_states, n_states)
        P(z_b = t | z_parent = s).
    """

    partition: Partition
    parent: npt.NDArray[np.int32]
    log_q: FloatArray
    edges: FloatArray

    def log_evidence(self, symbols: Symbols) -> FloatArray:
        """Return log P(symbol | z), shape (n_symbols, n_states)."""
        out = np.empty((symbols.block.size, self.n_states))
        symbol_kernels.write_log_evidence(self.emissions(symbols), out)
        return out

    def counts(self, symbols: Symbols, log_evidence: FloatArray, mass: FloatArray) -> FloatArray:
        """Return the mass by count and state, given that by symbol and state.

        `log_evidence` is the result of the method of that name.
        """
        out = np.zeros(self.log_q.shape)
        symbol_kernels.spread(self.emissions(symbols), log_evidence, mass, out)
        return out

    def log_totals(self) -> FloatArray:
        """Return log Σ_x P(x | z_root) for every state of the root."""
        below = np.zeros((self.parent.size + 1, self.n_states))
        ends = self.partition.starts + self.partition.sizes + 1
        for b in self.order[::-1]:
            counts = self.log_q[self.partition.starts[b] : ends[b]]
            below[b] += np.log(np.exp(counts).sum(axis=0))
            if self.parent[b] < self.parent.size:
                below[self.parent[b]] += np.log(self.edges[b] @ np.exp(below[b]))
        return np.asarray(below[self.order[0]])

    def emissions(self, symbols: Symbols) -> Emissions:
        """Return symbols and parameters in the form of the kernels."""
        sizes, starts = self.partition.sizes, self.partition.starts
        log_factorial = log_factorials(self.partition.labels.size)
        return Emissions(
            symbols.block, symbols.ones, symbols.holes, sizes, starts, self.log_q, log_factorial
        )


def score_messages(messages: Messages, observed: Observed, n_jobs: int | None = None) -> FloatArray:
    """Return log P(e | z_root), shape (n_rows, n_states)."""
    out = np.empty((observed.n_rows, messages.n_states))

    def one(span: tuple[int, int]) -> None:
        begin, end = span
        symbols = Symbols.of(observed.take(np.arange(begin, end)), messages.partition)
        out[begin:end] = messages.scores(symbols.codes, messages.log_evidence(symbols))

    run(one, row_ranges(observed.n_rows, SCORE_CHUNK), n_jobs)
    return out


@dataclass(frozen=True)
class TreeSums:
    """Sums over the examples for the next parameters.

    Attributes
    ----------
    log_likelihood : float
        Weighted log-likelihood of all examples.
    totals : array of shape (n_states,)
        Posterior weight of each state of the root.
    counts : array of shape (table_size, n_states)
        The same for each count and state of each block.
    pairs : array of shape (n_blocks, n_states, n_states)
        The same for each state of a block's parent and of the block; zero at the root.
    """

    log_likelihood: float
    totals: FloatArray
    counts: FloatArray
    pairs: FloatArray

    def moved(self, to: "TreeSums", rate: float) -> "TreeSums":
        """Return sums on the way to others, which they reach at a rate of 1.

        The arrays of the others are written over.
        """
        for mine, other in (
            (self.totals, to.totals),
            (self.counts, to.counts),
            (self.pairs, to.pairs),
        ):
            other *= rate
            other += (1 - rate) * mine
        log_likelihood = (1 - rate) * self.log_likelihood + rate * to.log_likelihood
        return TreeSums(log_likelihood, to.totals, to.counts, to.pairs)


def expect_messages(
    messages: Messages,
    weights: FloatArray,
    symbols: Symbols,
    log_prior: FloatArray,
    n_jobs: int | None = None,
) -> TreeSums:
    """Compute the posteriors of all hidden states of weighted rows, and their sums."""
    h, n_blocks = messages.n_states, messages.parent.size
    log_evidence = messages.log_evidence(symbols)
    evidence, top = scaled(log_evidence)
    offsets = top[symbols.codes].sum(axis=1)

    def one(span: tuple[int, int]) -> tuple[float, PosteriorSums]:
        part = slice(*span)
        sums = PosteriorSums(np.zeros(log_evidence.shape), np.zeros((n_blocks, h, h)), np.zeros(h))
        log_likelihood = kernels.expect_tree(
            symbols.codes[part],
            weights[part],
            offsets[part],
            evidence,
            messages.tree,
            log_prior,
            messages.room(),
            sums,
        )
        return log_likelihood, sums

    sizes = ROW_STEPS * n_blocks * h * h, 8 * (n_blocks * h * h + log_evidence.size)
    parts = row_parts(weights.size, *sizes)
    (log_likelihood, sums), *others = run(one, parts, n_jobs)
    for more_likelihood, more in others:
        log_likelihood += more_likelihood
        for total, addend in zip(sums, more, strict=True):
            total += addend
    counts = messages.counts(symbols, log_evidence, sums.by_symbol)
    pairs = np.multiply(sums.pairs, messages.edges, out=sums.pairs)
    return TreeSums(log_likelihood, sums.totals, counts, pairs)
