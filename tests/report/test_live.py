"""The live panel answers as Python does, for every family and kind of column."""

import numpy as np
import pandas as pd
import pytest

from em_families import BY_EM
from exchangeable import (
    AtLeast,
    BlockCounts,
    CategoricalCounts,
    Count,
    ExchangeableClassifier,
    ExchangeableDensity,
    ExchangeableMixture,
    FiniteState,
    Generative,
    Hybrid,
    Nested,
    Pooled,
    Runs,
    WeightedSum,
)
from page_answers import assert_answers_are_pythons, assert_best
from page_models import answer_of, rows_of


def chains(n_rows=200, n_variables=8, seed=0):
    """Rows in which every variable depends on the one before it."""
    rng = np.random.default_rng(seed)
    changes = rng.random((n_rows, n_variables)) < rng.choice([0.1, 0.3], size=(n_rows, 1))
    return (np.cumsum(changes, axis=1) % 2).astype(np.uint8)


def evidence(n, seed=1):
    rng = np.random.default_rng(seed)
    for share in (0.0, 0.3, 0.7, 1.0):
        yield np.where(rng.random(n) < share, rng.random(n) < 0.5, np.nan)


@pytest.mark.parametrize("family", BY_EM)
def test_every_family(family, open_page):
    X = chains()
    model = ExchangeableMixture(3, family=family, tol=0.1, random_state=0).fit(X)
    page = open_page(model)
    assert page.locator("#panel").is_visible()
    assert page.locator("#no-panel").is_hidden()
    assert_answers_are_pythons(page, model, evidence(X.shape[1]))


def nine(statistic):
    return [([8, 7, 6, 5, 4, 3, 2, 1, 0], statistic)]


STATISTICS = [
    *map(nine, ["count", "runs", "longest run", "first and last", "transitions"]),
    nine("second-order transitions"),
    nine(AtLeast(9, 4)),
    nine(WeightedSum([1, 2, 0, 1, 3, 1, 1, 2, 1])),
    nine(CategoricalCounts(9, 2)),
    nine(BlockCounts([[0, 2, 4], [1, 3], [5, 6, 7, 8]])),
    nine(Pooled(3, 3, 4)),
    nine(Nested(Runs(3), AtLeast(3, 2), [[0, 4, 8], [1, 2, 3], [5, 6, 7]])),
    nine(FiniteState(9, lambda odd, x: (odd ^ x, 0), start=0, final=lambda odd: odd)),
    [([0, 3, 2, 1], Pooled(2, 1, 0)), ([9, 8, 7], "runs")],
    [(range(6), "runs"), (range(6, 11), "transitions")],
]


IN_TREES = [STATISTICS[1], STATISTICS[11], STATISTICS[13]]


@pytest.mark.parametrize(
    ("family", "blocks"),
    [*(("blocks", each) for each in STATISTICS), *(("hidden tree", each) for each in IN_TREES)],
    ids=lambda each: each if isinstance(each, str) else repr(each[0][1]),
)
def test_blocks_with_statistics(family, blocks, open_page):
    X = chains(n_variables=11)
    model = ExchangeableMixture(2, family=family, blocks=blocks, tol=0.1, random_state=0).fit(X)
    page = open_page(model)
    assert page.locator("#panel").is_visible()
    assert_answers_are_pythons(page, model, evidence(11))


@pytest.mark.parametrize("family", ["count tree", "hidden tree"])
def test_trees_of_blocks(family, open_page):
    X = chains(n_variables=10)
    blocks = [[0, 1, 2, 3, 4], [5, 7], [6], [8, 9]]
    model = ExchangeableMixture(3, family=family, blocks=blocks, tol=0.1, random_state=0).fit(X)
    assert_answers_are_pythons(open_page(model), model, evidence(10))


def test_a_classifier_of_trees_conditions_on_a_class(open_page):
    X = chains()
    y = np.where(X[:, 0] == X[:, 1], "same", "other")
    model = ExchangeableClassifier("weighted tree").fit(X, y)
    page = open_page(model)
    page.get_by_role("radiogroup", name="x2", exact=True).get_by_label("on").check()
    page.locator("#given").select_option("1")
    found = page.evaluate("[...panel.result.marginals]")
    np.testing.assert_allclose(found, model.marginals({2: 1}, given_class="same"), atol=1e-9)
    best = model.most_probable({2: 1}, label="same")
    assert page.evaluate("panel.result.completionLogProb") == pytest.approx(best.log_prob)


def test_joined_families(open_page):
    X = chains()
    families = ["urns", "tree", "hidden tree"]
    model = ExchangeableDensity(families, n_init=1, max_components=3, random_state=0).fit(X)
    assert len(model.members_) > 1
    page = open_page(model)
    assert_answers_are_pythons(page, model, evidence(X.shape[1]))
    last = model._log_prior.size - 1
    page.locator("#given").select_option(str(last))
    found = page.evaluate("[...panel.result.marginals]")
    np.testing.assert_allclose(found, model.marginals(given_class=last), atol=1e-9)


