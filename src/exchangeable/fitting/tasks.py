"""From an estimator's parameters to a problem, with checks of their combinations."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from exchangeable.arrays import LARGEST, FloatArray, check_alpha, check_count, check_number
from exchangeable.data.examples import Examples, merge_equal_rows
from exchangeable.data.observed import Observed
from exchangeable.devices.choice import check_device, find_device
from exchangeable.families import as_family, with_statistics
from exchangeable.families.common.em_data import InMemory
from exchangeable.families.common.streaming.streamed import Streamed
from exchangeable.families.contract import FamilySpec, Model
from exchangeable.families.problem import Problem
from exchangeable.fitting.em import StopRule
from exchangeable.fitting.going_on import misfit
from exchangeable.structure.blocks import as_blocks, kind_of, structure_of
from exchangeable.structure.statistic_blocks import (
    StatisticBlock,
    has_statistics,
    statistic_blocks,
)

STARTS = ("rows", "random", "both")
COMBINE = ("best", "average")


def check_choice(value: Any, name: str, known: Sequence[str]) -> None:
    """Reject an unknown name."""
    if not isinstance(value, str) or value not in known:
        raise ValueError(f"{name}={value!r} is unknown; expected one of {', '.join(known)}")


def spec_of(estimator: Any) -> FamilySpec:
    """Return the family that an estimator uses, after checking the parameters that go with it.

    What depends on the data is left to `problem_of`.
    """
    spec = as_family(estimator.family)[0]
    settings, method = as_blocks(estimator.blocks)
    if has_statistics(method):
        spec = with_statistics(spec)
    if not hasattr(estimator, "n_components"):
        spec.check("classes", "a classifier")
    if settings.shrinkage is not None and spec.shrinkage is None:
        raise ValueError(
            f"shrinkage={settings.shrinkage!r} is about the edges of trees, which "
            f"family={spec.name!r} does not have; leave it away"
        )
    if estimator.pooling is not None:
        spec.check("pooling", f"pooling={estimator.pooling!r}")
    for name, value in (("pooling", estimator.pooling), ("shrinkage", settings.shrinkage)):
        if value is not None and not 0 < check_number(value, name) <= LARGEST:
            raise ValueError(f"{name} must be positive and at most {LARGEST:g}, got {value!r}")
    if settings.accept == "component":
        spec.check("accept", "accept='component'")
    if settings.relearn is not None:
        spec.check("relearn", f"relearn={settings.relearn}")
    alpha = check_alpha(estimator.alpha)
    if alpha == 0 and (spec.needs_smoothing or estimator.pooling is not None):
        asked = f"family={spec.name!r}" if spec.needs_smoothing else "pooling"
        raise ValueError(
            f"alpha must be > 0 with {asked}: values never seen in training would get probability 0"
        )
    check_method(spec, estimator.blocks)
    return spec


def check_method(spec: FamilySpec, blocks: Any) -> None:
    """Reject blocks that the family does not support."""
    kind = kind_of(as_blocks(blocks)[1])
    if kind in ("auto", *spec.blocks):
        return
    asked = "blocks given as lists" if kind == "given" else f"blocks={kind!r}"
    raise ValueError(
        f"{asked} does not go with family={spec.name!r}: {spec.blocks_hint}; it takes "
        f"{', '.join(spec.blocks)}"
    )


def problem_of(
    estimator: Any, spec: FamilySpec, n_variables: int, classes: Sequence[Any], labelled: bool
) -> Problem:
    """Return the problem that an estimator's parameters describe, without rows.

    Parameters
    ----------
    estimator : estimator
        The estimator whose parameters are read.
    spec : FamilySpec
        The result of `spec_of`.
    n_variables : int
        Number of variables.
    classes : sequence
        Labels of the classes, or numbers of the components.
    labelled : bool
        Whether these are classes.
    """
    spec.check_size(n_variables)
    spec.check_memory(0, n_variables, len(classes))
    settings, method = as_blocks(estimator.blocks)
    names = getattr(estimator, "feature_names_in_", None)
    if names is not None and len(names) != n_variables:  # groups of columns, which have numbers
        names = None
    chosen = spec.blocks[0] if kind_of(method) == "auto" else method
    named: list[StatisticBlock] = []
    others = np.empty(0, dtype=np.int64)
    if spec.statistics:
        named, others = statistic_blocks(method, n_variables, names)
        chosen = spec.blocks[0] if others.size else [np.arange(n_variables)]
        n_variables = others.size or n_variables
    structure = structure_of(settings, chosen, labelled, n_variables, classes, names)
    given = structure if isinstance(structure, list) else []
    if spec.shared_blocks and any((p.labels != given[0].labels).any() for p in given):
        raise ValueError(
            f"blocks gives components blocks of their own; family={spec.name!r} has one set of "
            "blocks for all: give one list of blocks"
        )
    relearns = spec.relearns if settings.relearn is None else settings.relearn
    pooling = spec.pooling if estimator.pooling is None else float(estimator.pooling)
    shrinkage = spec.shrinkage if settings.shrinkage is None else float(settings.shrinkage)
    return Problem(
        len(classes),
        structure,
        alpha=check_alpha(estimator.alpha),
        pooling=pooling,
        shrinkage=shrinkage or 0.0,
        relearns=relearns,
        accept=settings.accept,
        labelled=labelled,
        statistic_blocks=tuple(named),
        others=others,
        settings=as_family(estimator.family)[1],
        device=check_device(getattr(estimator, "device", "auto")),
    )


def em_device(estimator: Any) -> Any:
    """Return the device on which EM makes its passes, None for the processor."""
    return find_device("gpu", "device='gpu'") if estimator.device == "gpu" else None


def components_of(estimator: Any, spec: FamilySpec, n_rows: int) -> int:
    """Return the number of components: the parameter, or the family's default."""
    if estimator.n_components is None:
        return max(1, int(min(spec.most_per_row * n_rows, spec.components)))
    n_components = check_count(estimator.n_components, "n_components")
    if n_components > spec.most_per_row * n_rows:
        raise ValueError(
            f"n_components={n_components} is more than the rows of X that count, "
            f"n_samples = {n_rows}"
        )
    return n_components


