"""Everything that a model read from a file can be asked, and what is wrong with its answers."""

import itertools

import numpy as np
import pandas as pd
from scipy.special import logsumexp

from exchangeable import EVM, ExchangeableImputer, ExchangeableMixture, RaschModel
from exchangeable.baselines.base import TreeEstimator
from exchangeable.data.observed import Observed
from exchangeable.fitting.training import TrainingState
from exchangeable.structure.blocks import Blocks
from saved_models import HOLES, TABLE, TEXTS, X

CLOSE = 1e-5
"""How far the probabilities of all rows may be from adding up to one."""
MOST_ROWS = 20_000
"""The largest number of rows that are enumerated."""


def use(model):
    """Ask a model everything; return what is wrong with its answers, None if nothing is."""
    if isinstance(model, Blocks):
        return None
    if hasattr(model, "steps"):
        return _pipeline_answers(model)
    if not any(name.endswith("_") for name in vars(model)):
        return None  # it has lost all it had learned, as one that was never fitted
    if isinstance(model, ExchangeableImputer):
        return _imputed(model)
    if isinstance(model, RaschModel):
        return _rasch_answers(model)
    if isinstance(model, TreeEstimator):
        return _tree_answers(model)
    if getattr(model, "kinds_", None) and set(model.kinds_.values()) != {"binary"}:
        return _typed_answers(model)
    if isinstance(getattr(model, "binarize", None), int | float):
        model.binarize = 0.0  # another limit would make other rows of those below
    n = model.n_features_in_
    symbols = model.statistic.n_symbols if isinstance(model, EVM) else 2
    if symbols**n <= MOST_ROWS:
        wrong = _does_not_add_up(model, rows_of(symbols, n))
        if wrong:
            return wrong
    return _categorical_answers(model, n) if symbols > 2 else _answers(model, n)


def use_states(states):
    """Score all rows by every mixture of a checkpoint of fits to `X` or to `TABLE`.

    States of training hold none; the fit that goes on from them checks their arrays.
    """
    for state in states:
        if state is None or isinstance(state, TrainingState):
            continue
        for mixture in filter(None, (state.mixture, state.best, state.before)):
            wrong = use_mixture(mixture)
            if wrong:
                return wrong
    return None


def use_mixture(mixture):
    """Score rows of which nothing is known, and all rows where they are not too many."""
    if getattr(mixture.model, "types", None) is not None:
        return None  # what its columns are is in the fit that goes on, not in the file
    n = mixture.model.n_variables
    if 2**n > MOST_ROWS:
        return None
    total = logsumexp(mixture.model.score(Observed.from_symbols(rows_of(2, n))) + mixture.log_prior)
    return None if abs(total) < CLOSE else f"all rows together have log-probability {total}"


def rows_of(symbols, n):
    """Return all rows of n variables."""
    return np.array(list(itertools.product(range(symbols), repeat=n)))


def named(model, rows):
    """Return rows as a frame where the model has names."""
    if not hasattr(model, "feature_names_in_"):
        return rows
    return pd.DataFrame(rows, columns=model.feature_names_in_)


def _does_not_add_up(model, rows):
    total = logsumexp(model.score_samples(named(model, rows)))
    return None if abs(total) < CLOSE else f"all rows together have log-probability {total}"


def _pipeline_answers(model):
    if not hasattr(model, "predict_proba"):
        return None  # the last step may be said to do nothing
    texts = hasattr(model.steps[0][1], "vocabulary_")
    shares = model.predict_proba(TEXTS[:5] if texts else HOLES[:5])
    right = np.allclose(shares.sum(axis=1), 1, atol=CLOSE)
    return None if right else f"posteriors add up to {shares.sum(axis=1)}"


def _imputed(model):
    if not hasattr(model, "feature_names_in_"):
        filled = model.transform(HOLES)
        return None if np.isin(filled, (0, 1)).all() else "imputed neither 0 nor 1"
    rows = TABLE.iloc[:6].astype(object)
    rows.iloc[0], rows.iloc[1, ::2] = None, None
    filled = model.transform(rows)
    return "left holes" if pd.isna(np.asarray(filled, dtype=object)).any() else None


def _rasch_answers(model):
    if not hasattr(model, "item_parameters_"):
        return None  # one that is not fitted
    for y in range(model.weights_.size):
        if np.isinf(model.abilities(component=y).estimate).any():
            return "an ability is infinite"
        total = model.score_distribution_[:, y].sum()
        if not abs(total - 1) < CLOSE:
            return f"scores have probabilities that add up to {total}"
    if model.n_features_in_ == X.shape[1]:
        posterior = model.predict_proba(named(model, HOLES[:5]))
        if not np.allclose(posterior.sum(axis=1), 1, atol=CLOSE):
            return f"posteriors add up to {posterior.sum(axis=1)}"
    return None


