"""Items of a Rasch model: their characteristic curves and information."""

from typing import Any, Self

import numpy as np

from exchangeable.arrays import FloatArray
from exchangeable.estimators.rasch import RaschModel
from exchangeable.plotting._axes import MODEL, OTHER, QUIET, drawn, pyplot, tidy

MOST_NAMES = 12
"""With more items than this, lines are not labelled."""


class ItemCurvesDisplay:
    """Characteristic curves of the items, and information of items and test, over ability.

    Parameters
    ----------
    abilities : ndarray of shape (n_abilities,)
        The abilities at which the curves are drawn.
    answers : ndarray of shape (n_abilities, n_items)
        Mean answers; for binary items the probability of solving them.
    information : ndarray of shape (n_abilities, n_items)
        Information of each item.
    names : tuple of str
        Names of the items.
    title : str
        Title of the figure.

    Attributes
    ----------
    ax_, figure_
        Both axes, and their figure.

    Examples
    --------
    >>> import numpy as np
    >>> from exchangeable import RaschModel
    >>> from exchangeable.plotting import ItemCurvesDisplay
    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((200, 4)) < 1 / (1 + np.exp(np.arange(4) - rng.normal(size=(200, 1))))
    >>> ItemCurvesDisplay.from_estimator(RaschModel().fit(X)).information.shape
    (161, 4)
    """

    def __init__(
        self,
        abilities: FloatArray,
        answers: FloatArray,
        information: FloatArray,
        names: tuple[str, ...],
        title: str = "",
    ) -> None:
        self.abilities, self.answers, self.information = abilities, answers, information
        self.names, self.title = names, title

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, component: int = 0, abilities: Any = None, ax: Any = None
    ) -> Self:
        """Draw the items of a fitted Rasch model.

        Parameters
        ----------
        estimator : RaschModel
            A fitted model.
        component : int
            The class, if there are several.
        abilities : array-like, optional
            Abilities at which to draw the curves, by default from −4 to 4.
        ax : array of two Axes, optional
            Axes to draw on.
        """
        if not isinstance(estimator, RaschModel):
            raise TypeError(f"expected a fitted RaschModel, got {type(estimator).__name__}")
        grid = np.linspace(-4, 4, 161) if abilities is None else np.asarray(abilities, dtype=float)
        answers = estimator.characteristic_curves(grid, component)
        information = estimator.information(grid, component)
        several = estimator.weights_.size > 1
        title = f"class {component} ({estimator.weights_[component]:.0%})" if several else ""
        names = estimator.item_parameters_.names
        return cls(grid, answers, information, names, title).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw, on two given axes or on a new figure."""
        if ax is None:
            ax = pyplot().subplots(1, 2, figsize=(9.6, 3.8), layout="constrained")[1]
        left, right = ax
        known = np.flatnonzero(~np.isnan(self.answers).all(axis=0))
        order = known[np.argsort(-self.answers[len(self.answers) // 2, known], kind="stable")]
        colours = pyplot().get_cmap("viridis")(np.linspace(0.0, 0.85, max(order.size, 2)))
        for j, colour in zip(order, colours, strict=False):
            label = drawn(self.names[j]) if order.size <= MOST_NAMES else None
            left.plot(self.abilities, self.answers[:, j], color=colour, lw=1.6, label=label)
            right.plot(self.abilities, self.information[:, j], color=colour, lw=1.2)
        test = np.nansum(self.information, axis=1)
        right.plot(self.abilities, test, color=MODEL, lw=2.4, label="test")
        error = right.twinx()
        error.plot(self.abilities, test**-0.5, color=OTHER, lw=1.6, ls="--", label="standard error")
        binary = np.nanmax(self.answers) <= 1
        left.set(xlabel="ability", ylabel="probability of solving" if binary else "mean answer")
        right.set(xlabel="ability", ylabel="information", ylim=(0, None))
        error.set(ylim=(0, min(3.0, float((test**-0.5).max()) * 1.05)))
        error.set_ylabel("standard error of ability", color=OTHER)
        error.spines["top"].set_visible(False)
        if order.size <= MOST_NAMES:
            left.legend(frameon=False, fontsize="small", title="easiest first")
        lines = [*right.get_legend_handles_labels()[0], *error.get_legend_handles_labels()[0]]
        texts = [line.get_label() for line in lines]
        above = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "ncol": 2}
        right.legend(lines, texts, frameon=False, fontsize="small", **above)
        for axes in (left, right):
            axes.axvline(0, color=QUIET, lw=0.6, zorder=0)
        tidy(left)
        right.spines["top"].set_visible(False)
        if self.title:
            left.set_title(self.title)
        self.ax_, self.figure_ = ax, left.figure
        return self
