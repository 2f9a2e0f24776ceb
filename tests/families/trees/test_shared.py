"""Many classes of the same edges are answered together, as one by one."""

import numpy as np
import pytest

from exchangeable.data.observed import Observed, as_observed
from exchangeable.families.common.log_linear.model import LogLinearModel
from exchangeable.families.contract import Model
from exchangeable.families.joined import JoinedModel
from exchangeable.families.mixture import Mixture
from exchangeable.families.trees import shared
from exchangeable.families.trees.model import TreeModel
from exchangeable.queries import answers


def trees(n, n_classes, n_trees, rng, scale=1.0):
    """Return classes of a few forests, dealt out in turn, with random parameters."""
    parents = np.empty((n, n_trees), dtype=np.int32)
    for number in range(n_trees):
        names = rng.permutation(n)
        for position, v in enumerate(names):
            above = rng.integers(-1, position)
            parents[v, number] = n if above < 0 else names[above]
    parent = np.ascontiguousarray(parents[:, np.arange(n_classes) % n_trees])
    slope, pair = rng.normal(0.0, scale, (2, n, n_classes))
    model = TreeModel.make(np.zeros(n_classes), slope, parent, pair)
    return TreeModel.make(-model.log_totals(), slope, parent, pair)


def holed(n_rows, n, rng):
    """Return rows of which about half is known, the first of nothing and the second of all."""
    symbols = rng.integers(-1, 2, (n_rows, n)).astype(np.int8)
    symbols[0], symbols[1] = -1, rng.integers(0, 2, n)
    return symbols


@pytest.mark.parametrize(("n", "n_classes", "n_trees"), [(1, 64, 1), (9, 130, 1), (30, 300, 3)])
def test_scores_and_marginals_are_those_of_each_class(n, n_classes, n_trees):
    rng = np.random.default_rng(n)
    model = trees(n, n_classes, n_trees, rng)
    observed = Observed.from_symbols(holed(20, n, rng))
    assert len(model._shared) == (n_trees if n > 1 else 1)
    each = LogLinearModel.score(model, observed)
    np.testing.assert_allclose(model.score(observed), each, rtol=0, atol=1e-10)
    shares = rng.random((20, n_classes))
    shares[:, ::3] = 0.0
    expected = Model.mean_marginals(model, observed, shares)
    np.testing.assert_allclose(model.mean_marginals(observed, shares), expected, rtol=1e-9)


@pytest.mark.parametrize("n_trees", [1, 2])
def test_complete_rows_are_scored_by_products(n_trees):
    rng = np.random.default_rng(n_trees)
    model = trees(12, 300, n_trees, rng)
    observed = as_observed(rng.integers(0, 2, (40, 12)).astype(np.uint8), None)
    each = LogLinearModel.score(model, observed)
    np.testing.assert_allclose(model.score(observed), each, rtol=0, atol=1e-10)


def test_a_row_with_hundreds_of_known_entries_does_not_underflow():
    rng = np.random.default_rng(5)
    model = trees(900, 64, 1, rng, scale=2.0)
    symbols = rng.integers(0, 2, (3, 900)).astype(np.int8)
    symbols[:, ::7] = -1
    observed = Observed.from_symbols(symbols)
    assert model._shared
    each = LogLinearModel.score(model, observed)
    assert each.max() < -760  # exp of this is zero
    np.testing.assert_allclose(model.score(observed), each, rtol=1e-11)


def test_negligible_shares_change_nothing():
    rng = np.random.default_rng(6)
    model = trees(8, 192, 1, rng)
    observed = Observed.from_symbols(holed(5, 8, rng))
    shares = np.zeros((5, 192))
    shares[:, 3] = 1.0
    tiny = shares + 1e-24
    np.testing.assert_allclose(
        model.mean_marginals(observed, tiny), model.mean_marginals(observed, shares), rtol=1e-14
    )


@pytest.mark.parametrize("case", ["few classes", "many trees", "certain"])
def test_classes_that_share_too_little_are_answered_one_by_one(case):
    rng = np.random.default_rng(7)
    n_classes, n_trees = {"few classes": (8, 1), "many trees": (128, 64)}.get(case, (128, 1))
    model = trees(8, n_classes, n_trees, rng, scale=100.0 if case == "certain" else 1.0)
    observed = Observed.from_symbols(holed(5, 8, rng))
    assert not model._shared
    shares = rng.random((5, n_classes))
    expected = Model.mean_marginals(model, observed, shares)
    assert np.array_equal(model.mean_marginals(observed, shares), expected)


def test_joined_models_sum_the_marginals_of_their_parts():
    rng = np.random.default_rng(8)
    n = 10
    slope = rng.normal(size=(n, 5))
    independent = TreeModel.make(-np.logaddexp(0.0, slope).sum(axis=0), slope)
    joined = JoinedModel([trees(n, 64, 1, rng), independent, trees(n, 4, 2, rng)])
    shares = rng.random((6, joined.n_classes))
    observed = Observed.from_symbols(holed(6, n, rng))
    expected = Model.mean_marginals(joined, observed, shares)
    np.testing.assert_allclose(joined.mean_marginals(observed, shares), expected, rtol=1e-10)


def test_marginals_of_many_classes_are_found_in_parts(monkeypatch):
    rng = np.random.default_rng(9)
    mixture = Mixture(trees(10, 200, 2, rng), np.log(rng.dirichlet(np.ones(200))))
    observed = Observed.from_symbols(holed(50, 10, rng))
    whole = answers.marginals(mixture, observed)
    monkeypatch.setattr(answers, "MOST_CELLS", 1000)
    parts = []
    own = shared.mean_marginals

    def counted(groups, part, shares):
        parts.append(part.n_rows)
        return own(groups, part, shares)

    monkeypatch.setattr(shared, "mean_marginals", counted)
    np.testing.assert_allclose(answers.marginals(mixture, observed, 2), whole, rtol=1e-12)
    assert max(parts) == 5
    assert sum(parts) == 50
