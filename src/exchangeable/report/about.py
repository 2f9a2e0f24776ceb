"""The description of a model at the top of its page, in a few sentences."""

from typing import Any

import numpy as np

from exchangeable.estimators.base import MixtureEstimator
from exchangeable.estimators.kinds import specs_for
from exchangeable.families import REGISTRY, as_family
from exchangeable.structure.blocks import as_blocks, kind_of

LEARNED = "learned from the data"
BLOCKS = {
    "auto": LEARNED,
    "evidence": LEARNED,
    "welch": LEARNED,
    "full": "all variables in one",
    "independent": "one per variable",
    "given": "as they were given",
}
"""How blocks were found, by the names of `Blocks.method`."""


def families_of(model: Any) -> list[str]:
    """Return the names of the families in the model."""
    members = [member["family"] for member in getattr(model, "members_", ())]
    fitted = specs_for([as_family(model.family)[0]], model._schema()) if not members else []
    return list(dict.fromkeys([*members, *(spec.name for spec in fitted)]))


def word_for_classes(model: Any) -> str:
    """Return what a part of the model is called."""
    return "class" if hasattr(model, "classes_") else "component"


def about(model: MixtureEstimator) -> str:
    """Return the sentences: the size of the model, what it is made of, and how well it fits."""
    inner, what = model._fitted(), word_for_classes(model)
    k, n = inner.n_classes, inner.n_variables
    plural = {"class": "classes", "component": "components"}[what] if k > 1 else what
    kind = "binary variable" if model._schema() is None else "column"
    made = "A classifier" if what == "class" else "A mixture"
    told = [f"{made} of {k:,} {plural} over {n:,} {kind}{'s' if n > 1 else ''}."]
    names = families_of(model)
    told += [f"Its family is “{names[0]}”: {REGISTRY[names[0]].summary}."]
    told += [f"Another is “{name}”: {REGISTRY[name].summary}." for name in names[1:]]
    if model._schema() is None:
        told.append(_blocks(model, what))
    if hasattr(model, "log_likelihood_"):
        told.append(
            "The average log-likelihood of a training row is "
            f"{fixed(float(model.log_likelihood_))}."
        )
    return " ".join(told)


def _blocks(model: Any, what: str) -> str:
    """Return the number of blocks, and how they were found."""
    counts = [partition.n_blocks for partition in model._fitted().partitions]
    mean = float(np.mean(counts))
    number = f"{mean:,.0f}" if mean % 1 == 0 or mean >= 10 else f"{mean:.1f}"
    average = " on average" if len(set(counts)) > 1 else ""
    how = ""
    if hasattr(model, "blocks"):
        kind = kind_of(as_blocks(model.blocks)[1])
        allowed = REGISTRY[families_of(model)[0]].blocks
        how = f", {BLOCKS[allowed[0] if kind == 'auto' and allowed else kind]}"
    return f"Each {what} has {number} {'block' if mean == 1 else 'blocks'}{average}{how}."


def fixed(value: float, digits: int = 4) -> str:
    """Return a number with this many digits after the point, never a negative zero.

    Examples
    --------
    >>> fixed(-0.00001), fixed(-1.5)
    ('0.0000', '-1.5000')
    """
    return f"{round(value, digits) + 0.0:.{digits}f}"
