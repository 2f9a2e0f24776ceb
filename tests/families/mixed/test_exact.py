"""Every kind and mixtures of kinds, against enumeration, quadrature and textbook formulas."""

import itertools
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import integrate, stats
from scipy.special import logsumexp

from exchangeable import ExchangeableMixture, Kinds
from exchangeable.data.columns.kinds import decide
from exchangeable.data.columns.schema import typed, typed_rows
from exchangeable.families.contract import Normal

N = 300
rng = np.random.default_rng(7)
GROUP = rng.integers(0, 2, N)
TABLE = pd.DataFrame(
    {
        "city": rng.choice(["Oslo", "Rome", "Wien"], N, p=[0.2, 0.5, 0.3]),
        "agree": pd.Categorical.from_codes(
            rng.binomial(2, 0.2 + 0.5 * GROUP), ["no", "so-so", "yes"], ordered=True
        ),
        "like": pd.Categorical.from_codes(
            rng.binomial(2, 0.3 + 0.4 * GROUP), ["no", "so-so", "yes"], ordered=True
        ),
        "smokes": rng.random(N) < 0.3 + 0.4 * GROUP,
        "drives": rng.random(N) < 0.2 + 0.5 * GROUP,
    }
)
HOLED = TABLE.mask(rng.random(TABLE.shape) < 0.25)
LEVELS = (3, 3, 3, 2, 2)
STATES = np.array(list(itertools.product(*(range(n) for n in LEVELS))), dtype=float)
BLOCKS = ("independent", "full")


def fitted(table: Any, blocks: Any, **options: Any) -> ExchangeableMixture:
    settings = {"tol": 10.0, "max_iter": 3, "random_state": 0, "init": "rows"} | options
    return ExchangeableMixture(2, blocks=blocks, **settings).fit(table)


def schema(table: Any, **options: Any) -> Any:
    found = decide(table, None, **options)
    assert found is not None
    return found


def questions(n: int = 12) -> np.ndarray:
    values = STATES[np.random.default_rng(3).integers(0, len(STATES), n)].copy()
    values[np.random.default_rng(4).random(values.shape) < 0.5] = np.nan
    values[0] = np.nan
    return values


@pytest.mark.parametrize("blocks", BLOCKS)
def test_levels_answer_as_enumeration_does(blocks: str) -> None:
    model = fitted(HOLED, blocks)._model
    types = schema(TABLE).types
    log_p = model.score(typed(STATES, types))
    np.testing.assert_allclose(logsumexp(log_p, axis=0), 0.0, atol=1e-9)
    values = questions()
    observed = typed(values, types)
    scores = model.score(observed)
    for y in range(2):
        completed, log_prob = model.complete(observed, y)
        drawn = model.draw(observed, y, np.random.default_rng(0))
        for i, row in enumerate(values):
            known = ~np.isnan(row)
            agree = (STATES[:, known] == row[known]).all(axis=1)
            evidence = logsumexp(log_p[agree, y])
            assert scores[i, y] == pytest.approx(evidence, abs=1e-9)
            assert log_prob[i] == pytest.approx(log_p[agree, y].max(), abs=1e-9)
            where = (completed[i] == STATES).all(axis=1)
            assert log_p[where, y] == pytest.approx(log_prob[i], abs=1e-9)
            assert (drawn[i][known] == row[known]).all()
            for j in np.flatnonzero(~known):
                shares = model.predictive(typed(values[[i]], types), int(j), y)[0]
                for level in range(LEVELS[j]):
                    here = agree & (STATES[:, j] == level)
                    expected = np.exp(logsumexp(log_p[here, y]) - evidence)
                    assert shares[level] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("blocks", BLOCKS)
def test_draws_of_levels_follow_the_distribution(blocks: str) -> None:
    model, n = fitted(TABLE, blocks)._model, 4000
    types = schema(TABLE).types
    nothing = typed(np.full((n, 5), np.nan), types)
    drawn = model.draw(nothing, 1, np.random.default_rng(5))
    expected = n * np.exp(model.score(typed(STATES, types))[:, 1])
    seen = np.array([(drawn == state).all(axis=1).sum() for state in STATES])
    common = expected > 5
    table = np.append(seen[common], seen[~common].sum())
    wanted = np.append(expected[common], expected[~common].sum())
    keep = wanted > 1
    assert (
        stats.chisquare(table[keep], wanted[keep] * table[keep].sum() / wanted[keep].sum())[1]
        > 1e-4
    )


