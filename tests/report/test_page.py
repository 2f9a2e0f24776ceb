"""The report page in a real browser: its numbers are the library's, and everybody can use it."""

import numpy as np
import pytest

from em_families import BY_EM
from exchangeable import ExchangeableClassifier, ExchangeableDensity, ExchangeableMixture
from exchangeable.families import REGISTRY
from exchangeable.report import report_html, write_report

HTML_NAMES = [
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(2)</script>",
    "a & b",
    '"quoted" name',
    "<!--data-->",
]


def rows_of(n_rows, n_variables, n_kinds, seed=0):
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, n_kinds, size=n_rows)
    rate = rng.beta(0.5, 1.0, size=(n_kinds, 1)) * rng.random((n_kinds, n_variables))
    return (rng.random((n_rows, n_variables)) < rate[kind]).astype(np.uint8), kind


def small():
    X, y = rows_of(300, 5, 2)
    return ExchangeableClassifier().fit(X, y)


def large():
    X, y = rows_of(400, 5000, 4)
    return ExchangeableClassifier().fit(X, y)


def mixture():
    X, _ = rows_of(400, 30, 3)
    return ExchangeableMixture(4, random_state=0, tol=1e-2).fit(X)


def pooled():
    X, y = rows_of(300, 12, 3)
    return ExchangeableClassifier(pooling=2.0).fit(X, y)


def excluding():
    X, y = rows_of(60, 6, 2)
    return ExchangeableClassifier(blocks="full", alpha=0.0).fit(X, y)


def urns():
    X, _ = rows_of(300, 40, 3)
    return ExchangeableMixture(4, family="urns", tol=0.1, random_state=0).fit(X)


def urns_in_blocks():
    X, y = rows_of(300, 20, 3)
    return ExchangeableClassifier("urns", blocks=[range(8), range(8, 20)]).fit(X, y)


@pytest.mark.parametrize("make", [small, large, mixture, pooled, excluding, urns, urns_in_blocks])
def test_numbers_are_the_librarys(make, open_page):
    model = make()
    page = open_page(model)
    rng = np.random.default_rng(1)
    n = model.n_features_in_
    for share in (0.0, 0.1, 0.5, 1.0):
        row = np.where(rng.random(n) < share, rng.random(n) < 0.3, np.nan)
        evidence = np.where(np.isnan(row), -1, row).astype(int).tolist()
        found = page.evaluate(
            "(e) => { const a = panel.model.answer(Int8Array.from(e));"
            " return a.possible ? {...a, posterior: [...a.posterior], marginals: [...a.marginals],"
            " completion: [...a.completion]} : null; }",
            evidence,
        )
        log_evidence = model.score_samples(row[None])[0]
        if log_evidence == -np.inf:
            assert found is None
            continue
        assert found["logEvidence"] == pytest.approx(log_evidence, rel=1e-9, abs=1e-9)
        posterior = model.predict_proba(row[None])[0]
        np.testing.assert_allclose(found["posterior"], posterior, rtol=0, atol=1e-9)
        np.testing.assert_allclose(found["marginals"], model.marginals(row), rtol=0, atol=1e-9)
        expected = model.most_probable(row)
        assert found["completion"] == expected.X.tolist()
        assert found["completionLogProb"] == pytest.approx(expected.log_prob, rel=1e-9, abs=1e-9)


