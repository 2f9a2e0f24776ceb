"""Hidden trees over columns of any kind, against enumeration and quadrature."""

import itertools
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import integrate, stats
from scipy.special import logsumexp

import exchangeable
from exchangeable import (
    ExchangeableClassifier,
    ExchangeableImputer,
    ExchangeableMixture,
    ModelFileError,
)
from exchangeable.data.columns.schema import typed
from exchangeable.families import REGISTRY
from exchangeable.families.contract import Normals
from exchangeable.families.leaf_trees.model import LeafModel

N = 300
rng = np.random.default_rng(21)
FIRST = rng.integers(0, 2, N)
SECOND = FIRST ^ (rng.random(N) < 0.2)
THIRD = SECOND ^ (rng.random(N) < 0.2)
WORDS = ["no", "so-so", "yes"]


def scale(group: Any) -> Any:
    return pd.Categorical.from_codes(rng.binomial(2, 0.15 + 0.7 * group), WORDS, ordered=True)


LEVELS = pd.DataFrame(
    {
        "city": np.where(rng.random(N) < 0.3, "Rome", np.where(FIRST, "Oslo", "Wien")),
        "agree": scale(SECOND),
        "like": scale(SECOND),
        "smokes": rng.random(N) < 0.2 + 0.6 * THIRD,
        "drives": rng.random(N) < 0.1 + 0.6 * THIRD,
    }
)
NUMBERS = pd.DataFrame(
    {
        "city": LEVELS["city"],
        "age": rng.normal(30 + 25 * SECOND, 4.0),
        "height": rng.normal(170 + 9 * SECOND, 5.0),
        "kids": rng.poisson(0.5 + 4 * THIRD),
    }
)
HOLED = LEVELS.mask(rng.random(LEVELS.shape) < 0.25)
HOLED_NUMBERS = NUMBERS.mask(rng.random(NUMBERS.shape) < 0.25)
BLOCKS: dict[str, Any] = {
    "independent": "independent",
    "blocks": [["city"], ["agree", "like"], ["smokes", "drives"]],
}
WIDTHS = (3, 3, 3, 2, 2)
STATES = np.array(list(itertools.product(*map(range, WIDTHS))), dtype=float)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="EM did not converge")
        yield


def fitted(table: Any, blocks: Any = "auto", **options: Any) -> ExchangeableMixture:
    settings: dict[str, Any] = dict(max_iter=12, tol=1e-3, random_state=0, n_jobs=1)
    model = ExchangeableMixture(2, family="hidden tree", blocks=blocks, **settings | options)
    return model.fit(table)


def by_hand(model: Any, rows: Any) -> Any:
    """log P(rows | root's state): sums over all hidden states, of complete rows of each leaf."""
    (tree,) = model.trees
    n, h, parent = len(tree.leaves), tree.hidden.n_states, tree.hidden.parent
    root = int(np.flatnonzero(parent == n)[0])
    leaves = []
    for leaf in tree.leaves:
        values = rows.ones.values[:, leaf.variables]
        leaves.append(leaf.model.score(typed(values, tuple(leaf.model.types))))
    terms: list[list[Any]] = [[] for _ in range(h)]
    for hidden in itertools.product(range(h), repeat=n):
        log_p = sum(leaves[b][:, hidden[b]] for b in range(n))
        for b in range(n):
            if b != root:
                log_p = log_p + np.log(tree.hidden.edges[b, hidden[parent[b]], hidden[b]])
        terms[hidden[root]].append(log_p)
    found = np.stack([logsumexp(own, axis=0) for own in terms], axis=1)
    return found + rows.ones.log_jacobian[:, None]


def questions(n: int = 15) -> Any:
    values = STATES[np.random.default_rng(3).integers(0, len(STATES), n)].copy()
    values[np.random.default_rng(4).random(values.shape) < 0.5] = np.nan
    values[0] = np.nan
    return values