def _tree_answers(model):
    model.binarize = 0.0  # another limit would make other rows of those below
    drawn = model.sample(5, random_state=0)
    if not np.isin(drawn, (0, 1)).all():
        return "drew neither 0 nor 1"
    n = model.n_features_in_
    return _does_not_add_up(model, rows_of(2, n)) if 2**n <= MOST_ROWS else None


def _categorical_answers(model, n):
    chances = model.marginals()
    if not np.allclose(chances.sum(axis=-1), 1, atol=CLOSE):
        return f"marginals {chances}"
    drawn = model.sample(5, random_state=0)
    if not np.isin(drawn, np.arange(model.statistic.n_symbols)).all():
        return "drew a symbol that there is not"
    completed = model.map()[0]
    return None if completed.shape == (n,) else f"completed {completed.shape}"


def _answers(model, n):
    holes = np.full((4, n), np.nan)
    holes[1, ::2], holes[2, 1::2], holes[3] = 1, 0, np.arange(n) % 2
    scores = model.score_samples(named(model, holes))
    if not abs(scores[0]) < CLOSE or np.isnan(scores).any():
        return f"rows with holes score {scores}"
    chances = model.marginals()
    if not ((chances >= -CLOSE) & (chances <= 1 + CLOSE)).all():
        return f"marginals {chances}"
    if not np.isin(model.most_probable().X, (0, 1)).all():
        return "completed by neither 0 nor 1"
    drawn = model.sample(5, random_state=0)
    if not np.isin(drawn if isinstance(model, EVM) else drawn[0], (0, 1)).all():
        return "drew neither 0 nor 1"
    if hasattr(model, "predict_proba") and not isinstance(model, EVM):
        posterior = model.predict_proba(named(model, holes))
        if not np.allclose(posterior.sum(axis=1), 1, atol=CLOSE):
            return f"posteriors add up to {posterior.sum(axis=1)}"
    if isinstance(model, ExchangeableMixture) and hasattr(model, "coefficients_"):
        return _covariate_answers(model, named(model, holes))
    return None


def _covariate_answers(model, rows):
    """Return what is wrong with classes of rows whose covariates are known."""
    names = [one["name"] for one in model.covariates_]
    covariates = TABLE[["age", "city"][: len(names)]].iloc[: len(rows)].set_axis(names, axis=1)
    posterior = model.predict_proba(rows, covariates=covariates)
    right = np.allclose(posterior.sum(axis=1), 1, atol=CLOSE)
    return None if right else f"posteriors add up to {posterior.sum(axis=1)}"


def _typed_answers(model):
    rows = TABLE.iloc[:6]
    names = list(getattr(model, "feature_names_in_", rows.columns[-model.n_features_in_ :]))
    if set(names) <= set(TABLE.columns):
        rows = rows[names]
    else:
        rows = rows.iloc[:, -model.n_features_in_ :].set_axis(names, axis=1)
    hidden = np.zeros(rows.shape, dtype=bool)
    hidden[0], hidden[1, ::2] = True, True
    rows = rows.astype(object).mask(hidden)
    scores = model.score_samples(rows)
    if not abs(scores[0]) < CLOSE or np.isnan(scores).any():
        return f"rows with holes score {scores}"
    posterior = model.predict_proba(rows)
    if not np.allclose(posterior.sum(axis=1), 1, atol=CLOSE):
        return f"posteriors add up to {posterior.sum(axis=1)}"
    for what, made in (
        ("imputing", model.impute(rows)),
        ("completing", model.most_probable(rows).X),
        ("drawing", model.sample(5, random_state=0)[0]),
    ):
        if pd.isna(np.asarray(made, dtype=object)).any():
            return f"left holes when {what}"
    if hasattr(model, "coefficients_"):
        return _covariate_answers(model, rows) or _levels_answers(model)
    return _levels_answers(model)


def _levels_answers(model):
    """Return what is wrong with the probabilities of levels."""
    for name, answer in model.marginals().items():
        chances = getattr(answer, "probabilities", None)
        if chances is not None and not abs(np.sum(list(chances)) - 1) < CLOSE:
            return f"levels of {name} have probabilities {chances}"
    return None
