"""The floor plan is kept: no module outside `families` names a family, and old rooms are gone."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from exchangeable.families import REGISTRY, WITH_STATISTICS, model_kinds

SOURCE = Path(__file__).parents[1] / "src" / "exchangeable"
OUTSIDE = sorted(
    path for path in SOURCE.rglob("*.py") if "families" not in path.relative_to(SOURCE).parts
)
FAMILY_TYPES = {kind.__name__ for kind in model_kinds().values()} - {"JoinedModel"} | {
    spec.family.__name__ for spec in REGISTRY.values()
}
SPECS = [*REGISTRY.values(), *WITH_STATISTICS.values()]
ROOMS = {spec.family.__module__.split(".")[2] for spec in SPECS}


def literals(path: Path) -> set[str]:
    """Return the texts in a module that are neither docstrings nor parts of longer messages."""
    tree = ast.parse(path.read_text())
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    return {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and id(node) not in docstrings
    }


@pytest.mark.parametrize("path", OUTSIDE, ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_module_outside_families_names_a_family(path: Path) -> None:
    text = path.read_text()
    named = sorted(name for name in FAMILY_TYPES if re.search(rf"\b{name}\b", text))
    assert not named, f"{path.name} names {named}; read the contract or the registry instead"
    imported = sorted(room for room in ROOMS if f"exchangeable.families.{room}" in text)
    assert not imported, f"{path.name} imports from {imported}"
    families = REGISTRY.keys() - {"blocks"}  # "blocks" is also what users' parameter is called
    spelled = sorted(literals(path) & families)
    assert not spelled, f"{path.name} spells out {spelled}"


def test_every_room_is_registered_and_old_rooms_are_gone() -> None:
    folders = {path.name for path in (SOURCE / "families").iterdir() if path.is_dir()}
    assert folders - {"common", "__pycache__"} == ROOMS
    for old in ("engines", "models", "inference"):
        assert not (SOURCE / old).exists()


COMPILES = ("njit", "compile", "vectorise", "inlined", "helper", "for_kernels")
FILLERS = {"found", "told", "place", "room", "at"}


def kernels(path: Path) -> Iterator[ast.FunctionDef]:
    """Yield the functions of a module that are compiled."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef):
            decorators = [ast.unparse(decorator) for decorator in node.decorator_list]
            if any(word in text for text in decorators for word in COMPILES):
                yield node


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: path.name)
def test_kernels_can_be_read(path: Path) -> None:
    """Arrays that belong together travel together, and names say what they hold."""
    for kernel in kernels(path):
        assert len(kernel.args.args) <= 10, f"{path.name}: {kernel.name}"
        names = {node.id for node in ast.walk(kernel) if isinstance(node, ast.Name)}
        assert not FILLERS & names, f"{path.name}: {kernel.name} has {FILLERS & names}"


IMPORTED_FIRST = """
import importlib, os, sys
import numba, numpy, scipy.stats, sklearn.base
for name in sys.argv[1:]:
    child = os.fork()
    if not child:
        importlib.import_module(name)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        sys.exit(f"{name} cannot be imported before the rest of the library")
"""
"""Imports each module in a process that has imported nothing of the library before."""


def test_what_families_build_on_can_be_imported_first() -> None:
    """Imports point one way, even those of packages that are imported on the way to a module."""
    below = sorted((SOURCE / "structure").glob("*.py"))
    at_risk = [path.stem for path in below if "exchangeable.families" in path.read_text()]
    names = [f"exchangeable.structure.{stem}" for stem in at_risk]
    command = [sys.executable, "-c", IMPORTED_FIRST, *names]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