@pytest.mark.parametrize("blocks", BLOCKS)
@pytest.mark.parametrize("table", [LEVELS, HOLED], ids=["complete", "holes"])
def test_levels_answer_as_enumeration_does(blocks: str, table: Any) -> None:
    estimator = fitted(table, BLOCKS[blocks])
    model, types = estimator._model, estimator._schema().types  # type: ignore[union-attr]
    assert isinstance(model, LeafModel)
    everything = typed(STATES, types)
    log_p = by_hand(model, everything)
    np.testing.assert_allclose(model.score(everything), log_p, rtol=1e-10)
    np.testing.assert_allclose(logsumexp(log_p, axis=0), 0.0, atol=1e-9)
    values = questions()
    observed, log_prior = typed(values, types), np.log([0.3, 0.7])
    scores = model.score(observed)
    best = model.most_probable(observed, log_prior, np.arange(2))
    np.testing.assert_array_equal(best.bound, best.log_prob)
    for i, row in enumerate(values):
        known = ~np.isnan(row)
        agree = (STATES[:, known] == row[known]).all(axis=1)
        np.testing.assert_allclose(scores[i], logsumexp(log_p[agree], axis=0), atol=1e-9)
        assert best.log_prob[i] == pytest.approx((log_p + log_prior)[agree].max(), abs=1e-9)
        where = (best.rows[i] == STATES).all(axis=1)
        assert (log_p + log_prior)[where, best.classes[i]] == pytest.approx(best.log_prob[i])
    for y in range(2):
        completed, log_prob = model.complete(observed, y)
        drawn = model.draw(observed, y, np.random.default_rng(0))
        means = model.marginals(observed, y)
        np.testing.assert_allclose(log_prob, by_hand(model, typed(completed, types))[:, y])
        for i, row in enumerate(values):
            known = ~np.isnan(row)
            agree = (STATES[:, known] == row[known]).all(axis=1)
            share = np.exp(log_p[agree, y] - logsumexp(log_p[agree, y]))
            assert (drawn[i][known] == row[known]).all()
            np.testing.assert_allclose(means[i, 1:], share @ STATES[agree][:, 1:], atol=1e-9)
            for j in np.flatnonzero(~known):
                found = model.predictive(typed(values[[i]], types), int(j), y)[0]
                expected = [share[STATES[agree][:, j] == v].sum() for v in range(WIDTHS[j])]
                np.testing.assert_allclose(found, expected, atol=1e-9)


def test_draws_of_levels_follow_the_distribution() -> None:
    estimator = fitted(HOLED, BLOCKS["blocks"])
    model, types, n = estimator._model, estimator._schema().types, 4000  # type: ignore[union-attr]
    row = np.array([np.nan, 1, np.nan, np.nan, np.nan])
    drawn = model.draw(typed(np.tile(row, (n, 1)), types), 1, np.random.default_rng(5))
    chance = np.where(STATES[:, 1] == 1, np.exp(model.score(typed(STATES, types))[:, 1]), 0.0)
    seen = np.array([(drawn == state).all(axis=1).sum() for state in STATES])
    assert seen[chance == 0].sum() == 0
    kept = chance > 0
    assert stats.chisquare(seen[kept], n * chance[kept] / chance.sum()).pvalue > 1e-4


@pytest.mark.parametrize("blocks", ["independent", [["city"], ["age", "height"], ["kids"]]])
def test_numbers_are_those_of_quadrature(blocks: Any) -> None:
    estimator = fitted(HOLED_NUMBERS, blocks, kinds={"kids": "count"})
    model, schema = estimator._model, estimator._schema()
    assert schema is not None
    row = np.array([1.0, 0.4, -0.3, 2.0])

    def density(values: Any) -> Any:
        return np.exp(by_hand(model, typed(np.atleast_2d(values), schema.types)))

    def with_age(x: float) -> Any:
        return density([row[0], x, *row[2:]])

    complete = model.score(typed(row[None], schema.types))
    np.testing.assert_allclose(np.exp(complete), density(row), rtol=1e-10)
    hidden = np.where(np.arange(4) == 1, np.nan, row)
    asked = typed(hidden[None], schema.types)
    evidence = np.exp(model.score(asked)[0])
    answer = model.marginals(asked, 0)[0, 1]
    for y in range(2):
        total = integrate.quad(lambda x, y=y: with_age(x)[0, y], -12, 12, limit=200)[0]
        assert total == pytest.approx(evidence[y], rel=1e-6)
        normals = model.predictive(asked, 1, y)
        assert isinstance(normals, Normals)
        for at in (-1.0, 0.2, 1.5):
            own = stats.norm.pdf(at, normals.mean[0], np.sqrt(normals.variance[0]))
            assert own @ normals.weights[0] == pytest.approx(
                with_age(at)[0, y] / evidence[y], rel=1e-8
            )
    mean = integrate.quad(lambda x: x * with_age(x)[0, 0], -12, 12, limit=200)[0] / evidence[0]
    assert answer == pytest.approx(mean, abs=1e-6)
    counts = np.tile(row, (200, 1))
    counts[:, 3] = np.arange(200)
    without = np.where(np.arange(4) == 3, np.nan, row)
    summed = density(counts).sum(axis=0)
    np.testing.assert_allclose(np.exp(model.score(typed(without[None], schema.types))[0]), summed)
    drawn = model.draw(typed(np.tile(hidden, (3000, 1)), schema.types), 0, np.random.default_rng(2))
    normals = model.predictive(asked, 1, 0)

    def below(x: Any) -> Any:
        return (
            stats.norm.cdf(np.asarray(x)[:, None], normals.mean, np.sqrt(normals.variance))
            @ (normals.weights[0])
        )

    assert stats.kstest(drawn[:, 1], below).pvalue > 1e-4


