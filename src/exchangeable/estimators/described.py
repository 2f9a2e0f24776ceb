"""Docstrings that list the families of the registry, so that none is forgotten."""

from collections.abc import Callable
from textwrap import fill
from typing import TypeVar

from exchangeable.families import REGISTRY
from exchangeable.families.contract import FamilySpec

LIST = "{families}"
"""What stands in a docstring where the families are to be listed."""

WIDTH = 100

E = TypeVar("E")


def lists_families(ability: str | None = None) -> Callable[[type[E]], type[E]]:
    """Return a decorator that fills in a class's docstring which families it can be made of.

    Parameters
    ----------
    ability : str, optional
        What they must be able to do, one of `families.abilities.ABILITIES`.
    """
    specs = [spec for spec in REGISTRY.values() if ability is None or ability not in spec.cannot]

    def filled(estimator: type[E]) -> type[E]:
        if estimator.__doc__ is not None:  # Python leaves docstrings out with -OO
            before, after = estimator.__doc__.split(LIST)
            indent = before[before.rindex("\n") + 1 :]
            listed = "\n".join(_item(spec, indent) for spec in specs)
            estimator.__doc__ = before[: before.rindex("\n") + 1] + listed + after
        return estimator

    return filled


def _item(spec: FamilySpec, indent: str) -> str:
    """Return what a family is and which blocks and priors it has by default."""
    default = [f'``blocks="{spec.blocks[0]}"``']
    if spec.shrinkage is not None:
        default = [f'``blocks=Blocks("{spec.blocks[0]}", shrinkage={spec.shrinkage:g})``']
    if spec.pooling is not None:
        default.append(f"``pooling={spec.pooling:g}``")
    text = f'* ``"{spec.name}"``: {spec.summary}; {", ".join(default)}.'
    return fill(text, WIDTH, initial_indent=indent, subsequent_indent=indent + "  ")
