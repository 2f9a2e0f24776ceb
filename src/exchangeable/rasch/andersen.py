"""Andersen's likelihood-ratio test of equal item parameters in all groups of persons."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats

from exchangeable.rasch.answers import Answers
from exchangeable.rasch.conditional import ConditionalFit, fit_conditional
from exchangeable.rasch.differences import ItemDifferences, compare
from exchangeable.rasch.existence import listed
from exchangeable.rasch.parameters import ItemParameters

SPLITS = ("median", "mean")


@dataclass(frozen=True)
class AndersenTest:
    """The result of the test, and the fits it is based on.

    Attributes
    ----------
    statistic : float
        Twice the gain in conditional log-likelihood if each group has its own item parameters.
    degrees : int
        Degrees of freedom of its chi-squared distribution under the model.
    p_value : float
        The p-value of the statistic under the model.
    groups : tuple
        The groups, in the order of `parameters`.
    parameters : tuple of ItemParameters
        The item parameters in each group.
    items : tuple of str
        The items that were compared: those with estimates in all groups.
    """

    statistic: float
    degrees: int
    p_value: float
    groups: tuple[Any, ...]
    parameters: tuple[ItemParameters, ...]
    items: tuple[str, ...]

    def differences(self, first: Any = None, second: Any = None) -> ItemDifferences:
        """Return the differences of items between two groups, with Wald's tests of DIF.

        Parameters
        ----------
        first, second : optional
            The groups; by default the first two.
        """
        chosen = [self.groups[0] if first is None else first]
        chosen.append(self.groups[1] if second is None else second)
        for group in chosen:
            if group not in self.groups:
                raise ValueError(f"group {group!r} is unknown; expected one of {self.groups}")
        one, other = (self.parameters[self.groups.index(group)] for group in chosen)
        return compare(one, other)

    def __str__(self) -> str:
        p = "p < 0.001" if self.p_value < 0.001 else f"p = {self.p_value:.3f}"
        return (
            f"Andersen's test of {len(self.items)} items in {len(self.groups)} groups: "
            f"LR = {self.statistic:.3f}, df = {self.degrees}, {p}"
        )


def andersen_test(
    answers: Answers, split: Any = "median", n_jobs: int | None = None
) -> AndersenTest:
    """Test whether items have the same parameters in groups of persons.

    Parameters
    ----------
    answers : Answers
        The answers.
    split : {"median", "mean"} or array-like of shape (n_persons,)
        The groups: low and high scores, split at the median or mean score of those who answered the
        same items, or a group for each person.
    n_jobs : int, optional
        Number of threads.
    """
    labels = _groups(answers, split)
    groups = np.unique(labels)
    if groups.size < 2:
        raise ValueError(
            f"all persons are in group {groups[0]}; the test needs at least two groups. Where "
            "few persons answered the same items, split='ability' makes two"
        )
    parts = [answers.only(persons=labels == group) for group in groups]
    used = np.all([_varying(part) for part in parts], axis=0)
    if used.sum() < 2:
        raise ValueError(
            "fewer than two items have different answers in every group; use fewer groups, or "
            "collect more answers"
        )
    if not used.all():
        names = listed([answers.names[j] for j in np.flatnonzero(~used)])
        warnings.warn(
            f"{names} left out of the test: in some group all persons with information gave the "
            "same answer",
            stacklevel=3,
        )
    whole = _fit(answers.only(items=used), "all persons", n_jobs)
    fits = [_fit(part.only(items=used), g, n_jobs) for part, g in zip(parts, groups, strict=True)]
    statistic = 2.0 * (sum(fit.log_likelihood for fit in fits) - whole.log_likelihood)
    degrees = sum(fit.n_parameters for fit in fits) - whole.n_parameters
    return AndersenTest(
        statistic,
        degrees,
        float(stats.chi2.sf(statistic, degrees)),
        tuple(groups.tolist()),
        tuple(fit.parameters for fit in fits),
        tuple(np.array(answers.names, dtype=object)[used]),
    )


def _fit(answers: Answers, group: Any, n_jobs: int | None) -> ConditionalFit:
    try:
        return fit_conditional(answers, n_jobs)
    except ValueError as error:
        raise ValueError(f"in group {group}: {error}") from None


def _varying(answers: Answers) -> npt.NDArray[np.bool_]:
    """Return which items have all their answers among informative persons."""
    inside = answers.only(persons=answers.informative)
    given = [(inside.values == v).any(axis=0) for v in range(int(answers.highest.max()) + 1)]
    return np.asarray(np.all([g | (answers.highest < v) for v, g in enumerate(given)], axis=0))


def _groups(answers: Answers, split: Any) -> npt.NDArray[Any]:
    """Return the group of each person."""
    if isinstance(split, str):
        if split not in SPLITS:
            raise ValueError(
                f"split={split!r} is unknown; expected 'median', 'mean', 'ability', or a group "
                "per person"
            )
        return np.where(_is_high(answers, split), "high", "low")
    labels = np.asarray(split)
    if labels.shape != (len(answers.values),):
        raise ValueError(
            f"split has the shape {labels.shape}; expected one group for each of "
            f"{len(answers.values)} persons"
        )
    if labels.dtype.kind == "f" and np.isnan(labels).any():
        raise ValueError("split holds NaN; give every person a group, or leave persons out")
    return labels


def _is_high(answers: Answers, split: str) -> npt.NDArray[np.bool_]:
    """Return who has a higher score than is typical among those who answered the same items."""
    scores = answers.scores
    lines = np.packbits(answers.known, axis=1)
    _, pattern = np.unique(lines, axis=0, return_inverse=True)
    pattern = pattern.ravel()
    high = np.zeros(scores.size, dtype=bool)
    order = np.argsort(pattern, kind="stable")
    for members in np.split(order, np.cumsum(np.bincount(pattern))[:-1]):
        own = scores[members]
        high[members] = own > np.median(own) if split == "median" else own >= own.mean()
    return high
