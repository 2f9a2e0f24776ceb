"""From the parameters of `ExchangeableDensity` to a search."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from exchangeable.arrays import check_alpha, check_count, check_flag, check_number
from exchangeable.data.columns.schema import Schema
from exchangeable.data.examples import Examples
from exchangeable.data.groups import Group, group_ones
from exchangeable.devices.choice import check_device, find_device
from exchangeable.families import REGISTRY, WITH_STATISTICS, family_named
from exchangeable.families.contract import FamilySpec
from exchangeable.fitting.em import StopRule
from exchangeable.fitting.search.kept_fits import KeptFits
from exchangeable.fitting.search.lanes import Lanes
from exchangeable.fitting.search.searching import Search
from exchangeable.fitting.search.trials import NO_BLOCKS, Fitter, NamedBlocks
from exchangeable.fitting.tasks import em_device
from exchangeable.runtime.clock import Clock
from exchangeable.structure.statistic_blocks import has_statistics, statistic_blocks

MUCH_TO_TELL, LEAST_PART = 40.0, 0.02
"""If the entropy of the rows under independence is smaller, so is the tolerance, in proportion and
within limits."""


def named_families(estimator: Any) -> list[FamilySpec]:
    """Return the families named by the user."""
    if estimator.families is None:
        return []
    names = (
        [estimator.families] if isinstance(estimator.families, str) else list(estimator.families)
    )
    if not names or any(name not in REGISTRY for name in names):
        raise ValueError(
            f"families={estimator.families!r}: expected one or more of {', '.join(REGISTRY)}"
        )
    return [family_named(name) for name in names]


def families_to_try(
    named: Sequence[FamilySpec], n_variables: int, schema: Schema | None
) -> tuple[list[str], dict[str, str]]:
    """Return the families to try, and the reasons why others are left out.

    Without names, these are all families that are searched for such columns and are installed.
    """
    if named:
        for spec in named:
            spec.check_size(n_variables)
        return [spec.name for spec in named], {}
    names, left_out = list[str](), dict[str, str]()
    for spec in REGISTRY.values():
        if spec.search is None or (len(spec.kinds) > 1) != (schema is not None):
            continue
        if not spec.installed:
            left_out[spec.name] = f"{spec.needs} is not installed"
        elif spec.most_variables is not None and n_variables > spec.most_variables:
            left_out[spec.name] = f"it has room for {spec.most_variables:,} variables"
        else:
            names.append(spec.name)
    return names, left_out


def new_search(
    estimator: Any,
    examples: Examples,
    held: Examples,
    families: list[str],
    left_out: dict[str, str],
    rng: np.random.Generator,
    clock: Clock,
) -> Search:
    """Return a search over some families that has not started."""
    if not 0 <= check_number(estimator.tol, "tol") < np.inf:
        raise ValueError(f"tol must be finite and at least 0, got {estimator.tol}")
    alpha = check_alpha(estimator.alpha)
    if alpha == 0:
        raise ValueError("alpha must be > 0: values never seen in training would get probability 0")
    check_device(estimator.device)
    named = named_blocks(estimator, examples.rows.n_variables)
    if named.blocks and estimator.families is None:
        families += [name for name in WITH_STATISTICS if name not in families]
    fitter = Fitter(
        examples,
        held,
        alpha,
        StopRule(
            _tolerance(estimator, examples, families), check_count(estimator.max_iter, "max_iter")
        ),
        int(rng.integers(2**31)),
        estimator.device,
        em_device(estimator),
        _accelerator(estimator, families),
        named=named,
    )
    most = estimator.max_components
    return Search(
        fitter,
        Lanes(fitter, estimator.n_jobs),
        families,
        None if most is None else check_count(most, "max_components"),
        check_count(estimator.n_init, "n_init"),
        clock,
        notes=left_out,
    )


def _tolerance(estimator: Any, examples: Examples, families: Sequence[str]) -> float:
    """Return the minimum improvement that counts as progress, smaller for rows with low entropy."""
    if any(len(family_named(name).kinds) > 1 for name in families):
        return float(estimator.tol)
    return float(estimator.tol * np.clip(entropy(examples) / MUCH_TO_TELL, LEAST_PART, 1.0))


def clock_of(estimator: Any) -> Clock:
    """Return the time at which the fit has to end."""
    clock = Clock()
    if estimator.time_budget is None:
        return clock
    budget = check_number(estimator.time_budget, "time_budget")
    if not budget > 0:
        raise ValueError(f"time_budget must be positive, got {budget}")
    return replace(clock, deadline=clock.now() + budget)


def named_blocks(estimator: Any, n_variables: int) -> NamedBlocks:
    """Return the blocks with statistics."""
    if estimator.blocks is None:
        return NO_BLOCKS
    if not has_statistics(estimator.blocks):
        raise ValueError(
            f"blocks={estimator.blocks!r}: expected pairs of variables and a statistic; other "
            "blocks are searched, or learned by the families"
        )
    if estimator.families is not None and not set(WITH_STATISTICS) & set(estimator.families):
        raise ValueError(
            f"blocks with statistics go with {', '.join(WITH_STATISTICS)}, but "
            f"families={list(estimator.families)!r}"
        )
    names = getattr(estimator, "feature_names_in_", None)
    return NamedBlocks(*statistic_blocks(estimator.blocks, n_variables, names))


def fits_to_keep(estimator: Any, search: Search) -> KeptFits:
    """Return where the search loads and stores its fits, after restoring the previous ones."""
    path, fitter = (
        None if estimator.checkpoint is None else Path(estimator.checkpoint),
        search.fitter,
    )
    check_flag(estimator.warm_start, "warm_start")
    if path is not None and not isinstance(estimator.random_state, int | np.integer):
        raise ValueError(
            f"checkpoint needs a whole number as random_state, got {estimator.random_state!r}: "
            "without one the same starts cannot be had again"
        )
    purpose = {
        "data": fitter.examples.fingerprint,
        "held-out rows": fitter.valid.fingerprint,
        "seed": fitter.seed,
        "alpha": fitter.alpha,
        "tol": fitter.rule.tol,
        "max_iter": fitter.rule.max_iter,
        "blocks": repr(estimator.blocks),
    }
    rows = fitter.valid.rows
    kept = KeptFits(purpose, path, (rows.n_rows, rows.n_variables))
    before = getattr(estimator, "_fits", None)
    if estimator.warm_start and before is not None:
        if before.purpose == purpose:
            kept.fits = {**before.fits, **kept.fits}
        else:
            search.starts = before.best_settings()
    if path is not None or estimator.warm_start:
        fitter.kept = kept
    return kept


def _accelerator(estimator: Any, families: Sequence[str]) -> Any:
    """Return the device for training networks, None for the CPU."""
    if estimator.device == "cpu" or not any(family_named(name).needs for name in families):
        return None
    device = find_device(estimator.device, f"families={list(families)!r}")
    return None if device.platform == "cpu" else device


def entropy(examples: Examples) -> float:
    """Return the entropy of binary rows in nats, assuming independent variables."""
    everyone = Group(np.arange(examples.rows.n_rows), examples.weights)
    on = group_ones(examples.rows, [everyone], 1)[0] / examples.total
    with np.errstate(divide="ignore", invalid="ignore"):
        each = np.where((on > 0) & (on < 1), on * np.log(on) + (1 - on) * np.log1p(-on), 0.0)
    return float(-each.sum())
