"""The exchangeability report as a plot."""

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
        The result of `exchangeability_report`.

    Attributes
    ----------
    ax_, figure_
        Axes and figure.

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
        """Test rows and draw the p-values.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_variables)
            Entries 0 and 1.
        blocks : sequence of sequences of int, optional
            A partition of the variables; by default one block of all.
        ax : Axes, optional
            Axes to draw on.
        """
        return cls(exchangeability_report(X, blocks)).plot(ax)

    def plot(self, ax: Any = None, *, significance: float = 0.05) -> Self:
        """Draw, on given axes or on a new figure.

        Parameters
        ----------
        ax : Axes, optional
            Axes to draw on.
        significance : float, default=0.05
            Significance level of the line, which is drawn at this divided by the number of tests
            (Bonferroni).
        """
        tests = self.report.tests
        ax = new_axes(ax, figsize=(6.4, 3.6))
        blocks = np.arange(len(tests))
        for number, (name, colour, marker) in enumerate(TESTS):
            p_values = [max(getattr(test, f"p_{name}"), LEAST) for test in tests]
            shifted = blocks + 0.12 * (number - 1)
            ax.plot(shifted, p_values, marker, color=colour, label=f"equal {name}")
        level = significance / (3 * len(tests))
        ax.axhline(level, color=QUIET, lw=1, ls="--")
        ax.text(0, level, f" {significance:g}, corrected", va="bottom", color=QUIET, fontsize=8)
        ax.set_yscale("log")
        ax.set_ylim(LEAST / 2, 3)
        ax.set_xlim(-0.5, len(tests) - 0.5)
        if len(tests) <= 20:
            ax.set_xticks(blocks, [f"{b}\n({t.variables.size})" for b, t in enumerate(tests)])
        ax.set(xlabel="block (number of variables)", ylabel="p-value")
        ax.legend(frameon=False, fontsize=8)
        tidy(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self
