"""What a model is, in a few sentences at the head of its page."""

from typing import Any

import numpy as np

from exchangeable.estimators.base import MixtureEstimator
from exchangeable.families import REGISTRY, as_family
from exchangeable.structure.blocks import as_blocks, kind_of

BLOCKS = {
    "auto": "learned from the data",
    "full": "fixed: one block of all variables",
    "independent": "fixed: one block per variable",
}


def families_of(model: Any) -> list[str]:
    """Return the names of the families that the model is made of."""
    members = [member["family"] for member in getattr(model, "members_", ())]
    return list(dict.fromkeys(members)) or [as_family(model.family)[0].name]


def word_for_classes(model: Any) -> str:
    """Return what a part of the model is called."""
    return "class" if hasattr(model, "classes_") else "component"


def about(model: MixtureEstimator) -> str:
    """Return the sentences: how large the model is, what it is made of, and how well it fits."""
    inner, what = model._fitted(), word_for_classes(model)
    k, n = inner.n_classes, inner.n_variables
    plural = {"class": "classes", "component": "components"}[what] if k > 1 else what
    kind = "binary variable" if model._schema() is None else "column"
    made = "A classifier" if what == "class" else "A mixture"
    told = [f"{made} of {k:,} {plural} over {n:,} {kind}{'s' if n > 1 else ''}."]
    names = families_of(model)
    summaries = "; ".join(f"{name} ({REGISTRY[name].summary})" for name in names)
    told.append(f"{'Families' if len(names) > 1 else 'Family'}: {summaries}.")
    if model._schema() is None:
        mean = float(np.mean([partition.n_blocks for partition in inner.partitions]))
        told.append(
            f"Each {what} has {mean:,.{int(mean < 10 and mean % 1 > 0)}f} "
            f"{'block' if mean == 1 else 'blocks'}"
            f"{' on average' if k > 1 else ''}{_how(model)}."
        )
    if hasattr(model, "log_likelihood_"):
        told.append(
            "The average log-likelihood of a training row is "
            f"{fixed(float(model.log_likelihood_))}."
        )
    return " ".join(told)


def _how(model: Any) -> str:
    """Return where the blocks came from."""
    if not hasattr(model, "blocks"):
        return ""
    kind = kind_of(as_blocks(model.blocks)[1])
    return f", {BLOCKS.get(kind, f'from blocks={kind!r}')}"


def fixed(value: float, digits: int = 4) -> str:
    """Return a number with so many digits after the point, never a zero with a sign.

    Examples
    --------
    >>> fixed(-0.00001), fixed(-1.5)
    ('0.0000', '-1.5000')
    """
    return f"{round(value, digits) + 0.0:.{digits}f}"
