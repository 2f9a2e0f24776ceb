"""Choosing the number of components, the family and the blocks."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import as_generator, check_count
from exchangeable.classes.criteria import criteria_of, degrees_of_freedom
from exchangeable.classes.likelihood_ratio import (
    RESTARTS,
    LikelihoodRatioTest,
    likelihood_ratio_test,
)
from exchangeable.classes.tables import Table, Tabular, p_text
from exchangeable.runtime.interrupts import interrupts

CRITERIA = ("valid", "bic", "aic", "abic", "icl", "blrt")
Grid = Mapping[str, Sequence[Any]]
LEVEL = 0.05
"""p-values up to this say that the larger of two models is needed."""


@dataclass(frozen=True)
class Tried:
    """One model that was tried; what is not known is NaN.

    Attributes
    ----------
    n_components : int
        Number of components.
    train, valid : float
        Average log-likelihood of the rows that were fitted, and of validation rows.
    bic, aic, abic, icl, entropy_r2, smallest, log_likelihood, n_parameters
        As in `exchangeable.classes.criteria.Criteria`.
    lr, p_value : float
        Statistic and p-value of the bootstrap likelihood-ratio test against the model of the same
        setting with the next smaller number of components.
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
    setting: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Selection(Tabular):
    """What was tried and what was chosen.

    Attributes
    ----------
    best : estimator
        The chosen model, fitted.
    table : list of Tried
        One entry for each model that was tried.
    criterion : {"valid", "bic", "aic", "abic", "icl", "blrt"}
        What decided.
    models : list of estimators
        All of them, fitted, in the order of the table.
    tests : dict from int to LikelihoodRatioTest
        The bootstrap tests, by the number of the larger model in the table.
    """

    best: Any
    table: list[Tried]
    criterion: str
    models: list[Any] = field(default_factory=list)
    tests: dict[int, LikelihoodRatioTest] = field(default_factory=dict)

    def as_table(self) -> Table:
        """Return one row for each model; what was not asked for is left out."""
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
        note = f"chosen by {self.criterion}"
        if self.tests:
            note += f"; bootstrap with {max(t.draws.size for t in self.tests.values())} draws"
        return Table(columns, "Models compared", digits, note)

    def plot(self, ax: Any = None) -> Any:
        """Draw the criteria against the number of components; needs matplotlib."""
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


def select_components(
    kind: type[Any],
    X: Any,
    X_valid: Any,
    n_components: Sequence[int],
    criterion: str | None,
    sample_weight: npt.ArrayLike | None,
    param_grid: Grid | Sequence[Grid] | None,
    bootstrap: int,
    parameters: dict[str, Any],
) -> Selection:
    """Fit a model for each setting and number of components, and keep the best by the criterion.

    An interrupt from the keyboard ends the fit that goes on and leaves out the rest, with a
    warning, unless nothing was fitted yet.
    """
    decided_by = _criterion(criterion, X_valid, bootstrap)
    tried = [check_count(k, "n_components") for k in n_components]
    if not tried:
        raise ValueError("n_components is empty; give at least one number to try")
    settings = list(_settings(param_grid))
    if decided_by == "blrt" and len(settings) > 1:
        raise ValueError(
            "criterion='blrt' compares numbers of components, not settings of param_grid; give one "
            "setting, or choose by another criterion"
        )
    table: list[Tried] = []
    models: list[Any] = []
    with interrupts() as interrupt:
        for setting in settings:
            for k in sorted(tried) if bootstrap else tried:
                try:
                    model = kind(n_components=k, **{**parameters, **setting})
                    model.fit(X, sample_weight=sample_weight)
                except KeyboardInterrupt:
                    if not models:
                        raise
                    interrupt.stop.set()
                    break
                models.append(model)
                table.append(_judged(model, k, setting, X, X_valid, sample_weight))
                if interrupt.stop.is_set():
                    break
            if interrupt.stop.is_set():
                break
        if interrupt.stop.is_set():
            interrupt.warn("the selection", stacklevel=3)
    found = Selection(models[0], table, decided_by, models)
    if bootstrap:
        found = _tested(found, X, sample_weight, bootstrap, parameters)
    return replace(found, best=models[_best(found)])


def _criterion(criterion: str | None, X_valid: Any, bootstrap: int) -> str:
    decided_by = criterion or ("bic" if X_valid is None else "valid")
    if decided_by not in CRITERIA:
        raise ValueError(
            f"criterion={criterion!r} is unknown; expected one of {', '.join(CRITERIA)}"
        )
    if decided_by == "valid" and X_valid is None:
        raise ValueError("criterion='valid' needs X_valid, rows to choose by")
    check_count(bootstrap, "bootstrap", minimum=0)
    if decided_by == "blrt" and not bootstrap:
        raise ValueError("criterion='blrt' needs a number of draws, such as bootstrap=100")
    return decided_by


def _settings(param_grid: Grid | Sequence[Grid] | None) -> Iterator[dict[str, Any]]:
    """Yield every combination of the values to try."""
    listed = [{}] if param_grid is None else param_grid
    for grid in [listed] if isinstance(listed, Mapping) else listed:
        for name, values in grid.items():
            if isinstance(values, str) or not isinstance(values, Sequence) or not values:
                raise ValueError(
                    f"param_grid[{name!r}]={values!r}; expected a list of values to try"
                )
        for values in product(*grid.values()):
            yield dict(zip(grid, values, strict=True))


def _judged(
    model: Any, k: int, setting: dict[str, Any], X: Any, X_valid: Any, sample_weight: Any
) -> Tried:
    """Return the line of a fitted model."""
    found = criteria_of(model, X, sample_weight)
    if degrees_of_freedom(model) < 0:
        warnings.warn(
            f"{k} classes have {found.n_parameters} parameters, more than the table of all answers "
            "can tell apart: the model is not identified; use fewer classes or more items",
            stacklevel=4,
        )
    return Tried(
        k,
        found.log_likelihood / found.n,
        float("nan") if X_valid is None else model.score(X_valid),
        found.bic,
        found.aic,
        found.abic,
        found.icl,
        found.entropy_r2,
        found.smallest,
        found.log_likelihood,
        found.n_parameters,
        setting=setting,
    )


def _tested(
    found: Selection, X: Any, sample_weight: Any, bootstrap: int, parameters: dict[str, Any]
) -> Selection:
    """Return the selection with a test of every model against the next smaller one."""
    rng = as_generator(parameters.get("random_state"))
    table, tests = list(found.table), {}
    for number in range(1, len(table)):
        before, row = table[number - 1], table[number]
        small, large = found.models[number - 1], found.models[number]
        same = row.setting == before.setting
        if not same or small.weights_.size >= large.weights_.size:
            continue
        test = likelihood_ratio_test(
            small,
            large,
            X,
            n_draws=bootstrap,
            restarts=max(RESTARTS, large.n_init),
            sample_weight=sample_weight,
            random_state=rng,
            n_jobs=parameters.get("n_jobs"),
        )
        tests[number] = test
        table[number] = replace(row, lr=test.statistic, p_value=test.p_value)
    return replace(found, table=table, tests=tests)


def _best(found: Selection) -> int:
    """Return the number of the chosen model."""
    if found.criterion == "blrt":
        kept = 0
        for number in range(1, len(found.table)):
            if not found.table[number].p_value <= LEVEL:
                break
            kept = number
        return kept
    values = np.array([getattr(row, found.criterion) for row in found.table])
    worth = values if found.criterion == "valid" else -values
    return int(np.argmax(np.where(np.isnan(worth), -np.inf, worth)))
