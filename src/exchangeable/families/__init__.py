"""Families of distributions: each complete in one folder, all known to the registry.

To add one, write a folder with its `SPECS` and name it here.
"""

from exchangeable.families import blocks, count_trees, hidden_trees, mixed, trees, urns
from exchangeable.families.contract import FamilySpec, Model
from exchangeable.families.joined import JoinedModel

__all__ = ["REGISTRY", "family_named", "model_kinds", "register"]

REGISTRY: dict[str, FamilySpec] = {}
"""The families by their names, as users write them."""


def register(spec: FamilySpec) -> None:
    """Make a family known: estimators, queries, files and the command line then take it."""
    if spec.name in REGISTRY:
        raise ValueError(f"the family {spec.name!r} is registered already")
    REGISTRY[spec.name] = spec


for _room in (blocks, urns, trees, count_trees, hidden_trees, mixed):
    for _spec in _room.SPECS:
        register(_spec)


def family_named(name: object) -> FamilySpec:
    """Return a family by its name, or say which there are."""
    if not isinstance(name, str) or name not in REGISTRY:
        raise ValueError(f"family={name!r} is unknown; expected one of {', '.join(REGISTRY)}")
    return REGISTRY[name]


def model_kinds() -> dict[str, type[Model]]:
    """Return the types of models by what they are called in files."""
    kinds: dict[str, type[Model]] = {spec.model.kind: spec.model for spec in REGISTRY.values()}
    return {**kinds, JoinedModel.kind: JoinedModel}
