"""Parts of a family that are imported when they are first used."""

from dataclasses import dataclass
from importlib import import_module
from operator import attrgetter
from typing import Any


@dataclass(frozen=True)
class Later:
    """A name in a module that has not been imported yet."""

    module: str
    name: str

    def found(self) -> Any:
        """Import the module, and return what has the name."""
        return attrgetter(self.name)(import_module(self.module))


def later(module: str, name: str) -> Any:
    """Return a placeholder for a part of a `FamilySpec`.

    A program then imports only the families that it uses.

    Parameters
    ----------
    module : str
        The full name of a module.
    name : str
        A name in it, or of one of its classes: ``"Features.of"``.
    """
    return Later(module, name)
