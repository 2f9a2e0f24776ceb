"""A block's distribution of counts compared with the binomial, which shows correlation."""

from typing import Any, Self

import numpy as np
from scipy.stats import binom

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.plotting._axes import (
    DATA,
    MODEL,
    OTHER,
    check_model,
    drawn,
    new_axes,
    number_of,
    tidy,
    title_of,
)


class CountDistributionDisplay:
    """The number of variables of a block that are on: in the model, the binomial, and given rows.

    The number of ones of independent variables with equal means is binomial. A wider distribution
    means that the variables are positively correlated, a narrower one that they are negatively
    correlated.

    Parameters
    ----------
    probabilities : ndarray of shape (m + 1,)
        The model's probability of each count.
    variables : ndarray of shape (m,)
        The variables of the block.
    title : str
        Title of the block.
    seen : ndarray of shape (m + 1,), optional
        Share of the given rows with each count.

    Attributes
    ----------
    binomial : ndarray of shape (m + 1,)
        Binomial probabilities with the same mean.
    ax_, figure_
        Axes and figure.

    Examples
    --------
    >>> import numpy as np
    >>> from exchangeable import ExchangeableMixture
    >>> from exchangeable.plotting import CountDistributionDisplay
    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((300, 10)) < rng.choice([0.1, 0.9], size=(300, 1))
    >>> model = ExchangeableMixture(1, blocks="full", random_state=0).fit(X)
    >>> display = CountDistributionDisplay.from_estimator(model, X=X)
    >>> bool(display.probabilities[5] < display.binomial[5])
    True
    """

    def __init__(
        self,
        probabilities: FloatArray,
        variables: IntArray,
        title: str,
        seen: FloatArray | None = None,
    ) -> None:
        self.probabilities, self.variables = probabilities, variables
        self.title, self.seen = title, seen
        m = probabilities.size - 1
        mean = float(probabilities @ np.arange(m + 1)) / m
        self.binomial: FloatArray = binom.pmf(np.arange(m + 1), m, min(mean, 1.0))

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        target: Any = None,
        block: int | None = None,
        X: Any = None,
        ax: Any = None,
    ) -> Self:
        """Draw a block of a fitted model.

        Parameters
        ----------
        estimator : ExchangeableClassifier, ExchangeableMixture or ExchangeableDensity
            A fitted model.
        target : label, optional
            The class or component; the first by default.
        block : int, optional
            The number of its block; the largest by default.
        X : {array-like, sparse matrix}, optional
            Rows whose counts are drawn as well, such as those of the class.
        ax : Axes, optional
            Axes to draw on.
        """
        check_model(estimator)
        y = number_of(estimator, target)
        blocks = estimator.partitions_[y]
        number = int(np.argmax([b.size for b in blocks])) if block is None else block
        if not 0 <= number < len(blocks):
            raise ValueError(
                f"block={block!r} does not exist: {title_of(estimator, y)} has blocks 0 to "
                f"{len(blocks) - 1}"
            )
        seen = None
        if X is not None:
            on = estimator._observed(X).symbols()[:, blocks[number]]
            counts = (on == 1).sum(axis=1)[(on >= 0).all(axis=1)]
            seen = np.bincount(counts, minlength=on.shape[1] + 1) / max(counts.size, 1)
        title = f"block {number} of {title_of(estimator, y)}: {blocks[number].size} variables"
        probabilities = estimator.count_probabilities_[y][number]
        return cls(probabilities, blocks[number], title, seen).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw, on given axes or on a new figure."""
        ax = new_axes(ax, figsize=(6.4, 3.6))
        shown = np.stack([self.probabilities, self.binomial])
        if self.seen is not None:
            shown = np.vstack([shown, self.seen])
        last = int(np.flatnonzero((shown > 1e-4).any(axis=0))[-1])
        counts = np.arange(last + 1)
        if self.seen is not None:
            ax.bar(counts, self.seen[: last + 1], color=DATA, width=0.9, label="rows")
        marks = {"ms": 4 if last < 60 else 0}
        ax.plot(counts, self.probabilities[: last + 1], "o-", color=MODEL, label="model", **marks)
        ax.plot(counts, self.binomial[: last + 1], "s--", color=OTHER, label="independent", **marks)
        ax.set(xlabel="number of variables on", ylabel="probability", title=drawn(self.title))
        ax.set_ylim(0)
        ax.legend(frameon=False)
        tidy(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self
