"""The same numbers as R's eRm, with missing answers too."""

import json
import shutil
import subprocess
import warnings

import numpy as np
import pytest

from erm_record import RECORD, SPLIT, ask_erm
from exchangeable import ExchangeableMixture, RaschModel
from exchangeable.rasch import item_parameters

CASES = json.loads(RECORD.read_text())


@pytest.fixture(scope="module", params=list(CASES), ids=lambda name: name.replace(" ", "-"))
def fitted(request):
    said = {name: np.array(values, dtype=float) for name, values in CASES[request.param].items()}
    X = said.pop("answers")
    return RaschModel().fit(X), X, said


def betas(parameters):
    """Return easiness of every step as eRm writes it, summing to zero, and its covariances."""
    steps = parameters.thresholds.size
    items = np.repeat(np.arange(parameters.highest.size), parameters.highest)
    answers = np.concatenate([np.arange(1, top + 1) for top in parameters.highest])
    sums = -1.0 * (items[:, None] == items) * (answers[:, None] >= answers)
    centred = (np.eye(steps) - np.outer(answers, np.ones(steps)) / answers.sum()) @ sums
    return centred @ parameters.thresholds[:, 0], centred @ parameters.covariance @ centred.T


def halves(X):
    return np.resize(SPLIT, len(X))


def test_items_and_their_errors(fitted):
    model, _, said = fitted
    own, covariance = betas(model.item_parameters_)
    np.testing.assert_allclose(own, said["easiness"], atol=1e-4)
    np.testing.assert_allclose(np.sqrt(np.diag(covariance)), said["standard_errors"], atol=1e-4)
    assert model.log_likelihood_ == pytest.approx(said["log_likelihood"][0], abs=1e-4)


def test_andersens_test(fitted):
    model, X, said = fitted
    found = model.andersen(X, halves(X))
    numbers = [found.statistic, found.degrees, found.p_value]
    np.testing.assert_allclose(numbers, said["given_split"], atol=2e-4)


def test_andersens_test_by_scores(fitted):
    model, X, said = fitted
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some items have one answer in some half
        found = model.andersen(X)
    if found.degrees != said["median_split"][1]:
        pytest.skip("eRm leaves out other items")
    assert found.statistic == pytest.approx(said["median_split"][0], abs=2e-4)


def test_walds_tests_of_items(fitted):
    model, X, said = fitted
    if (model.item_parameters_.highest > 1).any():
        return  # eRm's are of steps, on another scale
    found = model.andersen(X, halves(X)).differences()
    np.testing.assert_allclose(-found.z, said["wald"], atol=2e-3)


def test_abilities_by_maximum_likelihood(fitted):
    model, X, said = fitted
    found = model.abilities(X, method="ml")
    known = ~np.isnan(said["abilities"])
    own, _ = betas(model.item_parameters_)
    shift = own[0] + model.item_parameters_.thresholds[0, 0]  # eRm centres steps otherwise
    np.testing.assert_allclose(found.estimate[known] - shift, said["abilities"][known], atol=1e-4)
    assert np.isnan(found.estimate[~known]).all()


def test_items_of_a_mixture_of_one_component():
    said = CASES["Rasch"]
    X = np.array(said["answers"])
    model = ExchangeableMixture(1, family="urns", alpha=1e-9, tol=1e-13, max_iter=2000).fit(X)
    np.testing.assert_allclose(-model.item_parameters_.locations[:, 0], said["easiness"], atol=1e-4)
    found = item_parameters(model, X)
    np.testing.assert_allclose(found.standard_errors[:, 0], said["standard_errors"], atol=1e-4)


def test_the_record_is_what_erm_says():
    if shutil.which("Rscript") is None:
        pytest.skip("R is not installed")
    if subprocess.run(["Rscript", "-e", "library(eRm)"], capture_output=True).returncode:
        pytest.skip("R has no package eRm")
    said = CASES["Rasch, booklets"]
    found = ask_erm("RM", np.array(said["answers"], dtype=float))
    np.testing.assert_allclose(found["easiness"], said["easiness"], atol=1e-5)
