"""Sums over answers given the score are those of all answers with that score, one by one."""

import itertools

import numpy as np
import pytest

from exchangeable import ExchangeableMixture
from exchangeable.data.columns.schema import typed_rows
from exchangeable.families import REGISTRY
from exchangeable.families.items import Answered, answers_of

PATTERNS = np.array([[1, 1, 1, 1, 1], [1, 1, 0, 1, 1], [0, 1, 1, 0, 0]], dtype=bool)
WEIGHTS = np.array([2.0, 1.0, 3.0, 0.5, 1.0, 2.0])
BINARY = np.ones(5, dtype=np.int64)
GRADED = np.array([1, 2, 3, 1, 2])
rng = np.random.default_rng(0)
CASES = [
    pytest.param(spec, highest, credits, id=f"{spec.name}, {name}")
    for spec in REGISTRY.values()
    if spec.conditional is not None
    for name, highest, credits in [
        ("binary", BINARY, 2 * rng.normal(size=5)),
        ("equal weights", BINARY, np.array([1.0, 0.0, 1.0, 0.0, 0.0])),
        ("large weights", BINARY, 300 + 3 * rng.normal(size=5)),
        ("graded", GRADED, rng.normal(size=9)),
    ]
    if name != "graded" or "ordinal" in spec.kinds
]


def enumerated(highest, log_credits, answered):
    """Return the sums by going through all answers."""
    begins = np.concatenate([[0], np.cumsum(highest)])
    log_norm, expected = 0.0, np.zeros(log_credits.size)
    information = np.zeros((log_credits.size, log_credits.size))
    for p, pattern in enumerate(answered.patterns):
        items = np.flatnonzero(pattern)
        for record in range(answered.begins[p], answered.begins[p + 1]):
            lines = []
            for x in itertools.product(*[range(highest[j] + 1) for j in items]):
                if sum(x) == answered.scores[record]:
                    line = np.zeros(log_credits.size)
                    line[[begins[j] + v - 1 for j, v in zip(items, x, strict=True) if v]] = 1.0
                    lines.append(line)
            steps = np.array(lines)
            logs = steps @ log_credits
            shares = np.exp(logs - np.logaddexp.reduce(logs))
            mean, weight = shares @ steps, answered.weights[record]
            log_norm += weight * np.logaddexp.reduce(logs)
            expected += weight * mean
            information += weight * ((steps * shares[:, None]).T @ steps - np.outer(mean, mean))
    return log_norm, expected, information


@pytest.mark.parametrize(("spec", "highest", "log_credits"), CASES)
def test_sums_are_those_of_all_answers(spec, highest, log_credits):
    scores = np.array([1, 3, highest.sum() - 1, 1, 3, 1])
    answered = Answered(PATTERNS, np.array([0, 3, 5, 6]), scores, WEIGHTS)
    found = spec.conditional(highest, log_credits, answered, 1)
    for own, wanted in zip(found, enumerated(highest, log_credits, answered), strict=True):
        np.testing.assert_allclose(own, wanted, rtol=1e-9, atol=1e-9)


def test_weights_that_are_nearly_equal():
    """Differences of chances would be rounding errors; what is shared out instead is near."""
    conditional = REGISTRY["urns"].conditional
    answered = Answered(PATTERNS, np.array([0, 3, 5, 6]), np.array([1, 3, 4, 1, 3, 1]), WEIGHTS)
    credits = np.array([0.0, 1e-8, 1.0, 1.0 + 3e-6, -1.0])
    found = conditional(BINARY, credits, answered, 1)
    wanted = enumerated(BINARY, credits, answered)
    np.testing.assert_allclose(found.information, wanted[2], atol=1e-5)
    np.testing.assert_allclose(found.expected, wanted[1], rtol=1e-12)


def test_threads_do_not_change_the_sums():
    conditional = REGISTRY["urns"].conditional
    patterns = np.unique(rng.random((3000, 14)) < 0.8, axis=0)
    patterns = patterns[patterns.sum(axis=1) > 1]
    n = len(patterns)
    answered = Answered(patterns, np.arange(n + 1), np.ones(n, dtype=np.int64), np.ones(n))
    credits = rng.normal(size=14)
    one, two = (conditional(np.ones(14, dtype=np.int64), credits, answered, k) for k in (1, 2))
    assert one.log_norm == two.log_norm
    np.testing.assert_array_equal(one.information, two.information)


@pytest.mark.parametrize("kinds", ["binary", "ordinal"])
def test_item_scale_says_what_rows_score(kinds):
    """P(x) = q(t)·Π ε / F(t), F summed over all rows with that total."""
    X = rng.integers(0, 2 if kinds == "binary" else 3, size=(200, 4))
    options = {"family": "urns"} if kinds == "binary" else {"kinds": "ordinal", "blocks": "full"}
    model = ExchangeableMixture(2, random_state=0, tol=10.0, **options).fit(X)
    scale = model._model.item_scale()
    top = int(scale.highest[0])
    states = np.array(list(itertools.product(range(top + 1), repeat=4)))
    observed = model._observed(states)
    values = typed_rows(observed).values
    steps = np.concatenate([values[:, [j]] == np.arange(1, top + 1) for j in range(4)], axis=1)
    totals = values.sum(axis=1).astype(int)
    assert answers_of(scale.highest).max() == top
    for y in range(2):
        logs = steps @ scale.log_credits[:, y]
        norm = np.array([np.logaddexp.reduce(logs[totals == t]) for t in range(totals.max() + 1)])
        expected = logs - norm[totals] + scale.log_totals[totals, y]
        np.testing.assert_allclose(model._model.score(observed)[:, y], expected, atol=1e-9)


def test_other_models_have_no_items():
    X = rng.integers(0, 2, size=(60, 4))
    model = ExchangeableMixture(2, random_state=0, tol=10.0).fit(X)
    assert model._model.item_scale() is None
    with pytest.raises(AttributeError, match="a total says all about a row"):
        _ = model.item_parameters_
    split = ExchangeableMixture(1, family="urns", blocks=[[0, 1], [2, 3]], tol=10.0).fit(X)
    assert split._model.item_scale() is None
