"""`Hybrid`: the settings of hybrid training."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.base import BaseEstimator

from exchangeable.arrays import check_count, check_flag, check_number
from exchangeable.fitting.hybrid.scores import SCORES

FAMILY = "family"
PENALTIES = (32.0, 8.0, 2.0, 0.5)
"""The default penalties, strong ones first."""


class Hybrid(BaseEstimator):
    """Settings for training a classifier on its labels while keeping a distribution of the rows.

    For the parameter `training` of `ExchangeableClassifier`, ``"hybrid"`` is short for ``Hybrid()``
    and ``"discriminative"`` for ``Hybrid(scores=())``. The settings can be searched, as in
    ``GridSearchCV(model, {"training__penalty": [1.0, 10.0]})``.

    Parameters
    ----------
    scores : sequence of {"multinomial", "complement", "family"}
        Generative scores used as additional features: log-shares of the variables among the ones of
        a class, and of all other classes, as in `MultinomialNB` and `ComplementNB`; and the score
        of the classifier's own `family`.
    penalty : float or sequence of float, optional
        λ of λ/2·Σ weight² (1/C of `LogisticRegression`), or several to combine; by default 32, 8, 2
        and 0.5.
    scales : sequence of float, optional
        The scale of each score; by default chosen by cross-validation.
    n_folds : int, default=5
        Number of folds of the cross-validation, and for the scores of rows that a model has not
        seen.
    n_components : int, default=1
        Number of components per class. With several, a mixture per class is trained by gradient.
    warm_start : bool, default=False
        Whether to start from the weights of the previous fit.

    Examples
    --------
    >>> from exchangeable import ExchangeableClassifier, Hybrid
    >>> model = ExchangeableClassifier(training=Hybrid(penalty=1.0))
    >>> model.set_params(training__n_folds=3).training
    Hybrid(n_folds=3, penalty=1.0)
    """

    def __init__(
        self,
        scores: Sequence[str] = ("multinomial", "complement", "family"),
        *,
        penalty: float | Sequence[float] | None = None,
        scales: Sequence[float] | None = None,
        n_folds: int = 5,
        n_components: int = 1,
        warm_start: bool = False,
    ) -> None:
        self.scores = scores
        self.penalty = penalty
        self.scales = scales
        self.n_folds = n_folds
        self.n_components = n_components
        self.warm_start = warm_start


@dataclass(frozen=True)
class Checked:
    """The same settings, validated.

    Attributes
    ----------
    names : tuple of str
        The linear scores.
    family : bool
        Whether to use the family's own score.
    penalties : tuple of float
        Penalties, the strongest first.
    scales : tuple of float, optional
        The scales of `names`, followed by that of the family's score.
    n_folds, n_components : int
        Number of folds, and of components per class.
    warm_start : bool
        Whether to start from the previous fit.
    """

    names: tuple[str, ...]
    family: bool
    penalties: tuple[float, ...]
    scales: tuple[float, ...] | None
    n_folds: int
    n_components: int
    warm_start: bool


def checked(settings: Hybrid) -> Checked:
    """Validate the settings, and fill in defaults."""
    known = (*SCORES, FAMILY)
    names = settings.scores
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise TypeError(f"Hybrid(scores={names!r}) must be a list of names, such as {known}")
    names = tuple(names)
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(
            f"Hybrid(scores=...) holds {unknown[0]!r}; expected some of {', '.join(known)}"
        )
    if len(set(names)) < len(names):
        raise ValueError(f"Hybrid(scores={list(names)}) names a score twice")
    given = PENALTIES if settings.penalty is None else settings.penalty
    penalties = [check_number(value, "penalty") for value in np.atleast_1d(np.asarray(given))]
    if not penalties or not all(0 < value < np.inf for value in penalties):
        raise ValueError(
            f"penalty must be positive and finite, got {given!r}: without one, weights of "
            "separable classes would grow without end"
        )
    ordered = tuple(name for name in SCORES if name in names)
    scales = None
    if settings.scales is not None:
        values = np.asarray(settings.scales, dtype=np.float64)
        if values.shape != (len(names),) or not np.isfinite(values).all():
            raise ValueError(
                f"scales={settings.scales!r} must hold a finite number for each of the "
                f"{len(names)} scores {list(names)}"
            )
        by_name = dict(zip(names, values.tolist(), strict=True))
        scales = tuple(by_name[name] for name in (*ordered, FAMILY) if name in by_name)
    return Checked(
        ordered,
        FAMILY in names,
        tuple(sorted(set(penalties), reverse=True)),
        scales,
        check_count(settings.n_folds, "n_folds", minimum=2),
        check_count(settings.n_components, "n_components"),
        check_flag(settings.warm_start, "warm_start"),
    )
