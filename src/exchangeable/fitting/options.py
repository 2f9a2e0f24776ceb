"""What the options of classifier and mixture stand for, and which of them go together."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from exchangeable.arrays import LARGEST, check_alpha, check_count, check_number
from exchangeable.fitting.density_em import StopRule
from exchangeable.fitting.density_fit import HIDDEN_POOLING, POOLING, SHRINKAGE, DensityOptions
from exchangeable.structure.learner import Structure

CHOICES = {
    "urn": ("uniform", "weighted"),
    "dependence": ("independent", "tree", "hidden"),
    "restarts": ("best", "average"),
}


def check_choices(estimator: Any) -> None:
    """Refuse values of `urn`, `dependence` and `restarts` that are not offered."""
    for name, known in CHOICES.items():
        value = getattr(estimator, name, known[0])
        if not isinstance(value, str) or value not in known:
            raise ValueError(f"{name}={value!r} is unknown; expected one of {', '.join(known)}")
    if estimator.shrinkage is not None and estimator.dependence == "independent":
        raise ValueError(
            f"shrinkage={estimator.shrinkage!r} is about the edges of trees; it goes with "
            "dependence='tree' or 'hidden'"
        )
    if estimator.dependence == "hidden":
        _check_hidden(estimator)
    for name in ("pooling", "shrinkage"):
        value = getattr(estimator, name)
        if value is not None and not 0 < check_number(value, name) <= LARGEST:
            raise ValueError(f"{name} must be positive and finite, got {value!r}")


def is_papers(estimator: Any) -> bool:
    """Whether the options ask for the paper's model: uniform urns, independent, no pooled prior."""
    return (
        estimator.urn == "uniform"
        and estimator.dependence == "independent"
        and estimator.pooling is None
    )


def resolved_structure(estimator: Any) -> Any:
    """Return the `structure` parameter, with what ``"auto"`` stands for in its place."""
    structure = estimator.structure
    if not (isinstance(structure, str) and structure == "auto"):
        return structure
    if estimator.urn == "weighted":
        return "full"
    return "evidence" if estimator.dependence == "independent" else "independent"


def has_single_variables(structure: Structure) -> bool:
    """Whether every variable is a block of its own."""
    if isinstance(structure, list):
        return all(partition.n_blocks == partition.labels.size for partition in structure)
    return structure.name == "independent"


def density_options(
    estimator: Any, structure: Structure, n_classes: int, init: str = "rows"
) -> DensityOptions:
    """Return what to fit, refusing options that do not go together."""
    named = resolved_structure(estimator)
    weighted = estimator.urn == "weighted"
    kind = "urns"
    if estimator.dependence == "hidden":
        kind = "hidden tree"
        check_hidden_blocks(named, structure)
    elif estimator.dependence == "tree":
        kind = "weighted tree" if weighted else "count tree"
        if not weighted and has_single_variables(structure):
            kind = "tree"
        if weighted and not (isinstance(named, str) and named == "full"):
            raise ValueError(
                f"structure={named!r} does not go with urn='weighted' and dependence='tree', which "
                "is a tree over the variables: leave structure='auto' or give 'full'"
            )
    elif isinstance(named, str) and named == "independent":
        if weighted:
            raise ValueError(
                "structure='independent' leaves one variable in each urn, whose weight means "
                "nothing; urn='weighted' needs larger blocks, such as structure='full'"
            )
        kind = "independent"
    alpha = check_alpha(estimator.alpha)
    if alpha == 0:
        raise ValueError(
            "alpha=0 leaves what never occurs in the training set without a chance; urn='weighted',"
            " dependence='tree' or 'hidden' and pooling need alpha > 0"
        )
    return DensityOptions(
        kind,
        n_classes,
        structure,
        weighted,
        default_pooling(kind) if estimator.pooling is None else float(estimator.pooling),
        alpha,
        float(SHRINKAGE.get(kind, 0.0) if estimator.shrinkage is None else estimator.shrinkage),
        StopRule(float(estimator.tol), check_count(estimator.max_iter, "max_iter")),
        init,
    )


def default_pooling(kind: str) -> float:
    """Return the pseudo-rows of the pooled prior, where the user does not say."""
    return HIDDEN_POOLING if kind == "hidden tree" else POOLING


def _check_hidden(estimator: Any) -> None:
    """Refuse options that hidden trees have no use for."""
    if estimator.urn == "weighted":
        raise ValueError(
            "urn='weighted' does not go with dependence='hidden', whose blocks are exchangeable "
            "given their state: leave urn='uniform', or use dependence='tree'"
        )
    if not hasattr(estimator, "n_components"):
        raise ValueError(
            "dependence='hidden' is for mixtures, whose components are states that nobody has "
            "labelled: use dependence='tree' for a classifier, or fit an ExchangeableMixture to "
            "the rows of each class"
        )


def check_hidden_blocks(named: Any, structure: Structure) -> None:
    """Refuse blocks that are not the same for all states of a hidden tree."""
    if isinstance(structure, list):
        if any((p.labels != structure[0].labels).any() for p in structure):
            raise ValueError(
                "structure gives components blocks of their own; a hidden tree has one set of "
                "blocks for all states: give one list of blocks"
            )
    elif structure.needs_moments:
        raise ValueError(
            f"structure={named!r} learns the blocks of components, which a hidden tree does not "
            "have: leave structure='auto', or give a list of blocks"
        )


def refuse(estimator: Any, defaults: dict[str, Any], why: str) -> None:
    """Refuse options that would do nothing here."""
    for name, default in defaults.items():
        value = getattr(estimator, name)
        if value is not default and value != default:
            raise ValueError(f"{name}={value!r} {why}")


def held_out(validation_fraction: Any, n_rows: int, rng: np.random.Generator) -> Sequence[Any]:
    """Return the numbers of the rows to fit and of those to hold out, drawn at random."""
    share = check_number(validation_fraction, "validation_fraction")
    if not 0 < share < 1:
        raise ValueError(f"validation_fraction must lie between 0 and 1, got {share}")
    n_held = round(share * n_rows)
    if not 0 < n_held < n_rows:
        raise ValueError(
            f"validation_fraction={share} of {n_rows} rows leaves {n_rows - n_held} to fit and "
            f"{n_held} to hold out; give more rows or another share"
        )
    order = rng.permutation(n_rows)
    return np.sort(order[n_held:]), np.sort(order[:n_held])
