"""Models compared for a selection, and the chosen one."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from exchangeable.classes.tables import Table, Tabular, p_text
from exchangeable.classes.uncertainty.likelihood_ratio import LikelihoodRatioTest

NAMES = {
    "valid": "the log-likelihood of validation rows",
    "bic": "BIC",
    "aic": "AIC",
    "abic": "the sample-size adjusted BIC",
    "icl": "ICL",
    "blrt": "the bootstrap likelihood-ratio test",
}
CRITERIA = tuple(NAMES)


@dataclass(frozen=True)
class Tried:
    """One model that was tried; unknown values are NaN.

    Attributes
    ----------
    n_components : int
        Number of components.
    train, valid : float
        Average log-likelihood of the training rows, and of validation rows.
    bic, aic, abic, icl, entropy_r2, smallest, log_likelihood, n_parameters
        As in `exchangeable.classes.criteria.Criteria`.
    lr, p_value : float
        Statistic and p-value of the bootstrap likelihood-ratio test against the model of the same
        setting with the next smaller number of components.
    trouble : {"", "not identified", "too small a sample"}
        Whether the model has more parameters than the table of all answers can identify, or than
        rows.
    setting : dict
        The parameters of ``param_grid``.
    """

    n_components: int
    train: float
    valid: float
    bic: float
    aic: float
    abic: float
    icl: float
    entropy_r2: float
    smallest: float
    log_likelihood: float
    n_parameters: int
    lr: float = float("nan")
    p_value: float = float("nan")
    trouble: str = ""
    setting: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Selection(Tabular):
    """The models tried and the chosen one.

    Attributes
    ----------
    best : estimator
        The chosen model, fitted.
    table : list of Tried
        One entry for each model that was tried.
    criterion : {"valid", "bic", "aic", "abic", "icl", "blrt"}
        The criterion.
    models : list of estimators
        All models, fitted, in the order of the table.
    tests : dict from int to LikelihoodRatioTest
        The bootstrap tests, by the number of the larger model in the table.
    """

    best: Any
    table: list[Tried]
    criterion: str
    models: list[Any] = field(default_factory=list)
    tests: dict[int, LikelihoodRatioTest] = field(default_factory=dict)

    def as_table(self) -> Table:
        """Return one row for each model; columns that were not requested are left out."""
        named = dict.fromkeys(name for row in self.table for name in row.setting)
        settings = {name: [str(row.setting.get(name, "")) for row in self.table] for name in named}
        columns: dict[str, Sequence[Any]] = {
            **settings,
            "classes": [row.n_components for row in self.table],
            "log-likelihood": [row.log_likelihood for row in self.table],
            "parameters": [row.n_parameters for row in self.table],
            "AIC": [row.aic for row in self.table],
            "BIC": [row.bic for row in self.table],
            "aBIC": [row.abic for row in self.table],
            "ICL": [row.icl for row in self.table],
            "entropy R²": [row.entropy_r2 for row in self.table],
            "smallest class": [row.smallest for row in self.table],
        }
        if not all(np.isnan(row.valid) for row in self.table):
            columns["validation"] = [row.valid for row in self.table]
        if self.tests:
            columns["2ΔLL"] = [row.lr for row in self.table]
            columns["bootstrap p"] = [p_text(row.p_value) for row in self.table]
        columns["chosen"] = ["<" if model is self.best else "" for model in self.models]
        digits = dict.fromkeys(("log-likelihood", "AIC", "BIC", "aBIC", "ICL", "2ΔLL"), 1)
        note = f"chosen by {NAMES[self.criterion]}"
        if self.tests:
            note += f"; bootstrap with {max(t.draws.size for t in self.tests.values())} draws"
        for trouble in dict.fromkeys(row.trouble for row in self.table if row.trouble):
            numbers = dict.fromkeys(r.n_components for r in self.table if r.trouble == trouble)
            note += f"; {trouble} for {', '.join(map(str, numbers))} classes"
        return Table(columns, "Models compared", digits, note)

    def plot(self, ax: Any = None) -> Any:
        """Draw the criteria against the number of components (needs matplotlib)."""
        import matplotlib.pyplot as plt
        from matplotlib.ticker import MaxNLocator

        axes = ax if ax is not None else plt.subplots(layout="constrained")[1]
        settings: dict[str, list[Tried]] = {}
        for row in self.table:
            label = ", ".join(f"{name}={value}" for name, value in row.setting.items())
            settings.setdefault(label, []).append(row)
        styles = ("-", "--", ":", "-.")
        for number, (label, rows) in enumerate(settings.items()):
            _plot_setting(axes, self.criterion, rows, label, styles[number % len(styles)])
        axes.axvline(self.best.n_components, color="grey", lw=0.8, ls=":")
        axes.set_xlabel("number of components")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False)
        return axes


def _plot_setting(axes: Any, criterion: str, rows: list[Tried], label: str, style: str) -> None:
    """Draw the curves of one setting."""
    tried = [row.n_components for row in rows]
    more = f" ({label})" if label else ""
    if criterion == "valid":
        axes.plot(tried, [r.train for r in rows], "o", ls=style, label=f"training rows{more}")
        axes.plot(tried, [r.valid for r in rows], "o", ls=style, label=f"validation rows{more}")
        axes.set_ylabel("average log-likelihood")
        return
    for name, text in (("aic", "AIC"), ("bic", "BIC"), ("abic", "aBIC"), ("icl", "ICL")):
        values = [getattr(row, name) for row in rows]
        axes.plot(tried, values, "o", ls=style, ms=4, label=text + more)
    for row in rows:
        if np.isfinite(row.p_value):
            text = f"p {p_text(row.p_value)}" if row.p_value < 0.001 else f"p={row.p_value:.3f}"
            at = (row.n_components, row.bic)
            axes.annotate(text, at, xytext=(0, 8), textcoords="offset points", fontsize=7)
    axes.set_ylabel("information criterion (the lower the better)")
