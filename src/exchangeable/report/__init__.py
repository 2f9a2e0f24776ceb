"""A self-contained HTML page about a model: its blocks, its counts, and a panel for queries.

The page contains the model's parameters and the computations in plain JavaScript, and needs no
network. A family takes part through `on_page` of its model and the script in its folder. If a
family has none, or an answer would take too long, the page says which queries it leaves out. Every
page has cards of the classes.
"""

import html
import json
import os
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from exchangeable.classes.rows import column_names
from exchangeable.estimators.base import MixtureEstimator
from exchangeable.families.contract import Model
from exchangeable.families.page import stacked_labels
from exchangeable.report.about import about, word_for_classes
from exchangeable.report.cards import profile_data
from exchangeable.report.frame import write_page
from exchangeable.report.live import live_panel, packed
from exchangeable.report.trees import tree_data
from exchangeable.runtime.text import printable, without_surrogates

__all__ = ["report_html", "write_report"]

BEFORE = ("arithmetic", "states")
AFTER = ("columns", "answers", "charts", "trees", "panel", "profiles", "page")
"""The page's own scripts, before and after those of the families."""


def write_report(
    model: Any,
    path: str | os.PathLike[str],
    *,
    names: Sequence[str] | None = None,
    title: str | None = None,
) -> None:
    """Write a page about a fitted model, replacing the file atomically.

    Parameters
    ----------
    model : ExchangeableClassifier, ExchangeableMixture or ExchangeableDensity
        A fitted model.
    path : path-like
        The file to write, usually ending in ``.html``.
    names : sequence of str, optional
        Names of the variables, if the model was fitted without names.
    title : str, optional
        Heading of the page; by default the name of the model's class.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from exchangeable import ExchangeableMixture
    >>> from exchangeable.report import write_report
    >>> X = np.random.default_rng(0).integers(0, 2, size=(100, 5))
    >>> model = ExchangeableMixture(2, random_state=0, tol=0.1).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_report(model, Path(folder, "report.html"))
    ...     Path(folder, "report.html").read_text(encoding="utf-8")[:15]
    '<!doctype html>'
    """
    write_page(report_html(model, names=names, title=title), path)


def report_html(model: Any, *, names: Sequence[str] | None = None, title: str | None = None) -> str:
    """Return the page that `write_report` writes."""
    if not isinstance(model, MixtureEstimator):
        raise TypeError(
            "a report is about a fitted classifier, mixture or density of this library, got "
            f"{type(model).__name__}"
        )
    check_is_fitted(model, "_model")
    heading = title or type(model).__name__
    panel = live_panel(model)
    data = json.dumps(_data(model, names, heading) | panel.data, ensure_ascii=False)
    folder = files("exchangeable.report")
    own = {name: (folder / f"{name}.js").read_text(encoding="utf-8") for name in (*BEFORE, *AFTER)}
    scripts = [*(own[name] for name in BEFORE), *panel.scripts, *(own[name] for name in AFTER)]
    style = (folder / "page.css").read_text(encoding="utf-8")
    page = (folder / "page.html").read_text(encoding="utf-8")
    for key, value in (
        ("title", html.escape(printable(heading))),
        ("style", style),
        ("script", "\n".join(scripts)),
        ("data", data.replace("<", "\\u003c").replace("\u2028", "\\u2028")),
    ):
        before, found, after = page.partition(f"<!--{key}-->")
        assert found
        page = before + value + after
    return without_surrogates(page)


def _data(model: MixtureEstimator, names: Sequence[str] | None, title: str) -> dict[str, Any]:
    """Return the data that the page's scripts read."""
    inner, what = model._fitted(), word_for_classes(model)
    found = _names(model, names, inner.n_variables)
    return {
        "title": title,
        "kind": type(model).__name__,
        "what": what,
        "classes": [str(y) if what == "class" else f"{what} {y}" for y in model._labels().tolist()],
        "names": found,
        "logPrior": packed(np.asarray(model._log_prior, dtype=np.float64)),
        "about": about(model),
        **profile_data(model, found),
        **(_of_binary(model, inner, found) if model._schema() is None else {}),
    }


def _names(model: Any, names: Sequence[str] | None, n: int) -> list[str]:
    """Return the names of the variables: given ones, those of the training set, or numbers."""
    known = column_names(model) if names is None else names
    if len(known) != n:
        raise ValueError(
            f"names has {len(known)} entries, the model has {n} variables; give one name for each"
        )
    return [str(name) for name in known]


def _of_binary(model: MixtureEstimator, inner: Model, names: list[str]) -> dict[str, Any]:
    """Return the data of pages about binary columns only: blocks, and trees if there are any."""
    with np.errstate(divide="ignore"):
        log_q = [np.log(q) for blocks in inner.count_probabilities() for q in blocks]
    return {
        "labels": packed(stacked_labels(inner.partitions)),
        "logq": packed(np.concatenate(log_q)),
        **tree_data(inner, np.asarray(model._log_prior), names),
    }