def test_classes_of_several_components(open_page):
    X = chains()
    model = ExchangeableClassifier(training=Hybrid(n_components=2)).fit(X, X[:, 3] == X[:, 5])
    page = open_page(model)
    for row in evidence(X.shape[1]):
        found = answer_of(page, row)
        np.testing.assert_allclose(found["posterior"], model.predict_proba(row[None])[0], atol=1e-9)
        np.testing.assert_allclose(found["marginals"], model.marginals(row), rtol=0, atol=1e-9)
        assert_best(found, model, row)


def table(n_rows=240, seed=0):
    """Columns of all kinds, two or more of each that takes blocks."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 2, n_rows)
    return pd.DataFrame(
        {
            "member": rng.random(n_rows) < 0.2 + 0.6 * kind,
            "city": rng.choice(["Oslo", "Rome", "Bath"], n_rows),
            **{
                f"item {j}": pd.Categorical.from_codes(
                    np.clip(rng.integers(0, 3, n_rows) + kind, 0, 3),
                    ["never", "rarely", "often", "always"],
                    ordered=True,
                )
                for j in range(3)
            },
            "visits": rng.poisson(2 + 5 * kind),
            "calls": rng.negative_binomial(2, 0.3, n_rows),
            "height": rng.normal(170 + 8 * kind, 6),
            "weight": rng.normal(70 + 9 * kind, 8),
            "income": np.exp(rng.normal(8 + kind, 1.0)),
        }
    )


QUESTIONS = [
    {},
    {"city": "Rome", "height": 181.5},
    {"member": True, "item 1": "often", "visits": 9, "income": 20000.0},
    {"item 0": "never", "item 2": "always", "calls": 3, "visits": 0, "weight": 60.0},
]

TOGETHER = [[0], [1], [2, 3, 4], [5, 6], [7, 8, 9]]


def assert_typed_answers_are_pythons(page, model, question):
    columns = model._schema().columns
    names = [column.name for column in columns]
    row = model._typed_evidence(model._schema(), question)[0].ones.values[0]
    found = answer_of(page, row)
    assert found["logEvidence"] == pytest.approx(model.score_samples(question), rel=1e-9, abs=1e-9)
    told = model.marginals(question)
    for column, answer in zip(columns, found["told"], strict=True):
        if column.name in question:
            assert answer is None
        elif column.kind == "continuous":
            expected = told[column.name]
            assert answer["mean"] == pytest.approx(expected.mean, rel=1e-9)
            assert answer["deviation"] == pytest.approx(expected.std, rel=1e-7)
            j, at = names.index(column.name), float(expected.quantile(0.3))
            dense = page.evaluate(
                "([j, told, x]) => panel.model.columns[j].density(told, x)", [j, answer, at]
            )
            assert dense == pytest.approx(float(expected.density(at)), rel=1e-9)
        else:
            expected = told[column.name].probabilities
            shares = np.zeros(max(len(expected), len(answer["shares"])))
            shares[: len(answer["shares"])] = answer["shares"]
            shares[: len(expected)] -= expected
            np.testing.assert_allclose(shares, 0.0, atol=1e-9)
    np.testing.assert_allclose(found["gains"], model.information_gain(question), atol=1e-8)
    best = model.most_probable(question)
    assert found["completionLogProb"] == pytest.approx(best.log_prob, rel=1e-9, abs=1e-9)
    expected = model._observed(best.X).ones.values[0]
    np.testing.assert_allclose(found["completion"], expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("blocks", ["independent", TOGETHER])
@pytest.mark.parametrize("family", ["mixed", "polya"])
def test_columns_of_every_kind(family, blocks, open_page):
    model = ExchangeableMixture(2, family=family, blocks=blocks, random_state=0, n_init=1, tol=0.1)
    model.fit(table())
    page = open_page(model)
    for question in QUESTIONS:
        assert_typed_answers_are_pythons(page, model, question)


@pytest.mark.parametrize("blocks", ["auto", TOGETHER])
def test_hidden_trees_of_every_kind(blocks, open_page):
    model = ExchangeableMixture(2, family="hidden tree", blocks=blocks, random_state=0, tol=0.1)
    model.fit(table())
    page = open_page(model)
    for question in QUESTIONS:
        assert_typed_answers_are_pythons(page, model, question)


def test_classes_of_several_components_of_every_kind(open_page):
    model = ExchangeableClassifier(training=Generative(2))
    blocks = [[j - 1 for j in block] for block in TOGETHER[1:]]
    model.set_params(blocks=blocks, tol=0.1).fit(table().drop(columns="member"), table()["member"])
    page = open_page(model)
    for question in QUESTIONS[:2]:
        assert_typed_answers_are_pythons(page, model, question)


def test_trained_measurements_that_go_together(open_page):
    frame = table()[["city", "height", "weight", "income"]]
    model = ExchangeableClassifier(training="hybrid", blocks="full").fit(frame, table()["member"])
    assert "factor" in [part.name for part in model._fitted().parts]
    page = open_page(model)
    for question in ({}, {"city": "Oslo", "income": 9000.0}):
        assert_typed_answers_are_pythons(page, model, question)


def test_trained_counts(open_page):
    frame = table()[["city", "visits", "calls"]]
    model = ExchangeableClassifier(training="hybrid")
    model.fit(frame, table()["member"])
    assert "count bins" in [part.name for part in model._fitted().parts]
    page = open_page(model)
    for question in ({}, {"visits": 4}, {"city": "Oslo", "calls": 40}):
        assert_typed_answers_are_pythons(page, model, question)


def test_controls_of_every_kind(open_page):
    model = ExchangeableMixture(2, random_state=0, n_init=1, tol=0.1).fit(table())
    page = open_page(model, width=390, height=800)
    page.get_by_label("city", exact=True).select_option(label="Rome")
    page.get_by_label("member", exact=True).select_option(label="True")
    visits = page.get_by_label("visits", exact=True)
    visits.fill("9")
    visits.press("Enter")
    page.get_by_label("height", exact=True).fill("181.5")
    page.get_by_label("height", exact=True).press("Enter")
    slider = page.get_by_label("weight, slider")
    slider.fill("75")
    weight = float(page.get_by_label("weight", exact=True).input_value())
    assert weight == pytest.approx(75.0, abs=1e-6)
    question = {"city": "Rome", "member": True, "visits": 9, "height": 181.5, "weight": weight}
    told = page.locator("#log-evidence").text_content()
    assert float(told) == pytest.approx(model.score_samples(question), abs=1e-4)
    chips = page.locator("#known button").all_text_contents()
    assert chips == [
        "member = True ×",
        "city = Rome ×",
        "visits = 9 ×",
        "height = 181.5 ×",
        "weight = 75 ×",
    ]
    page.locator("#known button").nth(1).click()
    assert page.get_by_label("city", exact=True).input_value() == "NaN"
    page.locator("#column").select_option(label="income")
    mean = model.marginals({k: v for k, v in question.items() if k != "city"})["income"].mean
    shown = page.locator("#column-text").text_content().split(",")[0].removeprefix("Mean ")
    assert float(shown) == pytest.approx(mean, rel=1e-3)
    assert page.locator("#column-chart .dense").count() == 1
    page.locator("#next button").first.click()
    assert page.locator("#variables li").count() >= 1
    assert page.evaluate("document.activeElement.closest('#variables') !== null")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_counts_that_cannot_be_are_not_taken(open_page):
    model = ExchangeableMixture(2, random_state=0, n_init=1, tol=0.1).fit(table())
    page = open_page(model)
    for text in ("-1", "1.5"):
        page.get_by_label("visits", exact=True).fill(text)
        page.get_by_label("visits", exact=True).press("Enter")
        assert page.locator("#known button").count() == 0


class WithoutTables(Count):
    """A statistic as users may write one, which no automaton computes."""

    def _on_page(self):
        return None


@pytest.mark.parametrize("family", ["blocks", "hidden tree"])
def test_what_python_alone_can_answer_is_left_out(family, open_page):
    X = chains()
    blocks = [([0, 1, 2], WithoutTables(3)), [3, 4, 5, 6, 7]]
    model = ExchangeableMixture(2, family=family, blocks=blocks, random_state=0).fit(X)
    notice = open_page(model).locator("#no-panel").text_content()
    assert notice.startswith("The answers of this model are computed in Python alone")
    for left_out in ("setting what is known", "the most probable component", "to ask next"):
        assert left_out in notice


def test_what_takes_too_long_is_left_out(open_page, monkeypatch):
    monkeypatch.setattr("exchangeable.report.live.MOST_STEPS", 10)
    X, y = rows_of(60, 5, 2)
    page = open_page(ExchangeableClassifier().fit(X, y))
    assert "more steps than a page can make at once" in page.locator("#no-panel").text_content()
    assert page.locator("#panel").is_hidden()
    monkeypatch.setattr("exchangeable.report.live.MOST_STEPS", 1e9)
    monkeypatch.setattr("exchangeable.report.live.MOST_BYTES", 10)
    page = open_page(ExchangeableClassifier().fit(X, y))
    assert "too large for a page" in page.locator("#no-panel").text_content()