def check_warm(spec: FamilySpec, model: Model, problem: Problem, n_variables: int) -> None:
    """Raise an error if a fit cannot continue from a model because of its shape.

    Training drops components with a negligible share, so there may be fewer.
    """
    if spec.goes_on is not None and model.n_classes < problem.n_components:
        problem = replace(problem, n_components=model.n_classes)
    told = misfit(model, problem, n_variables)
    if told is not None:
        raise ValueError(f"warm_start=True goes on from a fit {told}; set warm_start=False")


def rule_of(estimator: Any) -> StopRule:
    """Return when a run stops."""
    if not 0 <= check_number(estimator.tol, "tol") < np.inf:
        raise ValueError(f"tol must be finite and at least 0, got {estimator.tol}")
    return StopRule(float(estimator.tol), check_count(estimator.max_iter, "max_iter"))


def held_out(validation_fraction: Any, n_rows: int, rng: np.random.Generator) -> Sequence[Any]:
    """Return the numbers of the rows to fit and of the held-out rows, chosen at random."""
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


def hold_out(
    estimator: Any,
    spec: FamilySpec,
    observed: Observed,
    weight: FloatArray,
    valid: Examples | Streamed | None,
    rng: np.random.Generator,
) -> tuple[Observed, FloatArray, Examples | Streamed | None]:
    """Return the rows to fit with their weights, and the held-out rows, if any."""
    parts = _parts(estimator, spec, observed.n_rows, valid, rng)
    if parts is None:
        return observed, weight, valid
    kept, out = parts
    held = merge_equal_rows(observed.take(out), weight[out])[0]
    return observed.take(kept), weight[kept], held


def hold_out_chunks(
    estimator: Any,
    spec: FamilySpec,
    rows: Streamed,
    valid: Examples | Streamed | None,
    rng: np.random.Generator,
) -> tuple[Streamed, Examples | Streamed | None]:
    """Do the same for rows in chunks."""
    parts = _parts(estimator, spec, rows.n_rows, valid, rng)
    return (rows, valid) if parts is None else rows.parted(parts[0])


def _parts(
    estimator: Any, spec: FamilySpec, n_rows: int, valid: Any, rng: np.random.Generator
) -> Sequence[Any] | None:
    """Return the numbers of the rows to fit and of the held-out rows, None if all are fitted."""
    share = estimator.validation_fraction
    if valid is not None:
        if share is not None:
            raise ValueError(
                f"validation_fraction={share} and X_valid exclude each other; give one of them"
            )
        return None
    if share is None:
        if spec.held_out is None or round(spec.held_out * n_rows) < 1:
            return None
        share = spec.held_out
    kept, out = held_out(share, n_rows, rng)
    n_components = components_of(estimator, spec, n_rows)
    if n_components > spec.most_per_row * kept.size:
        raise ValueError(
            f"n_components={n_components} is more than the {kept.size} rows left to fit"
        )
    return kept, out


def purpose_of(
    estimator: Any, problem: Problem, data: InMemory | Streamed, n_init: int
) -> dict[str, Any]:
    """Return a description of the fit, which must match that of a checkpoint."""
    if not isinstance(estimator.random_state, int | np.integer):
        raise ValueError(
            f"checkpoint needs a whole number as random_state, got {estimator.random_state!r}: "
            "without one the same starts cannot be had again"
        )
    settings, method = as_blocks(estimator.blocks)
    details = {key: value for key, value in settings.get_params().items() if key != "method"}
    names = ("pooling", "alpha", "init", "tol")
    own = problem.settings
    return {
        "family": as_family(estimator.family)[0].name,
        "settings": None if own is None else str(sorted(own.get_params().items())),
        "data": data.fingerprint,
        "held-out rows": None if problem.valid is None else problem.valid.fingerprint,
        "n_init": n_init,
        "n_components": problem.n_components,
        "blocks": str(method),
        "block settings": str(sorted(details.items())),
        "random_state": int(estimator.random_state),
        **{name: getattr(estimator, name) for name in names},
    }
