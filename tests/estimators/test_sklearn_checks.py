"""scikit-learn's own checks, for every public estimator, every family and every kind of blocks."""

import inspect

import pytest
from sklearn.base import BaseEstimator
from sklearn.utils.estimator_checks import parametrize_with_checks

import exchangeable
from em_families import BY_EM
from exchangeable import Blocks
from exchangeable.families import REGISTRY

BLOCKS = ("evidence", "welch", "independent", "full", Blocks("evidence", conditions=(1, 2)))
NO_FIT = ("Blocks", "Chosen", "Generative", "Hybrid", "Kinds", "Neural")
"""Estimators in name only: they hold parameters, so that these can be searched."""
OF_ANSWERS = ("RaschModel",)
"""They take whole numbers that answer items; the rows of scikit-learn's checks are measurements."""


def every_estimator():
    """Find the public estimators that need no arguments, of every family and kind of blocks."""
    for name in exchangeable.__all__:
        thing = getattr(exchangeable, name)
        if not (inspect.isclass(thing) and issubclass(thing, BaseEstimator)) or name in (
            *NO_FIT,
            *OF_ANSWERS,
        ):
            continue
        parameters = inspect.signature(thing).parameters.values()
        if any(parameter.default is parameter.empty for parameter in parameters):
            continue
        if name == "ExchangeableImputer":
            for method in ("most_probable", "marginal", "draw"):
                model = exchangeable.ExchangeableMixture(2, random_state=0)
                yield thing(model, method=method, random_state=0)
            continue
        if name == "ExchangeableDensity":
            # One fit of two components: scikit-learn's check of sparse input expects two columns.
            yield thing(["urns"], max_components=2, time_budget=1e-6)
            continue
        few = {"n_components": 2} if hasattr(thing(), "n_components") else {}
        for blocks in BLOCKS:
            yield thing(blocks=blocks, **few)
        yield thing(pooling=2.0, **few)
        # Training deals rows out at random: repeated rows and weighted ones are fitted differently.
        for name in BY_EM:
            if few or "classes" not in REGISTRY[name].cannot:
                yield thing(family=name, **few)
        if not few:
            for training in ("hybrid", "chosen", exchangeable.Generative(2)):
                yield thing(training=training)


# On forty rows of noise the pooled prior outweighs the data, and a step of EM may lower what it
# watches: then it ends, and says so.
@pytest.mark.filterwarnings("ignore:numbers greater than binarize:UserWarning")
@pytest.mark.filterwarnings("ignore:EM ended after:sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(list(every_estimator()))
def test_scikit_learn_check(estimator, check):
    if check.func.__name__ == "check_classifier_data_not_an_array":
        pytest.skip("whole numbers are counts in a data frame, and on or off in an array")
    check(estimator)
