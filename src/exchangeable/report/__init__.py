"""One self-contained page about a model: its blocks, its counts, and a panel that computes.

The page holds the model's tables and the arithmetic in plain JavaScript; it needs no network.
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

from exchangeable.estimators.base import FittedBlocks, FittedModel
from exchangeable.families.blocks.model import BlockModel
from exchangeable.families.count_trees.model import CountTreeModel
from exchangeable.families.hidden_trees.model import HiddenModel
from exchangeable.families.joined import JoinedModel
from exchangeable.families.trees.model import TreeModel
from exchangeable.families.urns.model import UrnModel
from exchangeable.storage.files import replacing

__all__ = ["report_html", "write_report"]

MOST_WORK = 4_000_000
"""Weighted urns take the square of their size; what is more than this would not be at once."""
PARTS = ("page.css", "arithmetic.js", "charts.js", "panel.js", "page.js")


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
        The file to write, by custom ending in ``.html``.
    names : sequence of str, optional
        Names of the variables, where the model was fitted without.
    title : str, optional
        Heading of the page; the model's class by default.

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
    if not isinstance(model, FittedBlocks):
        raise TypeError(
            f"a report is about a classifier, mixture or density, got {type(model).__name__}"
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
    return page


def _data(model: FittedBlocks, names: Sequence[str] | None, title: str) -> dict[str, Any]:
    """Return what the page's scripts read."""
    inner = model._fitted()
    labels = model._labels().tolist()
    mixture = not hasattr(model, "classes_")
    return {
        "title": title,
        "kind": type(model).__name__,
        "what": "component" if mixture else "class",
        "classes": [f"component {y}" if mixture else str(y) for y in labels],
        "names": _names(model, names, inner.n_variables),
        "logPrior": _packed(np.asarray(model._log_prior, dtype=np.float64)),
        "labels": _packed(np.stack([p.labels for p in inner.partitions]).astype(np.uint32)),
        **_tables(inner),
        "facts": _facts(model),
    }


def _names(model: Any, names: Sequence[str] | None, n: int) -> list[str]:
    found = getattr(model, "feature_names_in_", None) if names is None else names
    if found is None:
        return [f"x{j}" for j in range(n)]
    if len(found) != n:
        raise ValueError(f"{len(found)} names for {n} variables")
    return [str(name) for name in found]


def _tables(
    inner: FittedModel,
) -> dict[str, Any]:
    """Return the look-ups of a block model; of any other the probabilities of counts alone."""
    if isinstance(inner, BlockModel):
        return {"tables": _packed(inner.made_tables.values), "model": "blocks"}
    if isinstance(inner, UrnModel) and np.ptp(inner.log_weights) == 0:
        uniform = [table for y in range(inner.n_classes) for _, table in inner._urns(y)]
        slope = float(inner.log_weights.flat[0])
        tables = np.concatenate([table + slope * np.arange(table.size) for table in uniform])
        return {"tables": _packed(tables), "model": "blocks"}
    with np.errstate(divide="ignore"):
        log_q = [np.log(q) for blocks in inner.count_probabilities() for q in blocks]
    counts = {"logq": _packed(np.concatenate(log_q))}
    if isinstance(inner, HiddenModel):
        return {**counts, "model": "a hidden tree"}
    if isinstance(inner, JoinedModel):
        return {**counts, "model": "several families"}
    if isinstance(inner, TreeModel | CountTreeModel):
        return {**counts, "model": "trees"}
    if sum(int((p.sizes**2).sum()) for p in inner.partitions) > MOST_WORK:
        return {**counts, "model": "large weighted urns"}
    tables = np.concatenate([table for y in range(inner.n_classes) for _, table in inner._urns(y)])
    weights = {"weights": _packed(inner.log_weights.T), "tables": _packed(tables)}
    return {**counts, **weights, "model": "weighted urns"}


def _facts(model: Any) -> list[list[str]]:
    """Return what the overview tells beside the numbers of variables, classes and blocks."""
    facts: list[list[Any]] = []
    for name in ("structure", "urn", "dependence", "alpha"):
        value = getattr(model, name, None)
        if value is not None:
            facts.append([name, value if isinstance(value, str | int | float) else "given"])
    if hasattr(model, "log_likelihood_"):
        facts.append(["log-likelihood a row", f"{model.log_likelihood_:.4f}"])
    return [[name, str(value)] for name, value in facts]


def _packed(array: npt.NDArray[Any]) -> str:
    """Return an array's bytes as text, exact to the last bit."""
    little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    return base64.b64encode(little.tobytes()).decode("ascii")
