"""A self-contained HTML page about a model: its blocks, its counts, and a panel for questions.

The page holds the model's tables and the arithmetic in plain JavaScript, and needs no network. A
family takes part by what its model returns from `page_tables`; where that is None, and for columns
that are not binary, the page says which questions it leaves out. Cards of the classes are on every
page.
"""

import base64
import html
import json
import os
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from exchangeable.classes.rows import column_names
from exchangeable.estimators.base import MixtureEstimator
from exchangeable.families.contract import Model
from exchangeable.report.about import about, word_for_classes
from exchangeable.report.cards import profile_data
from exchangeable.report.trees import tree_data
from exchangeable.runtime.text import without_surrogates
from exchangeable.storage.files import replacing

__all__ = ["report_html", "write_report"]

LOOK_UPS = {"tables"}
"""What models give from whose look-ups the page can compute the distributions of counts."""
SCRIPTS = ("arithmetic", "charts", "trees", "panel", "profiles", "page")
PARTS = ("page.css", *(f"{name}.js" for name in SCRIPTS))


def write_report(
    model: Any,
    path: str | os.PathLike[str],
    *,
    names: Sequence[str] | None = None,
    title: str | None = None,
) -> None:
    """Write a page about a fitted model, replacing the file in one step.

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
    page = report_html(model, names=names, title=title)
    with replacing(path, "w") as file:
        file.write(page)


def report_html(model: Any, *, names: Sequence[str] | None = None, title: str | None = None) -> str:
    """Return the page that `write_report` writes."""
    if not isinstance(model, MixtureEstimator):
        raise TypeError(
            "a report is about a fitted classifier, mixture or density of this library, got "
            f"{type(model).__name__}"
        )
    check_is_fitted(model, "_model")
    heading = title or type(model).__name__
    folder = files("exchangeable.report")
    style, *scripts = ((folder / part).read_text(encoding="utf-8") for part in PARTS)
    data = json.dumps(_data(model, names, heading), ensure_ascii=False)
    page = (folder / "page.html").read_text(encoding="utf-8")
    for key, value in (
        ("title", html.escape(heading)),
        ("style", style),
        ("script", "\n".join(scripts)),
        ("data", data.replace("<", "\\u003c").replace("\u2028", "\\u2028")),
    ):
        before, found, after = page.partition(f"<!--{key}-->")
        assert found
        page = before + value + after
    return without_surrogates(page)


def _data(model: MixtureEstimator, names: Sequence[str] | None, title: str) -> dict[str, Any]:
    """Return what the page's scripts read."""
    inner, what = model._fitted(), word_for_classes(model)
    found = _names(model, names, inner.n_variables)
    return {
        "title": title,
        "kind": type(model).__name__,
        "what": what,
        "classes": [str(y) if what == "class" else f"{what} {y}" for y in model._labels().tolist()],
        "names": found,
        "logPrior": _packed(np.asarray(model._log_prior, dtype=np.float64)),
        "about": about(model),
        **profile_data(model, found),
        **(_of_binary(model, inner, found) if model._schema() is None else {}),
    }


def _names(model: Any, names: Sequence[str] | None, n: int) -> list[str]:
    """Return the names of the variables: those given, those of the training set, or numbers."""
    known = column_names(model) if names is None else names
    if len(known) != n:
        raise ValueError(
            f"names has {len(known)} entries, the model has {n} variables; give one name for each"
        )
    return [str(name) for name in known]


def _of_binary(model: MixtureEstimator, inner: Model, names: list[str]) -> dict[str, Any]:
    """Return what only pages about binary columns have: look-ups, and trees if there are any."""
    return {**_tables(inner), **tree_data(inner, np.asarray(model._log_prior), names)}


def _tables(inner: Model) -> dict[str, str]:
    """Return the arrays with which the page computes.

    Models whose answers are look-ups give these. Others need the distributions of counts as well,
    which is all that a page without a panel shows.
    """
    tables = inner.page_tables() or {}
    if tables.keys() != LOOK_UPS:
        with np.errstate(divide="ignore"):
            log_q = [np.log(q) for blocks in inner.count_probabilities() for q in blocks]
        tables = {**tables, "logq": np.concatenate(log_q)}
    labels = np.stack([p.labels for p in inner.partitions]).astype(np.uint32)
    return {
        "labels": _packed(labels),
        **{name: _packed(np.asarray(values)) for name, values in tables.items()},
    }


def _packed(array: npt.NDArray[Any]) -> str:
    """Return an array's bytes as text, exact to the last bit."""
    little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    return base64.b64encode(little.tobytes()).decode("ascii")
