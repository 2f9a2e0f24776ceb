"""Choosing the number of components."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from exchangeable.arrays import check_count
from exchangeable.runtime.interrupts import interrupts

CRITERIA = ("valid", "bic", "aic")


@dataclass(frozen=True)
class Tried:
    """One number of components that was tried; log-likelihoods are averages, NaN if not known."""

    n_components: int
    train: float
    valid: float
    bic: float
    aic: float


@dataclass(frozen=True)
class Selection:
    """What was tried and what was chosen.

    Attributes
    ----------
    best : estimator
        The chosen model, fitted.
    table : list of Tried
        One entry for each number of components.
    criterion : {"valid", "bic", "aic"}
        What decided.
    """

    best: Any
    table: list[Tried]
    criterion: str

    def __str__(self) -> str:
        lines = ["components      train      valid           bic           aic"]
        for row in self.table:
            valid = "" if np.isnan(row.valid) else f"{row.valid:.4f}"
            chosen = " <" if row.n_components == self.best.n_components else ""
            lines.append(
                f"{row.n_components:10d} {row.train:10.4f} {valid:>10} {row.bic:13.1f} "
                f"{row.aic:13.1f}{chosen}"
            )
        return "\n".join([*lines, f"chosen by {self.criterion}"])

    def plot(self, ax: Any = None) -> Any:
        """Draw the criterion against the number of components; needs matplotlib."""
        import matplotlib.pyplot as plt

        axes = ax if ax is not None else plt.subplots(layout="constrained")[1]
        tried = [row.n_components for row in self.table]
        if self.criterion == "valid":
            axes.plot(tried, [row.train for row in self.table], "o--", label="training rows")
            axes.plot(tried, [row.valid for row in self.table], "o-", label="validation rows")
            axes.set_ylabel("average log-likelihood")
            axes.legend(frameon=False)
        else:
            axes.plot(tried, [getattr(row, self.criterion) for row in self.table], "o-")
            axes.set_ylabel(self.criterion.upper())
        axes.axvline(self.best.n_components, color="grey", lw=0.8, ls=":")
        axes.set_xlabel("number of components")
        return axes


def select_components(
    kind: type[Any],
    X: Any,
    X_valid: Any,
    n_components: Sequence[int],
    criterion: str | None,
    parameters: dict[str, Any],
) -> Selection:
    """Fit a model for each number of components and keep the best by the criterion.

    An interrupt from the keyboard ends the fit that goes on and leaves out the rest, with a
    warning, unless nothing was fitted yet.
    """
    decided_by = criterion or ("bic" if X_valid is None else "valid")
    if decided_by not in CRITERIA:
        raise ValueError(
            f"criterion={criterion!r} is unknown; expected one of {', '.join(CRITERIA)}"
        )
    if decided_by == "valid" and X_valid is None:
        raise ValueError("criterion='valid' needs X_valid, rows to choose by")
    tried = [check_count(k, "n_components") for k in n_components]
    if not tried:
        raise ValueError("n_components is empty; give at least one number to try")
    table, best, best_worth = list[Tried](), None, float("-inf")
    with interrupts() as interrupt:
        for k in tried:
            try:
                model = kind(n_components=k, **parameters).fit(X)
            except KeyboardInterrupt:
                if best is None:
                    raise
                interrupt.stop.set()
                break
            valid = float("nan") if X_valid is None else model.score(X_valid)
            row = Tried(k, model.score(X), valid, model.bic(X), model.aic(X))
            table.append(row)
            value = getattr(row, decided_by)
            worth = value if decided_by == "valid" else -value
            if best is None or worth > best_worth:
                best, best_worth = model, worth
            if interrupt.stop.is_set():
                break
        if interrupt.stop.is_set():
            interrupt.warn("the selection", stacklevel=3)
    return Selection(best, table, decided_by)
