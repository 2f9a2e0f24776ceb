"""The report page in a real browser: its numbers are the library's, and everybody can use it."""

import numpy as np
import pytest

from exchangeable import ExchangeableClassifier, ExchangeableMixture
from exchangeable.report import report_html, write_report
from page_answers import assert_answers_are_pythons
from page_models import (
    excluding,
    large,
    mixture,
    pooled,
    rows_of,
    small,
    urns,
    urns_in_blocks,
)

HTML_NAMES = [
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(2)</script>",
    "a & b",
    '"quoted" name',
    "<!--data-->",
]


def known(page):
    """What is set, None for the unknown."""
    return page.evaluate("[...panel.evidence].map((value) => (unknown(value) ? null : value))")


@pytest.mark.parametrize("make", [small, large, mixture, pooled, excluding, urns, urns_in_blocks])
def test_numbers_are_the_librarys(make, open_page):
    model = make()
    page = open_page(model)
    rng = np.random.default_rng(1)
    n = model.n_features_in_
    rows = [
        np.where(rng.random(n) < share, rng.random(n) < 0.3, np.nan)
        for share in (0.0, 0.1, 0.5, 1.0)
    ]
    assert_answers_are_pythons(page, model, rows)


def test_counts_are_the_librarys(open_page):
    for model in (mixture(), ExchangeableMixture(2, family="urns", tol=0.1, random_state=0)):
        if not hasattr(model, "weights_"):
            model.fit(rows_of(200, 8, 2)[0])
        page = open_page(model)
        for y, blocks in enumerate(model.count_probabilities_):
            for b, expected in enumerate(blocks):
                found = page.evaluate("([y, b]) => [...blocks.counts(y, b)]", [y, b])
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
    assert known(page) == [None, None, None, 0, None]
    page.get_by_role("button", name="Clear all").click()
    assert known(page) == [None] * 5


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
    assert known(page) == [None, None, None, 1, None]
    page.keyboard.press("ArrowLeft")
    assert known(page) == [None, None, None, 0, None]
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
