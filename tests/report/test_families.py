"""What the page shows of every family and kind of column: sentences, cards and trees."""

import numpy as np
import pytest

from em_families import BY_EM
from exchangeable import ExchangeableDensity, ExchangeableMixture
from exchangeable.families import REGISTRY
from page_models import of_other_kinds, rows_of, small


@pytest.mark.parametrize("family", BY_EM)
def test_every_family_says_what_it_is_made_of(family, open_page):
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


def test_joined_families_are_all_named(open_page):
    X, _ = rows_of(120, 6, 3, seed=1)
    model = ExchangeableDensity(["urns", "tree"], n_init=1, max_components=2, random_state=0).fit(X)
    assert len(model.members_) == 2
    told = open_page(model).locator("#about").text_content()
    for member in model.members_:
        assert f"“{member['family']}”: {REGISTRY[member['family']].summary}." in told


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


def test_columns_of_other_kinds_have_cards_and_a_table(open_page):
    model = of_other_kinds()
    page = open_page(model, names=["flag", "height"], width=390)
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
