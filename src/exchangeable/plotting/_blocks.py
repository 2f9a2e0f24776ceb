"""The block map: which variables form a block, class by class."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from exchangeable.arrays import UNASSIGNED, FloatArray, IntArray
from exchangeable.data.observed import Observed
from exchangeable.plotting._axes import check_model, drawn, number_of, pyplot, tidy, title_of

MOST_CLASSES = 8


class BlockMapDisplay:
    """Variables ordered by how often they are on and coloured by block, one strip per class.

    Parameters
    ----------
    means : list of ndarray of shape (n_variables,)
        For each class shown, the probability that each variable is on.
    labels : list of ndarray of shape (n_variables,)
        For each class shown, the block of each variable.
    titles : list of str
        Title of each class.

    Attributes
    ----------
    ax_ : ndarray of Axes
        One per class.
    figure_ : Figure
        The figure.

    Examples
    --------
    >>> import numpy as np
    >>> from exchangeable import ExchangeableClassifier
    >>> from exchangeable.plotting import BlockMapDisplay
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.integers(0, 2, size=(200, 12)), rng.integers(0, 2, size=200)
    >>> display = BlockMapDisplay.from_estimator(ExchangeableClassifier().fit(X, y))
    >>> [ax.get_title(loc="left") for ax in display.ax_]
    ['class 0: 1 block', 'class 1: 1 block']
    """

    def __init__(self, means: list[FloatArray], labels: list[IntArray], titles: list[str]) -> None:
        self.means, self.labels, self.titles = means, labels, titles

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, targets: Sequence[Any] | None = None, ax: Any = None
    ) -> Self:
        """Draw the blocks of a fitted model.

        Parameters
        ----------
        estimator : ExchangeableClassifier, ExchangeableMixture or ExchangeableDensity
            A fitted model.
        targets : sequence of labels, optional
            Classes or components to show; the first eight by default.
        ax : array of Axes, optional
            Axes to draw on, one per class.
        """
        check_model(estimator)
        inner = estimator._fitted()
        chosen = list(range(min(inner.n_classes, MOST_CLASSES)))
        if targets is not None:
            chosen = [number_of(estimator, target) for target in targets]
        nothing = Observed.from_symbols(np.full((1, inner.n_variables), UNASSIGNED, dtype=np.int8))
        means = [inner.marginals(nothing, y)[0] for y in chosen]
        labels = [inner.partitions[y].labels.astype(np.int64) for y in chosen]
        return cls(means, labels, [title_of(estimator, y) for y in chosen]).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw, on given axes or on a new figure."""
        k = len(self.means)
        axes = np.atleast_1d(ax) if ax is not None else self._figure(k)
        if axes.size != k:
            raise ValueError(f"ax has {axes.size} axes for {k} classes; give one for each")
        for strip, means, labels, title in zip(
            axes, self.means, self.labels, self.titles, strict=True
        ):
            self._strip(strip, means, labels, title)
        axes[-1].set_xlabel("variables, ordered by how often they are on")
        self.ax_, self.figure_ = axes, axes[0].figure
        return self

    @staticmethod
    def _figure(k: int) -> Any:
        size = (7.2, 1.0 + 1.15 * k)
        options: dict[str, Any] = {"sharex": True, "sharey": True, "squeeze": False}
        return pyplot().subplots(k, figsize=size, layout="constrained", **options)[1][:, 0]

    @staticmethod
    def _strip(ax: Any, means: FloatArray, labels: IntArray, title: str) -> None:
        order = np.lexsort((labels, means))
        block, height = labels[order], means[order]
        cuts = np.flatnonzero(np.diff(block)) + 1
        colours = pyplot().get_cmap("tab20").colors
        rank = {b: i for i, b in enumerate(dict.fromkeys(block.tolist()))}
        for part in np.split(np.arange(block.size), cuts):
            edges = np.append(part, part[-1] + 1)
            steps = np.append(height[part], height[part[-1]])
            colour = colours[rank[int(block[part[0]])] % len(colours)]
            ax.fill_between(edges, 0, steps, step="post", color=colour, lw=0)
        n_blocks = len(rank)
        heading = f"{drawn(title)}: {n_blocks} block{'s' * (n_blocks > 1)}"
        ax.set_title(heading, loc="left", fontsize=10)
        ax.set_ylabel("P(on)")
        ax.set_xlim(0, block.size)
        ax.set_ylim(0, 1)
        tidy(ax)
