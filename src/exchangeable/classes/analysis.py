"""A complete latent class analysis: from a table to everything that a paper reports."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import as_generator, check_sample_weight
from exchangeable.classes.assignments import Classification, classification
from exchangeable.classes.regression.distal import Outcomes, outcomes
from exchangeable.classes.regression.three_step import Effects, covariate_effects
from exchangeable.classes.selection import NAMES, Selection
from exchangeable.classes.uncertainty.errors import StandardErrors, standard_errors
from exchangeable.runtime.interrupts import InterruptedAnalysis, check_interrupt, interrupts


@dataclass(frozen=True)
class Analysis:
    """The result of `analyse`.

    Attributes
    ----------
    selection : Selection
        Numbers of classes compared; its ``best`` is the chosen model.
    errors : StandardErrors
        Profiles of the chosen model's classes, with standard errors.
    classification : Classification
        How certain the classes of rows are.
    effects : Effects or None
        Covariates of class membership.
    outcomes : Outcomes or None
        Distal outcomes.
    n_rows : int
        Number of rows.
    methods : str
        A paragraph that describes the methods.
    """

    selection: Selection
    errors: StandardErrors
    classification: Classification
    effects: Effects | None
    outcomes: Outcomes | None
    n_rows: int
    methods: str

    @property
    def model(self) -> Any:
        """The chosen model, fitted."""
        return self.selection.best


def analyse(
    kind: type[Any],
    X: Any,
    *,
    n_components: Sequence[int] = range(1, 9),
    criterion: str | None = None,
    covariates: Any = None,
    outcome: Any = None,
    sample_weight: npt.ArrayLike | None = None,
    strata: npt.ArrayLike | None = None,
    clusters: npt.ArrayLike | None = None,
    bootstrap: int = 0,
    n_draws: int = 200,
    **parameters: Any,
) -> Analysis:
    """Choose the number of classes, and analyse the chosen model.

    Parameters
    ----------
    kind : type
        ``ExchangeableMixture``.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Answers.
    n_components : sequence of int
        Numbers of classes to try.
    criterion : {"bic", "aic", "abic", "icl", "blrt"}, optional
        The criterion, BIC by default.
    covariates, outcome : tables or arrays, optional
        As in `covariate_effects` and `outcomes`.
    sample_weight : array-like of shape (n_samples,), optional
        Sampling weights, which are scaled to sum to the number of rows.
    strata, clusters : array-like of shape (n_samples,), optional
        The sampling design, as in `standard_errors`; it affects all standard errors.
    bootstrap : int, default=0
        Number of draws of each bootstrap likelihood-ratio test.
    n_draws : int, default=200
        Number of draws of the bootstrap of standard errors.
    **parameters
        Parameters of the mixtures.

    Raises
    ------
    InterruptedAnalysis
        If it is interrupted from the keyboard (Ctrl-C) after a model was found; the exception holds
        the model.

    Examples
    --------
    >>> import numpy as np
    >>> from exchangeable import ExchangeableMixture
    >>> from exchangeable.classes import analyse
    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((300, 6)) < np.where(rng.random((300, 1)) < 0.4, 0.2, 0.8)
    >>> options = {"blocks": "independent", "n_init": 3, "random_state": 0}
    >>> found = analyse(ExchangeableMixture, X, n_components=[1, 2, 3], n_draws=20, **options)
    >>> found.model.n_components
    2
    """
    rng = as_generator(parameters.get("random_state"))
    if sample_weight is not None:
        weight = np.asarray(sample_weight, dtype=np.float64)
        sample_weight = check_sample_weight(weight, weight.size) * (weight.size / weight.sum())
    design: dict[str, Any] = {
        "sample_weight": sample_weight,
        "strata": strata,
        "clusters": clusters,
    }
    drawn = [name for name in ("strata", "clusters") if design[name] is not None]
    with interrupts():
        selection: Selection = kind.select(
            X,
            n_components=n_components,
            criterion=criterion,
            sample_weight=sample_weight,
            bootstrap=bootstrap,
            **parameters,
        )
        model = selection.best
        try:
            check_interrupt()
            errors = standard_errors(
                model,
                X,
                n_draws=n_draws,
                random_state=rng,
                n_jobs=parameters.get("n_jobs"),
                **design,
            )
            sure = classification(model, X, sample_weight=sample_weight, random_state=rng)
            effects = found = None
            if covariates is not None and model.weights_.size > 1:
                effects = covariate_effects(model, X, covariates, **design)
            if outcome is not None and model.weights_.size > 1:
                found = outcomes(model, X, outcome, **design)
            check_interrupt()
        except KeyboardInterrupt:
            raise InterruptedAnalysis(model) from None
    n_rows = len(sure.assigned)
    weighted = sample_weight is not None
    text = _methods(selection, errors, effects, found, n_rows, weighted, drawn)
    return Analysis(selection, errors, sure, effects, found, n_rows, text)


def _methods(
    selection: Selection,
    errors: StandardErrors,
    effects: Effects | None,
    found: Outcomes | None,
    n_rows: int,
    weighted: bool,
    drawn: Sequence[str] = (),
) -> str:
    """Return a paragraph that describes the methods."""
    tried = sorted({row.n_components for row in selection.table})
    model = selection.best
    kinds = list(dict.fromkeys(model.kinds_.values()))
    worded = " and ".join([*([", ".join(kinds[:-1])] if len(kinds) > 1 else []), kinds[-1]])
    number = f"{model.weights_.size} class{'es' if model.weights_.size > 1 else ''}"
    weights = " with sampling weights" if weighted else ""
    sentences = [
        f"Latent class models with {_listed(tried)} classes were fitted to {n_rows:,} rows{weights}"
        f" of {len(model.kinds_)} {worded} items by maximum likelihood (EM, "
        f"{model.n_init} random starts, Laplace smoothing {model.alpha:g}); missing answers were "
        "summed over.",
        f"The model with {number} was chosen by {NAMES[selection.criterion]}.",
    ]
    if selection.tests:
        draws = max(test.draws.size for test in selection.tests.values())
        sentences.append(
            "Each number of classes was tested against the next smaller one by a parametric "
            f"bootstrap likelihood-ratio test with {draws} draws."
        )
    sentences.append(
        f"Standard errors and {errors.profiles.level:.0%} intervals come from "
        f"{len(errors.size_draws)} bootstrap draws with classes matched by agreement (labels "
        f"switched in {errors.switched:.0%} of the draws, and undone)."
    )
    if drawn:
        within = " within strata" if "strata" in drawn else ""
        sentences.append(
            f"What was drawn{within} are {'clusters' if 'clusters' in drawn else 'respondents'}, "
            "with the rescaled weights of Rao and Wu (1988)."
        )
    if effects is not None:
        sentences.append(
            "Covariates of class membership were estimated in three steps with the maximum "
            "likelihood correction of Vermunt (2010), with robust standard errors."
        )
    if found is not None:
        sentences.append(
            "Distal outcomes were compared in three steps with the weights of Bolck, Croon and "
            "Hagenaars."
        )
    return " ".join(sentences)


def _listed(numbers: list[int]) -> str:
    if len(numbers) > 2 and numbers == list(range(numbers[0], numbers[-1] + 1)):
        return f"{numbers[0]} to {numbers[-1]}"
    return " and ".join(map(str, numbers)) if len(numbers) < 3 else ", ".join(map(str, numbers))
