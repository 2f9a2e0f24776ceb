"""A small HTML summary of a fitted model, for notebooks."""

from html import escape
from typing import Any

import numpy as np

from exchangeable.runtime.text import printable, printable_lines

MOST_ROWS = 12
MOST_NAMES = 6
STYLE = "text-align:left;padding:2px 10px 2px 0"


def summary_html(model: Any) -> str:
    """Return classes or components with their probability, blocks and largest block, as HTML.

    Parameters
    ----------
    model : FittedBlocks
        A fitted model.

    Examples
    --------
    >>> import numpy as np
    >>> from exchangeable import ExchangeableClassifier
    >>> X = np.random.default_rng(0).integers(0, 2, size=(100, 4))
    >>> html = summary_html(ExchangeableClassifier().fit(X, X.sum(axis=1) % 2))
    >>> "4 variables, 2 classes" in html
    True
    """
    inner, labels = model._fitted(), model._labels().tolist()
    what = "class" if hasattr(model, "classes_") else "component"
    prior = np.exp(model._log_prior)
    names = getattr(model, "feature_names_in_", None)
    order = np.argsort(-prior, kind="stable") if what == "component" else np.arange(prior.size)
    rows = []
    for y in order[:MOST_ROWS]:
        blocks = inner.partitions[y].blocks
        largest = max(blocks, key=len)
        listed = [str(j) if names is None else str(names[j]) for j in largest[:MOST_NAMES]]
        more = ", …" if largest.size > MOST_NAMES else ""
        told = (
            f"{prior[y]:.3f}",
            f"{len(blocks):,}",
            f"{largest.size:,}",
            ", ".join(listed) + more,
        )
        rows.append((str(labels[y]), *told))
    if prior.size > MOST_ROWS:
        rows.append((f"… {prior.size - MOST_ROWS} more", "", "", "", ""))
    plural = "classes" if what == "class" else "components"
    facts = f"{inner.n_variables:,} variables, {prior.size:,} {plural if prior.size > 1 else what}"
    if hasattr(model, "log_likelihood_"):
        facts += f", average log-likelihood {model.log_likelihood_:.4f}"
    head = _row((what, "probability", "blocks", "largest block", "its variables"), "th")
    body = "".join(_row(row, "td") for row in rows)
    parameters = escape(printable_lines(repr(model)))
    return (
        f"<div><strong>{escape(type(model).__name__)}</strong>: {escape(facts)}"
        f"<table><thead>{head}</thead><tbody>{body}</tbody></table>"
        f"<details><summary>parameters</summary><pre>{parameters}</pre></details></div>"
    )


def _row(cells: tuple[str, ...], tag: str) -> str:
    inside = "".join(f'<{tag} style="{STYLE}">{escape(printable(cell))}</{tag}>' for cell in cells)
    return f"<tr>{inside}</tr>"
