"""Classes or components whose blocks' counts depend on each other along a tree.

P(x) = T(c_1, …, c_B) · Π_b 1 / C(m_b, c_b), where c_b is the number of ones in block b. The counts
of a block fall into bins, and along the tree bins depend on bins:

    T(c) = Π_b q_b(c_b) · Π_edges ratio[bin of the parent's count, bin of the child's count]

Each edge's ratio is that of a joint distribution of bins to the product of its margins, which are
those of the q_b. So every block's count is distributed as its q_b, and a forest without edges is
the paper's block model. In small blocks every count has its own bin.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray, IntArray, SymbolArray
from exchangeable.data.examples import Examples
from exchangeable.data.observed import Observed
from exchangeable.families.common.log_linear.model import posteriors_with_holes
from exchangeable.families.contract import Arrays, Model
from exchangeable.families.count_trees import saved
from exchangeable.families.count_trees.forest import CHUNK, CountForest, CountTree
from exchangeable.families.page import OnPage
from exchangeable.families.sums import RowsInMemory, Sums
from exchangeable.partitions import Partition, log_factorials
from exchangeable.runtime.threads import row_ranges, run


@dataclass(frozen=True)
class CountTreeSums(Sums):
    """The sums of a pass over the examples.

    Attributes
    ----------
    blocks : list of arrays
        The posterior weight of the rows with each count in each block, for each class.
    edges : list of arrays
        That of each pair of bins along the forest, for each class.
    """

    blocks: list[FloatArray]
    edges: list[FloatArray]


@dataclass(frozen=True)
class CountTreeModel(Model):
    """A forest over blocks for each class, q of each block, and the ratios of the edges.

    Attributes
    ----------
    forests : list of CountForest
        Blocks, bins and edges of each class.
    log_q : list of arrays
        log q(l) of each block and count for each class, in the layout of its partition.
    log_ratio : list of arrays
        The logs of the edges' ratios for each class, in the layout of its forest.
    """

    kind: ClassVar[str] = "count trees"
    forests: list[CountForest]
    log_q: list[FloatArray]
    log_ratio: list[FloatArray]

    @cached_property
    def trees(self) -> list[CountTree]:
        """The data for passes over rows, computed on first use."""
        log_factorial = log_factorials(self.n_variables)
        made = []
        for forest, log_q, log_ratio in zip(self.forests, self.log_q, self.log_ratio, strict=True):
            sizes = np.repeat(forest.partition.sizes, forest.partition.sizes + 1)
            ones = np.concatenate([np.arange(m + 1) for m in forest.partition.sizes])
            ways = log_factorial[sizes] - log_factorial[ones] - log_factorial[sizes - ones]
            made.append(CountTree(forest, log_q - ways, log_ratio))
        return made

    @property
    def partitions(self) -> list[Partition]:
        """The blocks of each class."""
        return [forest.partition for forest in self.forests]

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.forests)

    @property
    def n_variables(self) -> int:
        """Number of variables."""
        return int(self.forests[0].partition.labels.size)

    @property
    def n_parameters(self) -> int:
        """Number of free parameters: q of every block, and those of the edges."""
        free = 0
        for forest, log_q in zip(self.forests, self.log_q, strict=True):
            free += int(np.isfinite(log_q).sum()) - forest.partition.n_blocks
            n_bins = forest.n_bins[forest.edges()]
            free += int(((n_bins[:, 0] - 1) * (n_bins[:, 1] - 1)).sum())
        return free

    @classmethod
    def stack(cls, models: Sequence["CountTreeModel"]) -> Self:
        """Return the model of all classes of several models."""
        return cls(
            [forest for model in models for forest in model.forests],
            [log_q for model in models for log_q in model.log_q],
            [log_ratio for model in models for log_ratio in model.log_ratio],
        )

    def only(self, classes: IntArray) -> Self:
        """Return the model of some of the classes."""
        parts = (self.forests, self.log_q, self.log_ratio)
        return type(self)(*([part[y] for y in classes] for part in parts))

    def count_probabilities(self) -> list[list[FloatArray]]:
        """Return q(l | y) for every class, block and count l."""
        return [
            [np.exp(part) for part in np.split(log_q, forest.partition.starts[1:])]
            for forest, log_q in zip(self.forests, self.log_q, strict=True)
        ]

    def edges(self) -> list[IntArray]:
        """Return, for each class, the (block, parent) of each edge of its forest."""
        return [forest.edges() for forest in self.forests]

    def on_page(self) -> OnPage:
        """Return, for each class, blocks, bins, parents, look-ups by count and ratios of bins."""
        classes = [
            {
                "labels": tree.forest.partition.labels,
                "bins": tree.forest.bins,
                "parent": tree.forest.parent,
                "table": tree.table,
                "ratio": tree.log_ratio,
            }
            for tree in self.trees
        ]
        steps = 4.0 * sum(tree.table.size + tree.log_ratio.size for tree in self.trees)
        return OnPage(
            "count trees", "exchangeable.families.count_trees", {"classes": classes}, steps
        )

    def score(self, observed: Observed, n_jobs: int | None = None) -> FloatArray:
        """Return log P(e | y), shape (n_rows, n_classes): e are a row's known entries."""
        out = np.empty((self.n_classes, observed.n_rows))
        spans = row_ranges(observed.n_rows, CHUNK)
        tasks = [(y, span) for y in range(self.n_classes) for span in spans]
        run(lambda task: self.trees[task[0]].score(observed, task[1], out[task[0]]), tasks, n_jobs)
        return np.ascontiguousarray(out.T)

    def marginals(self, observed: Observed, y: int) -> FloatArray:
        """Return P(x_j = 1 | e, y), shape (n_rows, n_variables); known entries stay 0 or 1."""
        return self.trees[y].marginals(observed)

    def complete(self, observed: Observed, y: int) -> tuple[SymbolArray, FloatArray]:
        """Return the most probable completion x of each row, and log P(x | y)."""
        return self.trees[y].complete(observed)

    def draw(self, observed: Observed, y: int, rng: np.random.Generator) -> SymbolArray:
        """Return a completion of each row, drawn from P(x | e, y)."""
        return self.trees[y].draw(observed, rng)

    def numbers_drawn(self, observed: Observed, y: int) -> tuple[int, ...]:
        """Return how many random numbers `draw` takes: two per block, then one per variable."""
        return 2 * self.forests[y].partition.n_blocks, self.n_variables

    def expect(
        self, data: RowsInMemory, log_prior: FloatArray, moments: bool = False
    ) -> CountTreeSums:
        """Compute the posteriors of all rows, and sum counts and pairs of bins along the trees."""
        return expect_rows(self, data.examples, log_prior, data.n_jobs)

    def encode(self) -> Arrays:
        """Return the parameters as arrays for a file."""
        return saved.encode(self.forests, self.log_q, self.log_ratio)

    @classmethod
    def decode(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Self:
        """Return the model from arrays of a file, after checking everything."""
        return cls(*saved.decode(arrays))


def expect_rows(
    model: CountTreeModel,
    examples: Examples,
    log_prior: FloatArray,
    n_jobs: int | None = None,
    given: FloatArray | None = None,
) -> CountTreeSums:
    """Compute posteriors and sums; if posteriors are `given`, the log-likelihood is 0."""
    log_likelihood, posterior = posteriors_with_holes(model, examples, log_prior, n_jobs, given)
    mass = examples.weights[:, None] * posterior

    def one(y: int) -> tuple[FloatArray, FloatArray]:
        return model.trees[y].sums(examples.observed, np.ascontiguousarray(mass[:, y]))

    blocks, edges = zip(*run(one, range(model.n_classes), n_jobs), strict=True)
    return CountTreeSums(log_likelihood, posterior, mass.sum(axis=0), list(blocks), list(edges))