@pytest.mark.parametrize("blocks", BLOCKS)
@pytest.mark.parametrize("table", [TABLE, HOLED], ids=["complete", "holes"])
@pytest.mark.parametrize("alpha", [0.1, 2.0])
def test_em_never_lowers_its_objective(blocks: str, table: Any, alpha: float) -> None:
    mixed = table.assign(
        age=np.where(table["city"].isna(), np.nan, rng.normal(GROUP, 1.0)),
        height=rng.normal(GROUP * 2.0, 1.0, N),
        kids=rng.poisson(1 + GROUP, N),
        cars=rng.poisson(0.5 + GROUP, N),
    )
    kinds = {"kids": "count", "cars": "count"}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="EM did not converge")
        model = fitted(mixed, blocks, kinds=kinds, tol=0.0, max_iter=25, alpha=alpha)
    assert model.log_likelihood_ > model.history_[0][0]


def two_counts(blocks: str, holes: bool) -> tuple[Any, Any]:
    size = np.random.default_rng(1).gamma(2.0, 1.0, N)
    counts = np.random.default_rng(2).poisson(np.outer(size, [0.8, 1.5]))
    table = pd.DataFrame(counts, columns=["bikes", "cars"]).astype(float)
    if holes:
        table = table.mask(np.random.default_rng(3).random(table.shape) < 0.2)
    model = fitted(table, blocks, kinds="count")
    return model, decide(table, "count").types


@pytest.mark.parametrize("blocks", BLOCKS)
@pytest.mark.parametrize("holes", [False, True], ids=["complete", "holes"])
def test_counts_answer_as_enumeration_does(blocks: str, holes: bool) -> None:
    estimator, types = two_counts(blocks, holes)
    model, top = estimator._model, 150
    grid = np.array(list(itertools.product(range(top), range(top))), dtype=float)
    log_p = model.score(typed(grid, types)).reshape(top, top, 2)
    np.testing.assert_allclose(logsumexp(log_p, axis=(0, 1)), 0.0, atol=1e-8)
    values = np.array([[3, np.nan], [np.nan, 0], [np.nan, np.nan]])
    observed = typed(values, types)
    scores = model.score(observed)
    for y in range(2):
        assert scores[0, y] == pytest.approx(logsumexp(log_p[3, :, y]), abs=1e-8)
        assert scores[1, y] == pytest.approx(logsumexp(log_p[:, 0, y]), abs=1e-8)
        assert scores[2, y] == pytest.approx(0.0, abs=1e-12)
        shares = model.predictive(observed.take(np.array([0])), 1, y)[0][:20]
        expected = np.exp(log_p[3, :20, y] - scores[0, y])
        np.testing.assert_allclose(shares, expected[: shares.size], atol=1e-9)
        log_prob = model.complete(observed, y)[1]
        assert log_prob[0] == pytest.approx(log_p[3, :, y].max(), abs=1e-9)
        assert log_prob[2] == pytest.approx(log_p[:, :, y].max(), abs=1e-9)
        nothing = typed(np.full((3000, 2), np.nan), types)
        drawn = model.draw(nothing, y, np.random.default_rng(8))
        cells = np.bincount(
            (drawn[:, 0] * 4 + drawn[:, 1])[(drawn < 4).all(axis=1)].astype(int), minlength=16
        )
        wanted = 3000 * np.exp(log_p[:4, :4, y]).ravel()
        rest = 3000 - wanted.sum()
        table = np.append(cells, 3000 - cells.sum())
        assert stats.chisquare(table, np.append(wanted, rest))[1] > 1e-4


def measured(holes: bool) -> pd.DataFrame:
    source = np.random.default_rng(11)
    factor = source.normal(size=N)
    table = pd.DataFrame(
        {
            "a": 5 + factor + 0.5 * source.normal(size=N),
            "b": -2 * factor + source.normal(size=N),
            "c": np.exp(0.5 * factor + 0.8 * source.normal(size=N)),
        }
    )
    return table.mask(source.random(table.shape) < 0.2) if holes else table


