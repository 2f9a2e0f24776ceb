"""Learning blocks of dependent columns: blocks are merged while the evidence increases.

The value of a block is the log-likelihood of its part, fitted to all classes, minus half the log of
the number of rows for each of its parameters (Schwarz's approximation of the evidence). Only
columns of one kind are merged, and only neighbours are tried: columns that are among the most
correlated with each other, given the class. Blocks of measurements have one factor here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.data.rows import ColumnType
from exchangeable.families.mixed.parts.base import Part, Prior
from exchangeable.families.mixed.parts.choice import INDEPENDENT, block_kind
from exchangeable.partitions import Partition

NEIGHBOURS = 3
"""Number of most correlated columns with which merging a column is tried."""
MOST_ROWS = 3000
"""Maximum number of rows for learning blocks; of more rows, a random sample is used."""
MOST_COLUMNS = 2000
"""Maximum number of columns for learning blocks."""
STEPS = 5
"""Steps for fitting a part whose initial parameters are not the best ones."""


@dataclass
class Merging:
    """Rows, and the values of blocks of their columns.

    Attributes
    ----------
    values : array of shape (n_rows, n_columns)
        The rows, NaN if missing.
    types : tuple of ColumnType
        What the columns are.
    mass : array of shape (n_rows, n_classes)
        Weight of each row in each class.
    together : mapping from kind to part
        The parts used for blocks of several columns.
    alpha : float
        Smoothing.
    """

    values: FloatArray
    types: tuple[ColumnType, ...]
    mass: FloatArray
    together: Mapping[str, type[Part]]
    alpha: float
    _worth: dict[tuple[int, ...], float] = field(default_factory=dict)

    def worth(self, block: tuple[int, ...]) -> float:
        """Return the approximate log-evidence of a block."""
        if block not in self._worth:
            columns = np.array(block, dtype=np.int64)
            types = tuple(self.types[j] for j in block)
            table = self.together if len(block) > 1 else INDEPENDENT
            kind, prior = table[types[0].kind], Prior(self.alpha, n_factors=1)
            own = np.ascontiguousarray(self.values[:, columns])
            part = kind.first(columns, types, own, self.mass, prior)
            for _ in range(STEPS if part.latent or np.isnan(own).any() else 0):
                part = part.following(part.sums(own, self.mass), prior, careful=True)
            scores = np.where(self.mass > 0, part.score(own), 0.0)
            fit = float((self.mass * scores).sum())
            self._worth[block] = fit - 0.5 * part.n_parameters * np.log(self.mass.sum() + 1)
        return self._worth[block]

    def gain(self, one: tuple[int, ...], other: tuple[int, ...]) -> float:
        """Return the gain in evidence from merging two blocks."""
        merged = tuple(sorted((*one, *other)))
        return self.worth(merged) - self.worth(one) - self.worth(other)

    def neighbours(self) -> set[tuple[int, int]]:
        """Return pairs of columns that are candidates for a block."""
        groups: dict[tuple[str, int], list[int]] = {}
        for j, kind in enumerate(self.types):
            key = block_kind(kind, self.together)
            if key is not None:
                groups.setdefault(key, []).append(j)
        pairs = set[tuple[int, int]]()
        for columns in groups.values():
            strength = self._correlations(np.array(columns))
            for i, line in enumerate(strength):
                for near in np.argsort(-line, kind="stable")[:NEIGHBOURS]:
                    if near != i:
                        first, second = sorted((columns[i], columns[int(near)]))
                        pairs.add((first, second))
        return pairs

    def _correlations(self, columns: IntArray) -> FloatArray:
        """Return the correlations of columns given the class, 0 with themselves."""
        own = self.values[:, columns]
        known = ~np.isnan(own)
        filled = np.where(known, own, 0.0)
        total = np.zeros((columns.size, columns.size))
        for weight in self.mass.T:
            seen = np.maximum(weight @ known, 1e-12)
            apart = np.where(known, filled - (weight @ filled) / seen, 0.0)
            total += (apart.T * weight) @ apart
        scale = np.sqrt(np.maximum(np.diag(total), 1e-12))
        strength = np.abs(total / np.outer(scale, scale))
        np.fill_diagonal(strength, 0.0)
        return np.asarray(strength)


def learn_blocks(merging: Merging) -> Partition:
    """Return the blocks, after merging one pair after another, best first."""
    n = len(merging.types)
    if n > MOST_COLUMNS:
        raise ValueError(
            f"blocks='evidence' compares columns; the limit is {MOST_COLUMNS:,}, X has {n:,}: give "
            "blocks as lists, or blocks='full'"
        )
    label = np.arange(n)
    blocks: dict[int, tuple[int, ...]] = {j: (j,) for j in range(n)}
    pairs = merging.neighbours()
    gains = {pair: merging.gain((pair[0],), (pair[1],)) for pair in sorted(pairs)}
    while gains:
        one, other = max(gains, key=lambda pair: (gains[pair], -pair[0], -pair[1]))
        if not gains[one, other] > 0:
            break
        blocks[one] = tuple(sorted((*blocks[one], *blocks.pop(other))))
        label[label == other] = one
        touched = {
            (min(a, b), max(a, b))
            for a, b in ((_renamed(a, one, other), _renamed(b, one, other)) for a, b in gains)
            if a != b and one in (a, b)
        }
        gains = {pair: worth for pair, worth in gains.items() if not {one, other} & {*pair}}
        gains |= {pair: merging.gain(blocks[pair[0]], blocks[pair[1]]) for pair in sorted(touched)}
    return Partition.from_labels(np.unique(label, return_inverse=True)[1])


def _renamed(block: int, one: int, other: int) -> int:
    return one if block == other else block


def some_rows(n_rows: int) -> IntArray:
    """Return the numbers of the rows for learning blocks: all, or a random sample."""
    if n_rows <= MOST_ROWS:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(0).choice(n_rows, MOST_ROWS, replace=False))
