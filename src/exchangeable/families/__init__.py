"""Families of distributions: each complete in its own folder, all listed in the registry.

To add one, write a folder with its `SPECS` and name it here.
"""

from typing import Any

from exchangeable.families import (
    blocks,
    count_trees,
    hidden_trees,
    leaf_trees,
    mixed,
    neural,
    statistics,
    trees,
    urns,
)
from exchangeable.families.common.log_linear.scores import LogLinear
from exchangeable.families.contract import FamilySpec, Model
from exchangeable.families.joined import JoinedModel
from exchangeable.families.mixture import Mixture
from exchangeable.families.neural.settings import Neural

__all__ = [
    "REGISTRY",
    "Neural",
    "as_family",
    "family_named",
    "model_kinds",
    "normalised",
    "register",
    "with_statistics",
]

REGISTRY: dict[str, FamilySpec] = {}
"""The families by the names that users write."""
WITH_STATISTICS: dict[str, FamilySpec] = {}
"""Families that replace those of the same name if blocks come with statistics."""


def register(spec: FamilySpec) -> None:
    """Register a family: estimators, queries, files and the command line then accept it."""
    known = WITH_STATISTICS if spec.statistics else REGISTRY
    if spec.name in known:
        raise ValueError(f"the family {spec.name!r} is registered already")
    known[spec.name] = spec


for _room in (
    blocks,
    statistics,
    urns,
    trees,
    count_trees,
    hidden_trees,
    leaf_trees,
    mixed,
    neural,
):
    for _spec in _room.SPECS:
        register(_spec)


def family_named(name: object) -> FamilySpec:
    """Return a family by its name; the error for an unknown name lists them all."""
    if not isinstance(name, str) or name not in REGISTRY:
        raise ValueError(f"family={name!r} is unknown; expected one of {', '.join(REGISTRY)}")
    return REGISTRY[name]


def as_family(family: object) -> tuple[FamilySpec, Any]:
    """Return the family of a name, or of an object with settings.

    Returns
    -------
    spec, settings
        The family, and its own settings, None if it has none.
    """
    if isinstance(family, str):
        spec = family_named(family)
        return spec, spec.settings
    if any(type(family) is type(spec.settings) for spec in REGISTRY.values()):
        return family_named(getattr(family, "family", None)), family
    raise ValueError(
        f"family={family!r} is unknown; expected one of {', '.join(REGISTRY)}, or settings of one"
    )


def with_statistics(spec: FamilySpec) -> FamilySpec:
    """Return the family that replaces another if blocks come with statistics."""
    if spec.name not in WITH_STATISTICS:
        raise ValueError(
            f"blocks with statistics do not go with family={spec.name!r}; they go with "
            f"{', '.join(WITH_STATISTICS)}"
        )
    return WITH_STATISTICS[spec.name]


def normalised(scores: LogLinear, n_jobs: int | None = None) -> tuple[Mixture, float]:
    """Return the mixture with log P(x, y) = score of class y − log Z, and log Z.

    It belongs to the first family that can represent scores of this form.
    """
    for spec in REGISTRY.values():
        made = None if spec.normalise is None else spec.normalise(scores, n_jobs)
        if made is not None:
            return made
    raise ValueError("no family can represent scores with both pairs and blocks; leave out one")


def model_kinds() -> dict[str, type[Model]]:
    """Return the types of models by their names in files."""
    specs = [*REGISTRY.values(), *WITH_STATISTICS.values()]
    models = [each for spec in specs for each in (spec.model, spec.compact_model) if each]
    kinds: dict[str, type[Model]] = {model.kind: model for model in models}
    return {**kinds, JoinedModel.kind: JoinedModel}