@pytest.mark.parametrize("blocks", BLOCKS)
@pytest.mark.parametrize("holes", [False, True], ids=["complete", "holes"])
def test_measurements_answer_as_the_multivariate_normal_does(blocks: str, holes: bool) -> None:
    table = measured(holes)
    estimator = fitted(table, blocks)
    model = estimator._model
    decided = schema(table)
    assert decided.columns[2].transform.power != 1
    values = typed_rows(decided.observed(table)).values[:40]
    plain = typed(values, decided.types)
    part = model.parts[0]
    for y in range(2):
        covariance = np.diag(part.variances[:, y])
        if blocks == "full":
            covariance = covariance + part.loadings[:, :, y] @ part.loadings[:, :, y].T
        for i, row in enumerate(values):
            known = np.flatnonzero(~np.isnan(row))
            expected = 0.0
            if known.size:
                expected = stats.multivariate_normal.logpdf(
                    row[known], part.means[known, y], covariance[np.ix_(known, known)]
                )
            assert model.score(plain)[i, y] == pytest.approx(expected, abs=1e-9)
            if np.isnan(row[0]) and known.size:
                answer = model.predictive(plain.take(np.array([i])), 0, y)
                assert isinstance(answer, Normal)
                solve = np.linalg.solve(covariance[np.ix_(known, known)], covariance[known, 0])
                mean = part.means[0, y] + solve @ (row[known] - part.means[known, y])
                assert answer.mean[0] == pytest.approx(mean, abs=1e-9)
                variance = covariance[0, 0] - solve @ covariance[known, 0]
                assert answer.variance[0] == pytest.approx(variance, abs=1e-9)


@pytest.mark.parametrize("blocks", BLOCKS)
def test_densities_are_per_unit_of_the_users_scale(blocks: str) -> None:
    table = measured(True)
    model = fitted(table, blocks)

    def density(x: float) -> float:
        row = pd.DataFrame({"a": [5.0], "b": [np.nan], "c": [x]})
        return float(np.exp(model.score_samples(row))[0])

    whole = integrate.quad(density, -1.0, 200.0, limit=300, points=[0.0, 1.0, 5.0])[0]
    known = float(
        np.exp(model.score_samples(pd.DataFrame({"a": [5.0], "b": [np.nan], "c": [np.nan]})))[0]
    )
    assert whole == pytest.approx(known, rel=1e-4)
    answer = model.conditional("c", {"a": 5.0})
    assert answer.density(2.0) == pytest.approx(density(2.0) / known, rel=1e-9)
    mean = integrate.quad(lambda x: x * answer.density(x), -1.0, 400.0, limit=400)[0]
    assert answer.mean == pytest.approx(mean, rel=1e-3)
    assert answer.cdf(answer.quantile(0.3)) == pytest.approx(0.3, abs=1e-9)
    assert answer.quantile(0.5) < answer.mean


@pytest.mark.parametrize("blocks", BLOCKS)
def test_draws_of_measurements_follow_the_distribution(blocks: str) -> None:
    model = fitted(measured(False), blocks)
    drawn = model.sample(2000, {"b": 1.0}, random_state=3)[0]
    answer = model.conditional("c", {"b": 1.0})
    assert stats.kstest(drawn["c"], answer.cdf)[1] > 1e-3
    assert (drawn["b"] == 1.0).all() or np.allclose(drawn["b"], 1.0)


def test_no_holes_are_as_a_complete_fit() -> None:
    objects = TABLE.astype({"smokes": "boolean", "drives": "boolean"})
    one = fitted(TABLE, "full", max_iter=20).score_samples(TABLE)
    other = fitted(objects, "full", max_iter=20).score_samples(objects)
    np.testing.assert_array_equal(one, other)


def test_one_weighted_item_is_a_categorical_variable() -> None:
    """The one-hot trap: what is drawn has exactly one level, and maximum likelihood is reached."""
    source = np.random.default_rng(0)
    items = pd.DataFrame(
        source.choice(["a", "b", "c"], (500, 4), p=[0.6, 0.3, 0.1]), columns=list("wxyz")
    )
    model = ExchangeableMixture(1, alpha=0.0, random_state=0).fit(items)
    shares = [items[name].value_counts(normalize=True) for name in items]
    best = sum(float((share * np.log(share)).sum()) for share in shares)
    assert model.score(items) == pytest.approx(best, abs=1e-12)
    assert set(model.sample(50, random_state=0)[0]["w"]) <= {"a", "b", "c"}


def test_transforms_can_be_switched_off() -> None:
    table = measured(False)
    plain = fitted(table, "independent", kinds=Kinds(transform="none"))
    assert schema(table, bend=False).columns[2].transform.power == 1
    assert plain.score(table) < fitted(table, "independent").score(table)
