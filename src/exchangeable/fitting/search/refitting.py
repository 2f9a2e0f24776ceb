"""EM for several families at once: the components of a joined mixture, refitted together.

The posterior of a row is that of all components of all families. Within a family it is what the
family's own EM computes, so each family makes its usual pass over the rows, whose weights are
multiplied by the posterior probability of the family.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from threading import Event
from typing import Any

import numpy as np

from exchangeable.arrays import FloatArray
from exchangeable.data.examples import Examples
from exchangeable.families import with_statistics
from exchangeable.families.common.em_data import InMemory
from exchangeable.families.contract import Family
from exchangeable.families.mixture import Mixture
from exchangeable.families.problem import Problem
from exchangeable.fitting.search.parts import NO_WEIGHT, Part, em_family
from exchangeable.fitting.search.trials import NamedBlocks

POOLING, SHRINKAGE = 0.5, 1.0
"""Pseudo-rows of components that are refitted."""
STEPS, TOL, PATIENCE = 60, 1e-5, 1
"""Maximum number of steps, the improvement of the log-likelihood that counts as progress, relative
to the log-likelihood, and after how many steps without progress to stop."""

LEAST_SHARE = 1e-300
"""A smaller share has no logarithm."""


@dataclass(frozen=True)
class _Fitted:
    """A part and the family that fits it, None if its components stay as they are."""

    part: Part
    family: Family | None


def refitted(
    parts: Sequence[Part],
    rows: Examples,
    held: Examples,
    named: NamedBlocks,
    n_jobs: int | None,
    stop: Event,
) -> list[Part]:
    """Return parts with parameters and shares fitted to rows, those best for the rows held out.

    The components of families without EM stay as they are; their shares are fitted.
    """
    fits = [_begun(part, rows, named, n_jobs) for part in parts]
    unchanged = {
        number: _evidence(each.part, rows, held, n_jobs)
        for number, each in enumerate(fits)
        if each.family is None
    }
    best, mark, stale, kept = -np.inf, -np.inf, 0, list(parts)
    for _ in range(STEPS):
        pairs = [
            unchanged[number] if number in unchanged else _evidence(each.part, rows, held, n_jobs)
            for number, each in enumerate(fits)
        ]
        log_shares = np.log([max(each.part.share, LEAST_SHARE) for each in fits])
        joint, apart = (np.stack(some, axis=1) + log_shares for some in zip(*pairs, strict=True))
        worth = float(held.weights @ np.logaddexp.reduce(apart, axis=1)) / held.total
        if worth > best:
            best, kept = worth, [each.part for each in fits]
        progress = worth > mark + TOL * abs(worth)
        mark, stale = (worth, 0) if progress else (mark, stale + 1)
        if stale >= PATIENCE or stop.is_set():
            break
        posterior = np.exp(joint - np.logaddexp.reduce(joint, axis=1, keepdims=True))
        mass = rows.weights[:, None] * posterior
        fits = [_stepped(each, rows, own, n_jobs) for each, own in zip(fits, mass.T, strict=True)]
    return [
        replace(part, mixture=Mixture(part.mixture.model.whole(), part.mixture.log_prior))
        for part in kept
    ]


def can_refit(part: Part) -> bool:
    """Whether EM can refit the components of a part: they share nothing, and are no factors."""
    model = part.mixture.model
    separate = int(model.units()[-1]) + 1 == model.n_classes
    return separate and not part.spec.compact and em_family(part.spec.name) is not None


def _evidence(
    part: Part, rows: Examples, held: Examples, n_jobs: int | None
) -> tuple[FloatArray, FloatArray]:
    """Return the log-likelihood of each row, and of each held-out row, under a part."""
    model, log_prior = part.mixture.model, part.mixture.log_prior
    fitted = model.log_likelihoods(log_prior, rows, n_jobs)
    return fitted, fitted if held is rows else model.log_likelihoods(log_prior, held, n_jobs)


def _begun(part: Part, rows: Examples, named: NamedBlocks, n_jobs: int | None) -> _Fitted:
    spec = em_family(part.spec.name)
    if spec is None or not can_refit(part):
        return _Fitted(part, None)
    model = part.mixture.model
    problem = Problem(
        model.n_classes,
        list(model.learned_partitions),
        examples=rows,
        pooling=POOLING,
        shrinkage=0.0 if spec.shrinkage is None else SHRINKAGE,
        open_ended=True,
    )
    if named.blocks and model.reads(named.blocks):
        spec = with_statistics(spec)
        problem = replace(problem, statistic_blocks=tuple(named.blocks), others=named.others)
    family: Any = spec.family(problem)
    data = InMemory(rows, n_jobs=n_jobs)
    return _Fitted(replace(part, mixture=family.resume(data, part.mixture)), family)


def _stepped(each: _Fitted, rows: Examples, mass: FloatArray, n_jobs: int | None) -> _Fitted:
    """Return a part after a step with its share of the rows."""
    part, family = each.part, each.family
    share = float(mass.sum() / rows.total)
    if family is None or share <= NO_WEIGHT:
        return _Fitted(replace(part, share=share), family)
    data = InMemory(replace(rows, weights=mass), n_jobs=n_jobs)
    sums: Any = part.mixture.model.expect(data, part.mixture.log_prior)
    model = family.following(data, part.mixture.model, sums, 0)[0]
    mixture = Mixture(model, family.log_shares(sums.totals))
    return _Fitted(replace(part, mixture=mixture, share=share), family)
