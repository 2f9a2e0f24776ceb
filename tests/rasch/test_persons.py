"""Abilities, curves and score distributions against their definitions."""

import itertools

import numpy as np
import pytest
from scipy import integrate, optimize, stats

from exchangeable.rasch.answers import read_answers, sort_answers
from exchangeable.rasch.curves import answer_probabilities, expected_answers, item_information
from exchangeable.rasch.parameters import to_credits
from exchangeable.rasch.persons import Population, estimate_abilities, fit_population
from exchangeable.rasch.scores import score_distribution
from rasch_data import draw_answers, with_holes

HIGHEST = np.array([1, 2, 3])
THRESHOLDS = np.array([0.3, -1.0, 0.5, -0.4, 0.1, 0.8])
CREDITS = to_credits(HIGHEST, THRESHOLDS)
KNOWN = np.array([[1, 1, 1], [1, 0, 1], [0, 1, 0], [1, 1, 1]], dtype=bool)
SCORES = np.array([2, 4, 2, 0])


def probabilities(ability):
    """Return the probability of each answer of each item, from the thresholds."""
    begins, lines = np.concatenate([[0], np.cumsum(HIGHEST)]), []
    for j in range(3):
        own = np.exp(
            np.concatenate([[0], np.cumsum(ability - THRESHOLDS[begins[j] : begins[j + 1]])])
        )
        lines.append(own / own.sum())
    return lines


def log_score(known, score, ability):
    """Return the log-probability of a score in the items answered."""
    total = np.ones(1)
    for line in itertools.compress(probabilities(ability), known):
        total = np.convolve(total, line)
    return np.log(total[score])


def test_curves():
    abilities = np.array([-2.0, 0.1, 3.0])
    found = answer_probabilities(HIGHEST, CREDITS, abilities)
    for i, ability in enumerate(abilities):
        for j, line in enumerate(probabilities(ability)):
            np.testing.assert_allclose(found[j][i], line, rtol=1e-12)
            values = np.arange(line.size)
            mean = line @ values
            assert expected_answers(HIGHEST, CREDITS, abilities)[i, j] == pytest.approx(mean)
            spread = line @ values**2 - mean**2
            assert item_information(HIGHEST, CREDITS, abilities)[i, j] == pytest.approx(spread)
    slope = (
        expected_answers(HIGHEST, CREDITS, 1e-5) - expected_answers(HIGHEST, CREDITS, -1e-5)
    ) / 2e-5
    np.testing.assert_allclose(item_information(HIGHEST, CREDITS, 0.0), slope, rtol=1e-8)


def test_weighted_likelihood():
    """Warm's estimate is where the likelihood times the root of the information is largest."""
    found = estimate_abilities(HIGHEST, CREDITS, KNOWN, SCORES, "wle")
    for line, known in enumerate(KNOWN):

        def cost(ability, known=known, score=SCORES[line]):
            information = item_information(HIGHEST, CREDITS, ability)[0] @ known
            return -log_score(known, score, ability) - 0.5 * np.log(information)

        best = optimize.minimize_scalar(
            cost, bounds=(-9, 9), method="bounded", options={"xatol": 1e-9}
        )
        assert found.estimate[line] == pytest.approx(best.x, abs=1e-5)
        information = item_information(HIGHEST, CREDITS, best.x)[0] @ known
        assert found.standard_error[line] == pytest.approx(information**-0.5, abs=1e-5)


def test_maximum_likelihood_is_not_given_for_extreme_scores():
    found = estimate_abilities(HIGHEST, CREDITS, KNOWN, SCORES, "ml")
    assert np.isnan(found.estimate).tolist() == [False, True, True, True]
    best = optimize.minimize_scalar(
        lambda a: -log_score(KNOWN[0], 2, a), bounds=(-9, 9), method="bounded"
    )
    assert found.estimate[0] == pytest.approx(best.x, abs=1e-4)


def test_expected_a_posteriori():
    population = Population(0.5, 1.3)
    found = estimate_abilities(HIGHEST, CREDITS, KNOWN, SCORES, "eap", population)
    for line, (known, score) in enumerate(zip(KNOWN, SCORES, strict=True)):

        def power(n, known=known, score=score):
            def density(a):
                return a**n * np.exp(log_score(known, score, a)) * stats.norm.pdf(a, *population)

            return integrate.quad(density, -8, 9, limit=200)[0]

        mean = power(1) / power(0)
        assert found.estimate[line] == pytest.approx(mean, abs=1e-6)
        spread = np.sqrt(power(2) / power(0) - mean**2)
        assert found.standard_error[line] == pytest.approx(spread, abs=1e-6)


def test_nobody_answered():
    nothing = np.zeros((1, 3), dtype=bool)
    for method in ("wle", "ml"):
        found = estimate_abilities(HIGHEST, CREDITS, nothing, np.zeros(1, dtype=np.int64), method)
        assert np.isnan(found.estimate).all()
    with pytest.raises(ValueError, match="method='map' is unknown"):
        estimate_abilities(HIGHEST, CREDITS, nothing, np.zeros(1, dtype=np.int64), "map")


@pytest.fixture(scope="module")
def answered():
    rng = np.random.default_rng(2)
    own = [THRESHOLDS[:1], THRESHOLDS[1:3], THRESHOLDS[3:]]
    X = with_holes(draw_answers(own, 0.5 + 1.3 * rng.normal(size=4000), rng), 0.2, rng)
    return sort_answers(read_answers(X))


def test_population(answered):
    found = fit_population(HIGHEST, CREDITS, answered)
    assert found.mean == pytest.approx(0.5, abs=0.1)
    assert found.deviation == pytest.approx(1.3, abs=0.1)

    def cost(parameters):
        nodes = np.linspace(-8, 9, 200)
        shares = stats.norm.pdf(nodes, parameters[0], parameters[1])
        total = 0.0
        for p, known in enumerate(answered.patterns):
            logs = np.array(
                [
                    [log_score(known, r, a) for a in nodes[::4]]
                    for r in range(7)
                    if r <= HIGHEST @ known
                ]
            )
            for i in range(answered.begins[p], answered.begins[p + 1]):
                mass = np.exp(logs[answered.scores[i]]) @ shares[::4]
                total -= answered.weights[i] * np.log(mass / shares[::4].sum())
        return total

    best = cost(found)
    for step in ([0.05, 0], [-0.05, 0], [0, 0.05], [0, -0.05]):
        assert cost(np.add(found, step)) > best


def test_score_distribution_with_holes(answered):
    """No other distribution of the totals makes the scores likelier."""
    found = score_distribution(HIGHEST, CREDITS, answered)
    assert found.sum() == pytest.approx(1.0)

    def conditional(known, total, score):
        """Return the probability of a score in the items answered, given the total."""
        mass = np.zeros(7)
        for x in itertools.product(range(2), range(3), range(4)):
            if sum(x) == total:
                credit = np.exp(
                    sum(
                        np.concatenate([[0], CREDITS[b : b + m]])[v]
                        for b, m, v in zip((0, 1, 3), HIGHEST, x, strict=True)
                    )
                )
                mass[np.array(x) @ known] += credit
        return mass[score] / mass.sum()

    table = np.array(
        [
            [conditional(known, t, answered.scores[i]) for t in range(7)]
            for p, known in enumerate(answered.patterns)
            for i in range(answered.begins[p], answered.begins[p + 1])
        ]
    )
    gradient = (answered.weights / (table @ found)) @ table / answered.weights.sum()
    np.testing.assert_allclose(gradient, 1.0, atol=1e-3)
