"""scikit-learn's own checks, for every public estimator and every structure."""

import inspect

from sklearn.base import BaseEstimator
from sklearn.utils.estimator_checks import parametrize_with_checks

import exchangeable

STRUCTURES = ("evidence", "welch", "independent", "full")


def every_estimator():
    """Find the public estimators that need no arguments, in every structure they offer."""
    for name in exchangeable.__all__:
        thing = getattr(exchangeable, name)
        if not (inspect.isclass(thing) and issubclass(thing, BaseEstimator)):
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
            yield thing(n_init=1, max_components=3)
            continue
        few = {"n_components": 2} if hasattr(thing(), "n_components") else {}
        for structure in STRUCTURES:
            yield thing(structure=structure, **few)
        yield thing(urn="weighted", **few)
        yield thing(urn="weighted", dependence="tree", **few)
        yield thing(structure="welch", dependence="tree", **few)
        if few:
            yield thing(dependence="hidden", **few)


@parametrize_with_checks(list(every_estimator()))
def test_scikit_learn_check(estimator, check):
    check(estimator)
