"""Choice of the number of components, the family and the blocks."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from threading import Event
from typing import Any

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import as_generator, check_count
from exchangeable.classes.criteria import Criteria, criteria_of, degrees_of_freedom
from exchangeable.classes.selection import CRITERIA, Selection, Tried
from exchangeable.classes.uncertainty.likelihood_ratio import RESTARTS, likelihood_ratio_test
from exchangeable.runtime.interrupts import interrupts

Grid = Mapping[str, Sequence[Any]]
TROUBLES = {
    "not identified": "more than the table of all answers can tell apart, so that the model is not "
    "identified",
    "too small a sample": "as many as there are rows or more",
}
LEVEL = 0.05
"""p-values up to this indicate that the larger of two models is needed."""


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

    An interrupt from the keyboard ends the current fit or test and skips the rest, with a warning,
    unless nothing has been fitted yet.
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
                interrupt.stop.kept = True
                table.append(_judged(model, k, setting, X, X_valid, sample_weight))
                if interrupt.stop.is_set():
                    break
            if interrupt.stop.is_set():
                break
        found = Selection(models[0], table, decided_by, models)
        if bootstrap:
            found = _tested(found, X, sample_weight, bootstrap, parameters, interrupt.stop)
        if interrupt.stop.is_set():
            interrupt.warn("the selection", stacklevel=3)
    best = _best(found)
    if table[best].trouble:
        warnings.warn(
            f"{table[best].n_components} classes have {table[best].n_parameters} parameters: "
            f"{TROUBLES[table[best].trouble]}; use fewer classes, or more rows or items",
            stacklevel=3,
        )
    return replace(found, best=models[best])


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
    """Return the entry of a fitted model."""
    found = criteria_of(model, X, sample_weight)
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
        trouble=_trouble(model, found),
        setting=setting,
    )


def _trouble(model: Any, found: Criteria) -> str:
    """Return why a model has too many parameters, an empty text if it has not."""
    if degrees_of_freedom(model) < 0:
        return "not identified"
    return "too small a sample" if found.n <= found.n_parameters else ""


def _tested(
    found: Selection,
    X: Any,
    sample_weight: Any,
    bootstrap: int,
    parameters: dict[str, Any],
    stop: Event,
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
        if stop.is_set():
            break
        try:
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
        except KeyboardInterrupt:
            stop.set()
            break
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