def test_completions_of_measurements_say_that_they_are_not_certain() -> None:
    estimator = fitted(NUMBERS, kinds={"kids": "count"})
    found = estimator.most_probable({"city": "Oslo"})
    assert found.gap > 0
    assert estimator.most_probable({"age": 40.0, "height": 170.0, "kids": 1}).exact
    table = NUMBERS.iloc[:1].assign(**found.X.iloc[0].to_dict())
    assert estimator.score_samples(table)[0] >= found.log_prob - 1e-9
    draws = estimator.sample(200, {"city": "Oslo"}, random_state=0)[0]
    highest = estimator._mixture().joint(estimator._schema().observed(draws))  # type: ignore[union-attr]
    assert highest.max() <= found.log_prob + found.gap + 1e-9


def test_a_tree_of_a_table_answers_in_its_values_and_is_saved(tmp_path: Path) -> None:
    model = fitted(HOLED_NUMBERS, kinds={"kids": "count"}, n_init=2, combine="average")
    path = tmp_path / "model.exch"
    exchangeable.save(model, path)
    again = exchangeable.load(path)
    np.testing.assert_array_equal(again.score_samples(NUMBERS), model.score_samples(NUMBERS))
    cities = again.conditional("city", {"age": 60.0, "kids": 5})
    assert sum(cities.values()) == pytest.approx(1.0)
    assert cities["Oslo"] > again.conditional("city", {"age": 25.0, "kids": 0})["Oslo"]
    age = again.conditional("age", {"kids": 6})
    assert integrate.quad(age.density, -100, 200, limit=300, points=[30, 55])[0] == pytest.approx(
        1.0, abs=1e-5
    )
    assert age.mean > again.conditional("age", {"kids": 0}).mean + 3
    gain = again.information_gain({"city": "Oslo"})
    assert (gain >= 0).all()
    assert gain[0] == 0 < gain[1:].max()
    filled = ExchangeableImputer(model).fit(HOLED_NUMBERS).transform(HOLED_NUMBERS)
    assert not filled.isna().any().any()
    known = HOLED_NUMBERS["age"].notna()
    assert (filled["age"][known] == NUMBERS["age"][known]).all()


@pytest.mark.parametrize("table", [NUMBERS, HOLED_NUMBERS], ids=["complete", "holes"])
@pytest.mark.parametrize("blocks", ["independent", [["city"], ["age", "height"], ["kids"]]])
def test_em_climbs_and_a_tree_is_better_than_a_mixture(table: Any, blocks: Any) -> None:
    model = fitted(table, blocks, kinds={"kids": "count"}, tol=1e-6, max_iter=80)
    history = np.array(model.history_[0])
    assert history[-1] > history[0]
    options: dict[str, Any] = dict(kinds={"kids": "count"}, random_state=0, n_init=3, n_jobs=1)
    mixture = ExchangeableMixture(2, blocks=blocks, **options).fit(table)
    assert model.score(table) > mixture.score(table)


def test_a_statistic_reads_binary_columns_of_a_table() -> None:
    n = 200
    calm = rng.random(n) < 0.5
    moves = rng.random((n, 5)) < np.where(calm, 0.1, 0.7)[:, None]
    days = pd.DataFrame((np.cumsum(moves, axis=1) % 2).astype(bool), columns=list("abcde"))
    table = days.assign(heart=rng.normal(60 + 20 * ~calm, 4.0))
    table = table.mask(rng.random(table.shape) < 0.1)
    model = fitted(table, [(list("abcde"), "runs")])
    kinds = {type(leaf.model).__name__ for leaf in model._model.trees[0].leaves}
    assert kinds == {"MixedBlocksModel", "MixedModel"}
    still, changing = (
        dict.fromkeys("abcde", True),
        {"a": True, "b": False, "c": True, "d": False, "e": True},
    )
    heart = [model.conditional("heart", given).mean for given in (still, changing)]
    assert heart[1] > heart[0] + 10


def test_a_kind_of_leaf_that_does_not_fit_is_refused() -> None:
    arrays = fitted(NUMBERS, kinds={"kids": "count"})._model.encode()
    LeafModel.read(arrays)
    wrong = {**arrays, "0.leaf1.part0.variances": -arrays["0.leaf1.part0.variances"]}
    with pytest.raises(ModelFileError):
        LeafModel.read(wrong)


def test_the_family_that_stands_in_says_so() -> None:
    assert REGISTRY["hidden tree"].other_kinds == "mixed tree"
    model = ExchangeableClassifier("hidden tree", max_iter=2)
    model.fit(NUMBERS, np.arange(len(NUMBERS)) % 2)
    assert isinstance(model._fitted().inner, LeafModel)


def test_densities_are_per_unit_of_the_users_scale() -> None:
    n = 300
    rich = rng.random(n) < 0.5
    table = pd.DataFrame(
        {"income": np.exp(rng.normal(1.0 + rich, 0.6)), "house": np.where(rich, "own", "rent")}
    )
    model = fitted(table, "independent", max_iter=5, tol=1e-2)
    grid = np.exp(np.linspace(-4.0, 8.0, 4001))
    asked = pd.DataFrame({"income": grid, "house": None})
    assert np.trapezoid(np.exp(model.score_samples(asked)), grid) == pytest.approx(1.0, abs=1e-3)
