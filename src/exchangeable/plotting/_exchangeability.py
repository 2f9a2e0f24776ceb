"""The exchangeability report as a picture."""

from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np

from exchangeable.plotting._axes import MODEL, OTHER, QUIET, new_axes, tidy
from exchangeable.structure.exchangeability import ExchangeabilityReport, exchangeability_report

LEAST = 1e-12
TESTS = (("means", MODEL, "o"), ("variances", "#0f7b6c", "s"), ("covariances", OTHER, "^"))


class ExchangeabilityDisplay:
    """The p-values of the three conditions of Proposition 3.3, block by block.

    Parameters
    ----------
    report : ExchangeabilityReport
        What `exchangeability_report` found.

    Attributes
    ----------
    ax_, figure_
        What was drawn on.

    Examples
    --------
    >>> import numpy as np
    >>> from exchangeable.plotting import ExchangeabilityDisplay
    >>> X = np.random.default_rng(0).integers(0, 2, size=(300, 6))
    >>> display = ExchangeabilityDisplay.from_data(X, blocks=[[0, 1, 2], [3, 4, 5]])
    >>> len(display.report.tests)
    2
    """

    def __init__(self, report: ExchangeabilityReport) -> None:
        self.report = report

    @classmethod
    def from_data(
        cls, X: Any, blocks: Iterable[Sequence[int]] | None = None, *, ax: Any = None
    ) -> Self:
        """Test rows and draw what was found.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_variables)
            Entries 0 and 1.
        blocks : sequence of sequences of int, optional
            A partition of the variables; by default all are one block.
        ax : Axes, optional
            Where to draw.
        """
        return cls(exchangeability_report(X, blocks)).plot(ax)

    def plot(self, ax: Any = None, *, significance: float = 0.05) -> Self:
        """Draw, on given axes or on a new figure.

        Parameters
        ----------
        ax : Axes, optional
            Where to draw.
        significance : float, default=0.05
            The level of the line; divided by the number of tests, since there are many.
        """
        tests = self.report.tests
        ax = new_axes(ax, figsize=(6.4, 3.6))
        at = np.arange(len(tests))
        for number, (name, colour, marker) in enumerate(TESTS):
            found = [max(getattr(test, f"p_{name}"), LEAST) for test in tests]
            ax.plot(at + 0.12 * (number - 1), found, marker, color=colour, label=f"equal {name}")
        level = significance / (3 * len(tests))
        ax.axhline(level, color=QUIET, lw=1, ls="--")
        ax.text(0, level, f" {significance:g}, corrected", va="bottom", color=QUIET, fontsize=8)
        ax.set_yscale("log")
        ax.set_ylim(LEAST / 2, 3)
        ax.set_xlim(-0.5, len(tests) - 0.5)
        if len(tests) <= 20:
            ax.set_xticks(at, [f"{number}\n({t.variables.size})" for number, t in enumerate(tests)])
        ax.set(xlabel="block (number of variables)", ylabel="p-value")
        ax.legend(frameon=False, fontsize=8)
        tidy(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self