def test_counts_are_the_librarys(open_page):
    for model in (mixture(), ExchangeableMixture(2, family="urns", tol=0.1, random_state=0)):
        if not hasattr(model, "weights_"):
            model.fit(rows_of(200, 8, 2)[0])
        page = open_page(model)
        for y, blocks in enumerate(model.count_probabilities_):
            for b, expected in enumerate(blocks):
                found = page.evaluate("([y, b]) => [...blocks.model.counts(y, b)]", [y, b])
                np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_with_the_mouse(open_page):
    model = small()
    page = open_page(model, names=HTML_NAMES, title="<b>Five</b>")
    assert page.locator("h1").text_content() == "<b>Five</b>"
    assert page.title() == "<b>Five</b>"
    assert page.locator("#variables .name").all_text_contents() == HTML_NAMES
    assert page.locator("main img, main b b").count() == 0
    page.get_by_role("radiogroup", name=HTML_NAMES[1]).get_by_label("on").check()
    page.get_by_role("radiogroup", name=HTML_NAMES[3]).get_by_label("off").check()
    evidence = {1: 1, 3: 0}
    shown = [float(text) for text in page.locator("#variables .number").all_text_contents()]
    np.testing.assert_allclose(shown, model.marginals(evidence), atol=0.00051)
    row = np.array([[np.nan, 1, np.nan, 0, np.nan]])
    best = float(page.locator("#classes .best .number").text_content())
    assert best == pytest.approx(model.predict_proba(row).max(), abs=0.00051)
    log_evidence = float(page.locator("#log-evidence").text_content())
    assert log_evidence == pytest.approx(model.score_samples(row)[0], abs=5.1e-5)
    assert page.locator("#known button").count() == 2
    page.locator("#known button").first.click()
    assert page.evaluate("[...panel.evidence]") == [-1, -1, -1, 0, -1]
    page.get_by_role("button", name="Clear all").click()
    assert page.evaluate("[...panel.evidence]") == [-1] * 5


def test_by_keyboard(open_page):
    page = open_page(small(), names=HTML_NAMES)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.locator("#search").focus()
    page.keyboard.type("quoted")
    assert page.locator("#variables li").count() == 1
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("[...panel.evidence]") == [-1, -1, -1, 1, -1]
    page.keyboard.press("ArrowLeft")
    assert page.evaluate("[...panel.evidence]") == [-1, -1, -1, 0, -1]
    page.locator("[data-sort=mean]").focus()
    page.keyboard.press("Enter")
    assert page.locator("th[aria-sort=descending]").text_content().strip() == "mean"
    page.locator("#block-rows button").last.focus()
    page.keyboard.press("Enter")
    number = page.locator("#block-rows button").last.text_content()
    assert f"block {number} " in page.locator("#chart-title").text_content()


def test_lists_are_sorted_searched_and_cut(open_page):
    model = large()
    page = open_page(model)
    assert page.locator("#variables li").count() == 60
    page.get_by_role("button", name="Show more").first.click()
    assert page.locator("#variables li").count() == 260
    page.locator("#search").fill("x4999")
    assert page.locator("#variables .name").all_text_contents() == ["x4999"]
    page.locator("#variables input[value='1']").check()
    page.locator("#search").fill("")
    page.locator("#order").select_option("chance")
    assert page.locator("#variables .name").first.text_content() == "x4999"
    page.locator("#which").select_option("2")
    sizes = [
        int(t.replace(",", ""))
        for t in page.locator("#block-rows td:nth-child(2)").all_text_contents()
    ]
    assert sizes == sorted((len(b) for b in model.partitions_[2]), reverse=True)[:60]
    page.locator("#block-search").fill("x4999")
    assert page.locator("#block-rows tr").count() == 1


@pytest.mark.parametrize("width", [360, 390, 768, 1280])
def test_nothing_sticks_out(width, open_page):
    page = open_page(
        mixture(), width=width, height=800, names=[f"a rather long name {j}" for j in range(30)]
    )
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("family", BY_EM)
def test_every_family_has_a_panel_or_says_what_it_is_made_of(family, open_page):
    X, _ = rows_of(100, 6, 2)
    model = ExchangeableMixture(2, family=family, tol=0.1, random_state=0).fit(X)
    page = open_page(model)
    about = page.locator("#about").text_content()
    assert about.startswith("A mixture of 2 components over 6 binary variables.")
    assert f"Its family is “{family}”: {REGISTRY[family].summary}." in about
    learned = REGISTRY[family].blocks[:1] in [("evidence",), ("welch",)]
    assert ("learned from the data" in about) == learned
    assert page.locator("#block-rows tr").count() == len(model.partitions_[0])
    assert_cards_are_the_librarys(page, model)
    computes = model._fitted().page_tables() is not None
    assert page.locator("#panel").is_visible() == computes
    assert page.locator("#how-to").is_visible() == computes
    assert page.locator("#no-panel").is_hidden() == computes
    if not computes:
        notice = page.locator("#no-panel").text_content()
        for left_out in ("setting what is known", "the most probable component", "to ask next"):
            assert left_out in notice


