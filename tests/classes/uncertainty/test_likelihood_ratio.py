"""The bootstrap likelihood-ratio test rejects what is wrong, and little else."""

import numpy as np
import pandas as pd
import pytest

from exchangeable import ExchangeableMixture
from exchangeable.classes import likelihood_ratio_test
from made_classes import answers

OPTIONS = {"blocks": "independent", "n_init": 3, "random_state": 0, "tol": 1e-7}


def mixtures(X, numbers, **options):
    return [ExchangeableMixture(k, **(OPTIONS | options)).fit(X) for k in numbers]


def test_too_few_classes_are_rejected_and_enough_are_not():
    X, _ = answers(400, holes=0.1, seed=1)
    one, two, three = mixtures(X, (1, 2, 3))
    rejected = likelihood_ratio_test(one, two, X, n_draws=39, random_state=0)
    assert rejected.p_value == pytest.approx(1 / 40)
    assert rejected.statistic > 10 * rejected.draws.max()
    kept = likelihood_ratio_test(two, three, X, n_draws=39, random_state=0)
    assert kept.p_value > 0.1
    assert "3 against 2 classes" in str(kept)


def test_p_values_are_uniform_where_the_smaller_model_is_true():
    p_values = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = (rng.random((100, 4)) < [0.2, 0.5, 0.6, 0.8]).astype(float)
        one, two = mixtures(X, (1, 2), alpha=1e-6, tol=1e-5)
        p_values.append(likelihood_ratio_test(one, two, X, n_draws=9, random_state=seed).p_value)
    assert 0.3 < np.mean(p_values) < 0.7
    assert np.mean(np.array(p_values) <= 0.1) <= 0.3


def test_threads_do_not_change_the_result():
    X, _ = answers(200, seed=2)
    one, two = mixtures(X, (1, 2))
    options = {"n_draws": 6, "random_state": 3}
    first = likelihood_ratio_test(one, two, X, n_jobs=1, **options)
    second = likelihood_ratio_test(one, two, X, n_jobs=2, **options)
    np.testing.assert_array_equal(first.draws, second.draws)


def test_columns_of_other_kinds():
    X, kind = answers(200, seed=2)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(X, columns=list("abcde"))
    frame["level"] = pd.Categorical(
        np.array(["low", "mid", "high"])[kind + rng.integers(0, 2, 200)]
    )
    frame["hours"] = rng.normal(3 * kind, 1)
    one, two = mixtures(frame, (1, 2), blocks="auto")
    assert likelihood_ratio_test(one, two, frame, n_draws=9, random_state=0).p_value == 0.1


def test_what_makes_no_sense_is_refused():
    X, _ = answers(100)
    one, two = mixtures(X, (1, 2))
    with pytest.raises(ValueError, match="with fewer components first"):
        likelihood_ratio_test(two, one, X)
    average = ExchangeableMixture(1, combine="average", n_init=2, blocks="independent").fit(X)
    with pytest.raises(ValueError, match="combine='average'"):
        likelihood_ratio_test(average, two, X)
    with pytest.raises(ValueError, match="restarts"):
        likelihood_ratio_test(one, two, X, restarts=0)
