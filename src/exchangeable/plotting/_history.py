"""The progress of EM."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from exchangeable.plotting._axes import MODEL, QUIET, check_model, new_axes, tidy


class EMHistoryDisplay:
    """Average log-likelihood after every iteration of every run of EM.

    Parameters
    ----------
    histories : list of lists of float
        One list per run.
    best : int, default=0
        Number of the run that was kept.

    Attributes
    ----------
    ax_, figure_
        Axes and figure.

    Examples
    --------
    >>> import numpy as np
    >>> from exchangeable import ExchangeableMixture
    >>> from exchangeable.plotting import EMHistoryDisplay
    >>> X = np.random.default_rng(0).integers(0, 2, size=(100, 6))
    >>> model = ExchangeableMixture(2, n_init=3, random_state=0, tol=1e-2).fit(X)
    >>> len(EMHistoryDisplay.from_estimator(model).histories)
    3
    """

    def __init__(self, histories: Sequence[Sequence[float]], best: int = 0) -> None:
        self.histories, self.best = [list(history) for history in histories], best

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> Self:
        """Draw the runs of a model that was fitted by EM.

        Parameters
        ----------
        estimator : ExchangeableMixture, or ExchangeableClassifier fitted by EM
            A fitted model.
        ax : Axes, optional
            Axes to draw on.
        """
        check_model(estimator)
        histories = getattr(estimator, "history_", None)
        if not histories:
            raise ValueError(
                f"this {type(estimator).__name__} was not fitted by EM, so there is no history to "
                "draw; expected a mixture, or a classifier fitted to rows with holes or without "
                "labels"
            )
        if not isinstance(histories[0], list):
            histories = [histories]
        return cls(histories, getattr(estimator, "best_init_", 0)).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw, on given axes or on a new figure."""
        ax = new_axes(ax, figsize=(6.4, 3.6))
        for number, history in enumerate(self.histories):
            kept = number == self.best
            label = "kept" if kept else "other runs" if number == (self.best == 0) else None
            ax.plot(
                np.arange(1, len(history) + 1),
                history,
                color=MODEL if kept else QUIET,
                lw=2.2 if kept else 1,
                alpha=1 if kept else 0.6,
                zorder=3 if kept else 2,
                label=label,
            )
        ax.set(xlabel="iteration of EM", ylabel="average log-likelihood")
        if len(self.histories) > 1:
            ax.legend(frameon=False, loc="lower right")
        tidy(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self
