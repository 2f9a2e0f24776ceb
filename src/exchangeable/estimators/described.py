"""Docstrings that list all families of the registry."""

from collections.abc import Callable
from textwrap import fill
from typing import TypeVar

from exchangeable.families import REGISTRY
from exchangeable.families.contract import FamilySpec

LIST = "{families}"
"""Placeholder in a docstring for the list of families."""

WIDTH = 100

E = TypeVar("E")


def lists_families(ability: str | None = None) -> Callable[[type[E]], type[E]]:
    """Return a decorator that inserts the list of supported families into a class's docstring.

    Parameters
    ----------
    ability : str, optional
        The ability they must have, one of `families.abilities.ABILITIES`.
    """
    specs = [spec for spec in REGISTRY.values() if ability is None or ability not in spec.cannot]

    def filled(estimator: type[E]) -> type[E]:
        if estimator.__doc__ is not None:  # Python drops docstrings with -OO
            before, after = estimator.__doc__.split(LIST)
            indent = before[before.rindex("\n") + 1 :]
            listed = "\n".join(_item(spec, indent) for spec in specs)
            estimator.__doc__ = before[: before.rindex("\n") + 1] + listed + after
        return estimator

    return filled


def _item(spec: FamilySpec, indent: str) -> str:
    """Return what a family is, with its default blocks and prior."""
    default = [f'``blocks="{spec.blocks[0]}"``']
    if spec.shrinkage is not None:
        default = [f'``blocks=Blocks("{spec.blocks[0]}", shrinkage={spec.shrinkage:g})``']
    if spec.pooling is not None:
        default.append(f"``pooling={spec.pooling:g}``")
    text = f'* ``"{spec.name}"``: {spec.summary}; {", ".join(default)}.'
    return fill(text, WIDTH, initial_indent=indent, subsequent_indent=indent + "  ")
