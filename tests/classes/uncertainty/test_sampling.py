"""Standard errors of samples with strata and clusters."""

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from exchangeable import ExchangeableMixture
from exchangeable.classes import covariate_effects, outcomes, standard_errors
from exchangeable.classes.uncertainty.sampling import Sampling
from exchangeable.cli import main
from made_classes import PRECISE, answers

STRATA = np.repeat([0, 1], [30, 50])
CLUSTERS = np.concatenate([np.arange(30) % 4, np.arange(50) % 7])


def test_variances_are_those_of_cluster_sums_within_strata():
    values = np.random.default_rng(0).normal(size=(80, 3))
    found = Sampling.of(STRATA, CLUSTERS, 80)
    expected = np.zeros((3, 3))
    for h, n in ((0, 4), (1, 7)):
        sums = [values[(h == STRATA) & (c == CLUSTERS)].sum(axis=0) for c in range(n)]
        expected += n * np.cov(np.transpose(sums))
    np.testing.assert_allclose(found.squares(values), expected)


def test_draws_of_clusters_have_these_variances():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(80, 2))
    found = Sampling.of(STRATA, CLUSTERS, 80)
    multipliers = np.stack([found.multipliers(rng) for _ in range(20_000)])
    assert np.abs(multipliers.mean(axis=0) - 1).max() < 0.04
    together = found.unit[:, None] == found.unit
    first = np.argmax(together, axis=1)
    assert (multipliers == multipliers[:, first]).all()
    drawn = np.cov((multipliers @ values).T)
    expected = found.squares(values)
    assert np.abs(drawn - expected).max() < 0.05 * expected.max()


@pytest.mark.parametrize("method", ["information", "bootstrap"])
def test_a_respondent_who_is_there_twice_tells_nothing_new(two_classes, method):
    model, X = two_classes
    twice = np.repeat(X, 2, axis=0)
    options = {"method": method, "n_draws": 150, "restarts": 0, "random_state": 0}
    once = standard_errors(model, X, **options).profiles
    together = standard_errors(
        model, twice, clusters=np.repeat(np.arange(len(X)), 2), **options
    ).profiles
    apart = standard_errors(model, twice, **options).profiles
    tolerance = 0.002 if method == "information" else 0.3
    np.testing.assert_allclose(together.errors, once.errors, rtol=tolerance)
    np.testing.assert_allclose(together.size_errors, once.size_errors, rtol=tolerance)
    assert (apart.size_errors < 0.85 * once.size_errors).all()


def test_strata_that_explain_the_classes_make_sizes_more_certain(two_classes):
    model, X = two_classes
    plain = standard_errors(model, X, method="information").profiles
    strata = model.predict(X)
    split = standard_errors(model, X, method="information", strata=strata).profiles
    assert (split.size_errors < 0.7 * plain.size_errors).all()


@pytest.mark.parametrize("method", ["ml", "bch", "one-step"])
def test_covariates_of_respondents_who_are_there_twice(method):
    X, kind = answers(400, seed=2)
    rng = np.random.default_rng(0)
    z = rng.normal(kind, 1.0)
    given = {"covariates": z} if method == "one-step" else {}
    model = ExchangeableMixture(2, random_state=0, **PRECISE).fit(X, **given)
    once = covariate_effects(model, X, z, method=method, sample_weight=np.ones(400))
    people = np.repeat(np.arange(400), 2)
    twice = covariate_effects(model, X[people], z[people], method=method, clusters=people)
    np.testing.assert_allclose(twice.coefficients, once.coefficients, atol=1e-6)
    np.testing.assert_allclose(twice.errors, once.errors, rtol=0.002)


@pytest.mark.parametrize("method", ["ml", "bch"])
@pytest.mark.parametrize("graded", [False, True])
def test_outcomes_of_respondents_who_are_there_twice(two_classes, method, graded):
    model, X = two_classes
    rng = np.random.default_rng(0)
    number = rng.normal(model.predict(X), 1.0)
    number[::7] = np.nan
    people = np.repeat(np.arange(len(X)), 2)
    frame = pd.DataFrame({"y": number})
    if graded:
        frame["y"] = pd.cut(frame["y"], [-np.inf, 0, 1, np.inf], labels=["low", "middle", "high"])
    once = outcomes(model, X, frame, method=method)
    clusters = outcomes(model, X[people], frame.iloc[people], method=method, clusters=people)
    ten = outcomes(model, X, frame, method=method, sample_weight=np.full(len(X), 10.0))
    for one, two, weighted in zip(once.outcomes, clusters.outcomes, ten.outcomes, strict=True):
        np.testing.assert_allclose(two.estimates, one.estimates, atol=1e-6)
        np.testing.assert_allclose(two.errors, one.errors, rtol=0.002)
        np.testing.assert_allclose(weighted.errors, one.errors, rtol=1e-6)


def test_designs_without_meaning_are_refused(two_classes):
    model, X = two_classes
    n = len(X)
    strata, clusters = ["a"] * (n - 3) + ["b"] * 3, [*range(n - 3), 1, 1, 1]
    with pytest.raises(ValueError, match=r"stratum 'b' has only one cluster"):
        standard_errors(model, X, strata=strata, clusters=clusters)
    with pytest.raises(ValueError, match="there is only one cluster"):
        standard_errors(model, X, clusters=np.zeros(n))
    with pytest.raises(ValueError, match="clusters is empty in row 2"):
        standard_errors(model, X, clusters=[1.0, 2.0, np.nan] + [3.0] * (n - 3))
    with pytest.raises(ValueError, match=r"strata has the shape \(3,\)"):
        standard_errors(model, X, strata=[1, 2, 3])
    with pytest.raises(ValueError, match="weighting='frequency'"):
        standard_errors(model, X, strata=[1, 2] * (n // 2), weighting="frequency")
    with pytest.raises(ValueError, match="replicate weights know"):
        standard_errors(
            model, X, strata=[1, 2] * (n // 2), method="replicates", replicate_weights=[[1, 2]] * n
        )


def test_the_command_takes_strata_and_clusters(tmp_path):
    X, _ = answers(200, seed=1)
    frame = pd.DataFrame(X.astype(int), columns=list("abcde"))
    frame["region"], frame["school"] = np.arange(200) % 2, np.arange(200) // 10
    frame.to_csv(tmp_path / "survey.csv", index=False)
    given = ["classes", str(tmp_path / "survey.csv"), "--components", "2", "--draws", "10"]
    page = tmp_path / "page.html"
    design = ["--strata", "region", "--clusters", "school", "--seed", "0"]
    done = CliRunner().invoke(main, [*given, *design, "--report", str(page)])
    assert done.exit_code == 0, done.output
    assert "What was drawn within strata are clusters" in page.read_text()
    assert "school" not in done.stdout
    done = CliRunner().invoke(main, [*given, "--strata", "county"])
    assert done.exit_code == 1
    assert "no column 'county'" in done.output
