"""Columns of every kind: a component is a product of parts, each over columns of one kind."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from exchangeable.families.contract import FamilySpec, SearchSpace
from exchangeable.families.later import later

if TYPE_CHECKING:
    from exchangeable.families.problem import Problem


def independent_first(name: str, problem: "Problem") -> "tuple[str, Problem] | None":
    """Return the fit with single columns that precedes learning blocks of components.

    Classes are known, so their blocks are learned at once.
    """
    structure = problem.structure
    if problem.labelled or isinstance(structure, list) or not structure.needs_moments:
        return None
    return name, replace(problem, structure=replace(structure, name="independent"))


CANNOT = {
    "device": "its parts are of different kinds, whose sums do not make one array; its passes are "
    "made on the processor",
    "accept": "its blocks are not learned",
    "relearn": "its blocks are not learned",
}
ALONE: tuple[Mapping[str, Any], ...] = (
    {"blocks": "independent", "alpha": 1.0},
    {"blocks": "full"},
    {"blocks": "full", "alpha": 1.0},
)
SEVERAL: tuple[Mapping[str, Any], ...] = (
    {"blocks": "independent", "components": 2, "pooling": 3.0},
    {"blocks": "independent", "components": 3, "pooling": 3.0},
)
KINDS = ("binary", "nominal", "ordinal", "count", "continuous")
SPECS = (
    FamilySpec(
        name="mixed",
        summary="columns of any kind: categories, scales, counts and measurements",
        model=later(f"{__name__}.model", "MixedModel"),
        family=later(f"{__name__}.family", "MixedFamily"),
        blocks=("independent", "evidence", "full", "given"),
        blocks_hint="Welch's test is for binary columns",
        shared_blocks=True,
        before=partial(independent_first, "mixed"),
        search=SearchSpace(pooling=(1.0, 1.0), blocks=("independent", "full")),
        candidates=(
            *ALONE,
            *SEVERAL,
            {"training": "hybrid"},
            {"training": "hybrid", "blocks": "full"},
        ),
        features=later(f"{__name__}.features", "MixedFeatures.of"),
        kinds=KINDS,
        row_priors=True,
        conditional=later(f"{__name__}.algebra.conditional", "conditional"),
        cannot=CANNOT,
    ),
    FamilySpec(
        name="polya",
        summary="columns of any kind; those of a block are draws from Pólya's urn, which makes "
        "what has occurred more probable: items that are alike, counts that come in bursts",
        model=later(f"{__name__}.model", "MixedModel"),
        family=later(f"{__name__}.family", "UrnsFamily"),
        blocks=("independent", "evidence", "full", "given"),
        blocks_hint="Welch's test is for binary columns",
        shared_blocks=True,
        before=partial(independent_first, "polya"),
        search=SearchSpace(pooling=(1.0, 1.0), blocks=("full",)),
        candidates=(*ALONE, *SEVERAL),
        kinds=KINDS,
        row_priors=True,
        cannot=CANNOT
        | {
            "hybrid": "Pólya's urns are not an exponential family: their scores are not log-linear "
            "in any parameters; family='mixed' can be trained so"
        },
    ),
)
