"""The pass over rows with holes, all classes side by side, against the pass for any urns."""

import numpy as np
import pytest

from exchangeable.data.examples import Examples
from exchangeable.data.observed import Observed
from exchangeable.families.common.log_linear.model import LogLinearModel, expect_rows
from exchangeable.families.urns import hole_pass
from exchangeable.families.urns.model import UrnModel
from exchangeable.partitions import Partition


def made_model(rng, n_variables, n_classes, spread=1.0):
    """Return urns of one block with random weights and distributions of counts."""
    partition = Partition.from_labels(np.zeros(n_variables, dtype=int))
    log_q = [np.log(rng.dirichlet(np.ones(n_variables + 1))) for _ in range(n_classes)]
    weights = spread * rng.normal(size=(n_variables, n_classes))
    return UrnModel.make([partition] * n_classes, weights, log_q)


def made_examples(rng, n_rows, n_variables, clamped):
    """Return rows with holes, some of them with a class."""
    symbols = rng.integers(0, 2, (n_rows, n_variables)).astype(np.int8)
    symbols[rng.random(symbols.shape) < 0.4 * rng.random((n_rows, 1))] = -1
    symbols[0] = -1
    observed = Observed.from_symbols(symbols)
    clamp = np.where(rng.random(n_rows) < 0.3, 0, -1) if clamped else np.empty(0, dtype=np.int64)
    return Examples(observed.ones, rng.random(n_rows), clamp, holes=observed.holes)


def plainly(model, examples, log_prior, given):
    """Return what the pass for any urns sums."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(UrnModel, "expect_holes", LogLinearModel.expect_holes)
        return expect_rows(model, examples, log_prior, 1, given)


@pytest.mark.parametrize(
    ("n_variables", "n_classes", "spread", "n_jobs"),
    [(1, 1, 1.0, 1), (9, 2, 1.0, 1), (40, 3, 3.0, 2), (70, 150, 1.0, 1)],
)
@pytest.mark.parametrize("held", [False, True])
def test_the_pass_finds_what_the_pass_for_any_urns_finds(
    n_variables, n_classes, spread, n_jobs, held
):
    rng = np.random.default_rng(n_variables)
    model = made_model(rng, n_variables, n_classes, spread)
    examples = made_examples(rng, 60, n_variables, clamped=not held)
    log_prior = np.log(rng.dirichlet(np.ones(n_classes)))
    given = rng.dirichlet(np.ones(n_classes), size=60) if held else None
    found = model.expect_holes(examples, log_prior, n_jobs, given)
    plain = plainly(model, examples, log_prior, given)
    assert found.log_likelihood == pytest.approx(plain.log_likelihood, rel=1e-11)
    np.testing.assert_allclose(found.posterior, plain.posterior, atol=1e-11)
    np.testing.assert_allclose(found.totals, plain.totals, rtol=1e-11)
    np.testing.assert_allclose(found.ones, plain.ones, rtol=1e-8, atol=1e-11)
    np.testing.assert_allclose(found.counts, plain.counts, rtol=1e-8, atol=1e-11)


def test_what_the_pass_cannot_do_is_left_to_the_other(monkeypatch):
    rng = np.random.default_rng(0)
    model, examples = made_model(rng, 6, 2), made_examples(rng, 20, 6, clamped=False)
    log_prior = np.log([0.5, 0.5])
    assert model.expect_holes(examples, log_prior, 1, None) is not None
    monkeypatch.setattr(hole_pass, "MOST_HOLES", 5)
    assert model.expect_holes(examples, log_prior, 1, None) is None
    monkeypatch.setattr(hole_pass, "MOST_HOLES", 6)
    monkeypatch.setattr(hole_pass, "WIDEST", 0.0)
    assert model.expect_holes(examples, log_prior, 1, None) is None
    two = Partition.from_labels(np.arange(6) % 2)
    log_q = np.log(np.full(8, 0.25))
    blocks = UrnModel.make([two] * 2, rng.normal(size=(6, 2)), [log_q] * 2)
    assert blocks.expect_holes(examples, log_prior, 1, None) is None


def test_an_impossible_row_is_left_to_the_other():
    """Where no count is possible the sum is 0, which underflow cannot be told from."""
    partition = Partition.from_labels(np.zeros(4, dtype=int))
    log_q = np.array([0.0, -np.inf, -np.inf, -np.inf, -np.inf])
    model = UrnModel.make([partition], np.zeros((4, 1)), [log_q])
    symbols = np.array([[1, 0, 0, -1], [0, 0, -1, -1]], dtype=np.int8)
    observed = Observed.from_symbols(symbols)
    examples = Examples(observed.ones, np.ones(2), holes=observed.holes)
    assert model.expect_holes(examples, np.zeros(1), 1, None) is None
    assert expect_rows(model, examples, np.zeros(1), 1).log_likelihood == -np.inf