def test_joined_families_are_all_named(open_page):
    X, _ = rows_of(120, 6, 3, seed=1)
    model = ExchangeableDensity(["urns", "tree"], n_init=1, max_components=2, random_state=0).fit(X)
    assert len(model.members_) == 2
    told = open_page(model).locator("#about").text_content()
    for member in model.members_:
        assert f"“{member['family']}”: {REGISTRY[member['family']].summary}." in told


def one_row_against_many():
    """Class 0 always has the same row; class 1 is more frequent and has all rows alike."""
    rng = np.random.default_rng(0)
    X = np.vstack([np.ones((80, 8)), rng.random((120, 8)) < 0.5]).astype(np.uint8)
    return ExchangeableClassifier(blocks="independent").fit(X, np.repeat([0, 1], [80, 120]))


def test_explains_where_joint_and_posterior_differ(open_page):
    model = one_row_against_many()
    assert model.most_probable().y == 0
    page = open_page(model)
    assert "Most probable class: 1" in page.locator("#best-class").text_content()
    why = page.locator("#two-maxima")
    assert "belongs to class 0, although class 1 is the most probable class" in why.text_content()
    page.get_by_role("radiogroup", name="x0").get_by_label("off").check()
    assert model.most_probable({0: 0}).y == 1
    assert why.text_content() == ""


def test_no_zero_has_a_sign(open_page):
    page = open_page(mixture())
    found = page.evaluate("[fixed(-1e-9, 4), fixed(-0, 1), fixed(-0.25, 2), fixed(0, 3)]")
    assert found == ["0.0000", "0.0", "-0.25", "0.000"]
    assert page.locator("#log-evidence").text_content() == "0.0000"


def assert_cards_are_the_librarys(page, model):
    """The sizes on the cards, the largest first, and the probabilities of their variables."""
    sizes = model.profiles().sizes
    order = np.argsort(-sizes, kind="stable")
    cards = page.locator("#cards article")
    assert cards.count() == sizes.size
    names = [f"x{j}" for j in range(model.n_features_in_)]
    for i, y in enumerate(order):
        assert cards.nth(i).locator("h3 .name").text_content() == f"component {y}"
        size = cards.nth(i).locator("h3 .number").text_content()
        assert float(size.removesuffix(" %")) == pytest.approx(100 * sizes[y], abs=0.051)
        lines = cards.nth(i).locator(".telling .name").all_text_contents()
        own = model.marginals(given_class=y)[[names.index(line) for line in lines]]
        data = page.evaluate(
            "(i) => JSON.parse(document.getElementById('data').textContent)"
            ".cards[i].lines.map((line) => line.own)",
            i,
        )
        np.testing.assert_allclose(data, own, rtol=0, atol=1e-12)


def of_other_kinds():
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 2, 300)
    X = np.column_stack([rng.random(300) < 0.2 + 0.6 * kind, rng.normal(5 * kind, 1.0)])
    return ExchangeableMixture(
        2, family="mixed", kinds={0: "binary", 1: "continuous"}, n_init=2, random_state=0
    ).fit(X)


