"""Log-linear scores as mixtures, against enumeration: P(y | x) is the softmax of the scores."""

import numpy as np
import pytest
from scipy.special import log_softmax, logsumexp

from enumeration import all_states
from exchangeable.arrays import UNASSIGNED
from exchangeable.data.observed import Observed
from exchangeable.data.rows import as_rows
from exchangeable.families import normalised
from exchangeable.families.common.log_linear import scores as log_linear
from exchangeable.families.common.log_linear.scores import LogLinear
from exchangeable.families.common.tables import Tables
from exchangeable.partitions import Partition

N, K = 9, 3
FORMS = ("linear", "counts", "blocks", "tree", "weighted tree")


def scores_of(form: str, scale: float = 1.0, seed: int = 0) -> LogLinear:
    """Return random scores of three classes over nine variables."""
    rng = np.random.default_rng(seed)
    base, slope = rng.normal(0, scale, K), rng.normal(0, scale, (N, K))
    if form == "linear":
        return LogLinear(base, slope)
    counts = rng.normal(0, scale, (N + 1, K))
    if form == "counts":
        return LogLinear(base, slope, by_count=counts)
    if form == "blocks":
        kinds = ([0] * N, [0, 1, 1, 0, 2, 2, 2, 0, 1], range(N))
        tables = Tables.layout([Partition.from_labels(np.array(kind)) for kind in kinds])
        tables.values[:] = rng.normal(0, scale, tables.values.size)
        return LogLinear(base, slope, tables=tables)
    parent = np.array([[N] + [rng.integers(j) for j in range(1, N)] for _ in range(K)]).T
    pair = np.where(parent < N, rng.normal(0, scale, (N, K)), 0.0)
    trees = (np.ascontiguousarray(parent, dtype=np.int32), pair)
    return LogLinear(base, slope, *trees, *([counts] if form == "weighted tree" else []))


def by_hand(scores: LogLinear, X: np.ndarray) -> np.ndarray:
    """Return the scores of rows, term by term."""
    out = scores.base + X @ scores.slope
    for y in range(K):
        if scores.pair.size:
            padded = np.concatenate([X, np.zeros((len(X), 1))], axis=1)
            out[:, y] += (X * padded[:, scores.parent[:, y]]) @ scores.pair[:, y]
        if scores.by_count.size:
            out[:, y] += scores.by_count[X.sum(axis=1).astype(int), y]
        if scores.tables.values.size:
            labels = scores.tables.labels[:, y]
            for block in np.unique(labels):
                ones = X[:, labels == block].sum(axis=1).astype(int)
                out[:, y] += scores.tables.values[scores.tables.starts[block] + ones]
    return out


@pytest.mark.parametrize("scale", [1.0, 8.0])
@pytest.mark.parametrize("form", FORMS)
def test_joint_probabilities_are_the_scores_normalised(form: str, scale: float) -> None:
    scores, X = scores_of(form, scale), all_states(N)
    mixture, log_total = normalised(scores)
    wanted = by_hand(scores, X)
    assert log_total == pytest.approx(logsumexp(wanted))
    found = mixture.joint(Observed(as_rows(X, None)))
    np.testing.assert_allclose(found, wanted - log_total, atol=1e-9)
    assert logsumexp(found) == pytest.approx(0.0, abs=1e-9)
    np.testing.assert_allclose(mixture.model.log_totals(), 0.0, atol=1e-9)


@pytest.mark.parametrize("form", FORMS)
def test_holes_are_summed_out(form: str) -> None:
    scores, X = scores_of(form, 2.0), all_states(N)
    mixture = normalised(scores)[0]
    wanted = by_hand(scores, X)
    rng = np.random.default_rng(1)
    symbols = np.where(rng.random((40, N)) < 0.5, UNASSIGNED, rng.integers(0, 2, (40, N)))
    symbols[0] = UNASSIGNED
    found = mixture.log_posterior(Observed.from_symbols(symbols))[0]
    for row, posterior in zip(symbols, found, strict=True):
        agree = ((row == X) | (row == UNASSIGNED)).all(axis=1)
        np.testing.assert_allclose(
            posterior, log_softmax(logsumexp(wanted[agree], axis=0)), atol=1e-9
        )


@pytest.mark.parametrize("form", FORMS)
def test_a_model_gives_back_the_scores_it_was_made_of(form: str) -> None:
    scores, X = scores_of(form), as_rows(all_states(N), None)
    mixture, log_total = normalised(scores)
    again = mixture.model.log_linear()
    assert again is not None
    found = log_linear.score(X, again) + mixture.log_prior
    np.testing.assert_allclose(found, log_linear.score(X, scores) - log_total, atol=1e-9)


def test_scaled_scores_and_added_terms() -> None:
    X = all_states(N)
    for form in FORMS:
        scores = scores_of(form)
        base, slope = np.arange(K) * 0.5, np.random.default_rng(2).normal(size=(N, 1))
        changed = scores.scaled(0.3).plus(base, slope)
        wanted = 0.3 * by_hand(scores, X) + base + X @ slope
        np.testing.assert_allclose(by_hand(changed, X), wanted, atol=1e-12)


def test_pairs_and_blocks_together_belong_to_no_family() -> None:
    trees, blocks = scores_of("tree"), scores_of("blocks")
    both = LogLinear(trees.base, trees.slope, trees.parent, trees.pair, tables=blocks.tables)
    with pytest.raises(ValueError, match="no family"):
        normalised(both)


def test_a_hundred_thousand_words_with_large_weights() -> None:
    rng = np.random.default_rng(0)
    slope = rng.uniform(-30, 30, (100_000, 2))
    mixture, _ = normalised(LogLinear(np.array([0.3, -0.3]), slope))
    X = rng.random((4, 100_000)) < 0.01
    wanted = log_softmax([0.3, -0.3] + X @ slope, axis=1)
    found = mixture.log_posterior(Observed(as_rows(X, None)))[0]
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-8)
    symbols = np.where(rng.random(X.shape) < 0.5, UNASSIGNED, X).astype(np.int8)
    assert np.isfinite(mixture.joint(Observed.from_symbols(symbols))).all()


def test_an_urn_of_many_variables_keeps_its_digits() -> None:
    rng = np.random.default_rng(0)
    n = 1_500
    slope, counts = rng.uniform(-30, 30, (n, 2)), rng.normal(0, 3, (n + 1, 2))
    scores = LogLinear(np.zeros(2), slope, by_count=counts)
    mixture, _ = normalised(scores)
    X = rng.random((6, n)) < np.array([[0.0], [0.01], [0.2], [0.5], [0.9], [1.0]])
    wanted = log_softmax(X @ slope + counts[X.sum(axis=1)], axis=1)
    found = mixture.log_posterior(Observed(as_rows(X, None)))[0]
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-7)
    np.testing.assert_allclose(mixture.model.log_totals(), 0.0, atol=1e-9)