def test_columns_of_other_kinds_have_cards_and_a_table(open_page):
    model = of_other_kinds()
    page = open_page(model, names=["flag", "height"], width=390)
    assert "The live panel is for binary columns" in page.locator("#no-panel").text_content()
    assert page.locator("#panel").is_hidden()
    assert page.locator("#blocks").is_hidden()
    values = model.profiles()
    rows = page.locator("#marginals tbody tr")
    assert rows.count() == len(values.entries) == 3
    cells = rows.nth(1).locator("td").all_text_contents()
    order = np.argsort(-values.sizes, kind="stable")
    assert cells[:2] == ["height", "mean"]
    shown = [float(cell) for cell in cells[2:]]
    expected = [values.values[1] @ values.sizes, *values.values[1, order]]
    np.testing.assert_allclose(shown, expected, rtol=1e-3)
    assert page.locator("#cards .telling .name").first.text_content() == "height, mean"
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.parametrize("make", [small, urns_in_blocks])
def test_conditions_on_a_class(make, open_page):
    model = make()
    page = open_page(model)
    page.get_by_role("radiogroup", name="x1", exact=True).get_by_label("on").check()
    page.locator("#given").select_option("1")
    label = model.classes_[1]
    found = page.evaluate("[...panel.result.marginals]")
    np.testing.assert_allclose(found, model.marginals({1: 1}, given_class=label), atol=1e-9)
    best = model.most_probable({1: 1}, label=label)
    assert page.evaluate("[...panel.result.completion]") == best.X.tolist()
    assert page.evaluate("panel.result.completionLogProb") == pytest.approx(best.log_prob)
    assert page.locator("#best-class").text_content() == f"The class is known: {label}."
    assert page.locator("#next li").count() == 0
    page.get_by_role("button", name="Clear all").click()
    assert page.locator("#given").input_value() == "-1"
    np.testing.assert_allclose(
        page.evaluate("[...panel.result.marginals]"), model.marginals(), atol=1e-9
    )


@pytest.mark.parametrize("make", [mixture, urns])
def test_asks_what_tells_most(make, open_page):
    model = make()
    page = open_page(model)
    page.get_by_role("radiogroup", name="x1", exact=True).get_by_label("on").check()
    gains = model.information_gain({1: 1})
    np.testing.assert_allclose(page.evaluate("[...panel.result.gains]"), gains, atol=1e-9)
    names = page.locator("#next .name").all_text_contents()
    assert names == [f"x{j}" for j in np.argsort(-gains, kind="stable")[:5]]
    page.get_by_role("button", name=f"{names[0]} is off", exact=True).click()
    assert page.evaluate("(j) => panel.evidence[j]", int(names[0][1:])) == 0
    assert names[0] not in page.locator("#next .name").all_text_contents()


@pytest.mark.parametrize("family", ["tree", "weighted tree", "count tree", "hidden tree"])
def test_trees_are_drawn(family, open_page):
    changes = np.random.default_rng(0).random((400, 7)) < 0.15
    changes[:, 0] = np.arange(400) % 2
    X = np.cumsum(changes, axis=1) % 2
    blocks = [[0, 1], [2, 3], [4], [5, 6]] if "given" in REGISTRY[family].blocks else "auto"
    model = ExchangeableMixture(2, family=family, blocks=blocks, tol=0.1, random_state=0).fit(X)
    page = open_page(model, width=390)
    y = int(np.argmax(model.weights_))
    assert len(model.edges_[y]) > 0
    assert page.locator("#tree .edge").count() == len(model.edges_[y])
    if blocks == "auto":
        expected = {f"x{j}" for j in range(7)}
    else:
        expected = {", ".join(f"x{j}" for j in block) for block in model.partitions_[y]}
    assert set(page.locator("#tree text").all_text_contents()) == expected
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_only_models_with_edges_have_trees(open_page):
    assert open_page(small()).locator("#trees").is_hidden()


def test_large_trees_are_left_out(open_page):
    X, _ = rows_of(100, 90, 2)
    page = open_page(ExchangeableMixture(1, family="tree", random_state=0).fit(X))
    assert page.locator("#tree-card").is_hidden()
    assert "more than 80 nodes are not drawn" in page.locator("#trees-note").text_content()


def test_answers_stay_in_sight_on_a_telephone(open_page):
    page = open_page(mixture(), width=390, height=800)
    page.locator("#variables li").nth(3).scroll_into_view_if_needed()
    page.locator("#variables li").nth(3).get_by_label("on").check()
    answer = page.locator("#in-sight")
    box = answer.bounding_box()
    assert 0 <= box["y"] <= 800 - box["height"]
    assert answer.text_content() == page.locator("#best-class").text_content()
    assert open_page(mixture()).locator("#in-sight").is_hidden()


def test_bad_input(tmp_path):
    with pytest.raises(TypeError, match="a report is about"):
        report_html(object())
    with pytest.raises(ValueError, match="names has 2 entries, the model has 5 variables"):
        write_report(small(), tmp_path / "x.html", names=["a", "b"])
    assert not list(tmp_path.iterdir())
