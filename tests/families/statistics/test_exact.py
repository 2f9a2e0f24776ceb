"""Blocks with statistics against enumeration, and against a lone EVM."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp

import exchangeable
from enumeration import all_states
from exchangeable import (
    EVM,
    AtLeast,
    Blocks,
    Count,
    ExchangeableClassifier,
    ExchangeableDensity,
    ExchangeableMixture,
    FiniteState,
    FirstAndLast,
    ModelFileError,
    Nested,
    Pooled,
    Runs,
    Transitions,
    WeightedSum,
)
from exchangeable.structure.statistic_blocks import log_evidence
from own_statistic import Alternations

N = 8
STATES = all_states(N)
rng = np.random.default_rng(5)


def chains(n: int, m: int, stay: float) -> np.ndarray[Any, Any]:
    """Return rows of a Markov chain that keeps its state with a given probability."""
    moves = rng.random((n, m)) >= stay
    moves[:, 0] = rng.random(n) < 0.5
    return np.cumsum(moves, axis=1) % 2


KIND = np.repeat([0, 1], 120)
X = np.hstack(
    [
        np.vstack([chains(120, 5, 0.9), chains(120, 5, 0.3)]),
        (rng.random((240, 3)) < np.where(KIND[:, None] == 0, 0.2, 0.7)).astype(int),
    ]
).astype(float)
HOLED = np.where(rng.random(X.shape) < 0.3, np.nan, X)
BLOCKS: list[Any] = [([4, 3, 2, 1, 0], Runs)]


def log_p_by_hand(model: ExchangeableMixture, y: int) -> np.ndarray[Any, Any]:
    """Return log P(x | y) of every state, block by block in plain words."""
    fitted = model._model
    (block,), rest = fitted.blocks, fitted.rest
    total = np.zeros(len(STATES))
    for i, state in enumerate(STATES):
        runs = 1 + int(np.count_nonzero(np.diff(state[block.variables])))
        ways = 2 * [1, 4, 6, 4, 1][runs - 1]
        total[i] = block.log_q[runs - 1, y] - np.log(ways)
    for variables, q in zip(
        rest.partitions[y].blocks, rest.only(np.array([y])).count_probabilities()[0], strict=True
    ):
        ones = STATES[:, fitted.others[variables]].sum(axis=1)
        ways = np.bincount(all_states(len(variables)).astype(int).sum(axis=1))
        total += np.log(q[ones] / ways[ones])
    return total


@pytest.mark.parametrize("data", [X, HOLED], ids=["complete", "holes"])
@pytest.mark.parametrize("pooling", [None, 4.0])
def test_scores_are_those_of_the_formula(data: Any, pooling: float | None) -> None:
    model = ExchangeableMixture(2, blocks=BLOCKS, pooling=pooling, random_state=0).fit(data)
    by_hand = np.stack([log_p_by_hand(model, y) for y in range(2)], axis=1)
    expected = logsumexp(by_hand + np.log(model.weights_), axis=1)
    np.testing.assert_allclose(model.score_samples(STATES), expected, atol=1e-10)
    assert logsumexp(expected) == pytest.approx(0.0, abs=1e-10)


@pytest.mark.filterwarnings("ignore:EM did not converge")
@pytest.mark.parametrize("pooling", [None, 4.0])
def test_the_same_model_by_counts_is_the_paper_s(pooling: float | None) -> None:
    """Numbers of ones as statistics are blocks that are given; holes only start differently."""
    groups = [[0, 2, 4], [1, 3, 5], [6], [7]]
    counted = [(group, Count) for group in groups]
    options: dict[str, Any] = dict(pooling=pooling, random_state=1, tol=0.0, max_iter=15, n_init=2)
    plain = ExchangeableMixture(3, blocks=groups, **options).fit(X)
    ours = ExchangeableMixture(3, blocks=counted, **options).fit(X)
    np.testing.assert_allclose(ours.history_, plain.history_, rtol=1e-9)
    np.testing.assert_allclose(ours.score_samples(STATES), plain.score_samples(STATES), rtol=1e-8)
    options |= dict(tol=1e-13, max_iter=3000)
    plain = ExchangeableMixture(1, blocks=groups, **options).fit(HOLED)
    ours = ExchangeableMixture(1, blocks=counted, **options).fit(HOLED)
    np.testing.assert_allclose(ours.score_samples(STATES), plain.score_samples(STATES), rtol=1e-4)


def test_one_class_is_a_lone_evm() -> None:
    complete = X[:, :5].astype(int)
    model = ExchangeableMixture(1, blocks=[(range(5), "transitions")], alpha=0.5).fit(complete)
    alone = EVM(Transitions(5)).fit(complete, alpha=0.5)
    states = all_states(5)
    np.testing.assert_allclose(model.score_samples(states), alone.score_samples(states), atol=1e-10)
    given = {0: 1, 3: 0}
    np.testing.assert_allclose(model.marginals(given), alone.marginals(given), atol=1e-10)


def test_images_by_pooled_squares() -> None:
    """The paper's other example: how many squares of an image have enough ink."""
    image = rng.random((60, 16)) < 0.4
    model = ExchangeableMixture(1, blocks=[(range(16), Pooled(4, 2, 1))]).fit(image)
    assert logsumexp(model.score_samples(all_states(16))) == pytest.approx(0.0, abs=1e-9)


@pytest.mark.filterwarnings("ignore:EM did not converge")
def test_holes_are_fitted_by_exact_expectations() -> None:
    """EM's likelihood is that of what is known, by summing over all completions."""
    model = ExchangeableMixture(2, blocks=BLOCKS, random_state=0, max_iter=5, tol=0.0).fit(HOLED)
    log_p = model.score_samples(STATES)
    each = [logsumexp(log_p[((row == STATES) | np.isnan(row)).all(axis=1)]) for row in HOLED[:40]]
    np.testing.assert_allclose(model.score_samples(HOLED[:40]), each, atol=1e-10)
    assert model.score(HOLED) == pytest.approx(model.history_[0][-1], abs=1e-9)


def test_classes_that_only_order_tells_apart() -> None:
    rows = X[:, :5]
    ordered = ExchangeableClassifier(blocks=[(range(5), "runs")]).fit(rows, KIND)
    counted = ExchangeableClassifier().fit(rows, KIND)
    assert ordered.score(rows, KIND) > counted.score(rows, KIND)
    assert ordered.score(rows, KIND) > 0.85
    some = ordered.predict_proba(np.where(rng.random(rows.shape) < 0.3, np.nan, rows))
    assert np.isfinite(some).all()


def test_evidence_chooses_the_statistic_that_made_the_rows() -> None:
    choice = [(range(5), ["count", "first and last", "runs"])]
    model = ExchangeableMixture(1, blocks=choice).fit(X[:, :5])
    assert repr(model._model.blocks[0].statistic) == "Runs(5)"
    coins = (rng.random((240, 5)) < 0.3).astype(int)
    model = ExchangeableMixture(1, blocks=choice).fit(coins)
    assert repr(model._model.blocks[0].statistic) == "Count(5)"


class Counted(Runs):
    """Takes note of how many rows it was computed for."""

    n_rows = 0

    def _index(self, X: Any) -> Any:
        self.n_rows += len(X)
        return super()._index(X)

    def _log_sizes_each(self, rows: Any) -> Any:
        self.n_rows += len(rows)
        return super()._log_sizes_each(rows)


@pytest.mark.filterwarnings("ignore:EM did not converge")
def test_values_are_computed_once_per_row_whatever_em_does() -> None:
    for data in (X, HOLED):
        distinct = len(np.unique(np.nan_to_num(data, nan=-1.0), axis=0))
        runs = Counted(5)
        options: dict[str, Any] = dict(n_init=3, max_iter=15, tol=0.0, random_state=0)
        ExchangeableMixture(3, blocks=[(range(5), runs)], **options).fit(data)
        assert 0 < runs.n_rows <= distinct
    runs = Counted(5)
    search: dict[str, Any] = dict(max_components=3, n_init=2, random_state=0, n_jobs=1)
    model = ExchangeableDensity(["blocks"], blocks=[(range(5), runs)], **search).fit(HOLED)
    assert len(model.table_) > 3
    assert runs.n_rows <= 2 * len(HOLED)  # as they are, and filled for the pooled prior


def test_all_starts_choose_the_same_statistic() -> None:
    choice = [(range(5), ["count", "first and last", "runs", "transitions"])]
    average = ExchangeableMixture(2, blocks=choice, n_init=6, combine="average", random_state=0)
    assert average.fit(HOLED).weights_.size == 12


def test_the_evidence_is_a_sequence_of_predictions() -> None:
    """The chain rule: each row predicted by those before it, as a Dirichlet prior says."""
    runs, prior = Runs(4), 0.7
    position = runs.index(chains(12, 4, 0.6))
    seen, total = np.zeros(4), 0.0
    sizes = runs.log_sizes()
    for t in position:
        total += np.log((seen[t] + prior) / (seen.sum() + 4 * prior)) - sizes[t]
        seen[t] += 1
    assert log_evidence(seen[:, None], sizes, prior) == pytest.approx(total, rel=1e-12)


def test_feature_names_and_the_rest_is_learned() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X.astype(int), columns=list("abcdefgh"))
    model = ExchangeableClassifier(blocks=[(list("abcde"), "runs")]).fit(frame, KIND)
    for blocks in model.partitions_:
        assert [0, 1, 2, 3, 4] in [sorted(block.tolist()) for block in blocks]
        assert sorted(np.concatenate(blocks).tolist()) == list(range(8))
    assert 0 < model.marginals({"a": 1})[1] < 1


def test_blocks_of_the_rest_change_while_em_runs() -> None:
    wide = np.hstack([X, (rng.random((240, 6)) < np.where(KIND[:, None] == 0, 0.1, 0.6))])
    model = ExchangeableMixture(2, blocks=BLOCKS, random_state=0, n_init=2).fit(wide)
    sizes = [sorted(len(block) for block in blocks) for blocks in model.partitions_]
    assert all(max(size for size in each if size != 5) > 1 for each in sizes)


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        ([([0, 1], "hops")], "statistic 'hops'; expected one of count"),
        ([([0, 1, 2], Transitions(4))], r"block 0 has 3 variables, but Transitions\(4\) reads 4"),
        ([([0, 1], Runs), ([1, 2], Runs)], "name the variable 1 twice"),
        ([([0, 0], Runs)], "name the variable 0 twice"),
        ([([0, 99], Runs)], "names the variable 99; expected numbers from 0 to 7"),
        ([(["a", "b"], Runs)], "names 'a', which is not a feature of X"),
        ([([], Runs)], "block 0 is empty"),
        ([([0, 1], [])], "empty list of statistics"),
        ([([0, 1], 3)], "statistic 3; expected a Statistic or its name"),
    ],
)
def test_blocks_that_make_no_sense(blocks: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        ExchangeableMixture(2, blocks=blocks).fit(X)


def test_families_without_statistics_say_so() -> None:
    with pytest.raises(ValueError, match="do not go with family='urns'; they go with blocks"):
        ExchangeableMixture(2, family="urns", blocks=BLOCKS).fit(X)
    with pytest.raises(ValueError, match="edges of trees, which family='blocks' does not have"):
        ExchangeableMixture(2, blocks=Blocks(BLOCKS, shrinkage=2.0)).fit(X)


def test_blocks_with_statistics_may_stand_in_an_object() -> None:
    plain, inside = (
        ExchangeableMixture(2, blocks=blocks, random_state=0).fit(X).score_samples(X)
        for blocks in (BLOCKS, Blocks(BLOCKS))
    )
    np.testing.assert_array_equal(plain, inside)


class TestFiles:
    def test_statistics_of_the_library(self, tmp_path: Path) -> None:
        blocks = [([0, 1, 2, 3], Pooled(2, 1, 0)), ([4, 5], [Count(2), Transitions(2)])]
        model = ExchangeableClassifier(blocks=blocks).fit(HOLED, KIND)
        exchangeable.save(model, tmp_path / "model.exch")
        again = exchangeable.load(tmp_path / "model.exch")
        np.testing.assert_array_equal(again.predict_proba(HOLED), model.predict_proba(HOLED))
        assert repr(again.blocks) == repr(model.blocks)
        refitted = again.fit(HOLED, KIND)
        np.testing.assert_array_equal(refitted.predict_proba(HOLED), model.predict_proba(HOLED))

    def test_a_statistic_of_one_s_own_must_be_trusted(self, tmp_path: Path) -> None:
        model = ExchangeableMixture(1, blocks=[(range(8), Alternations(8, points=2))]).fit(X)
        path = tmp_path / "model.exch"
        exchangeable.save(model, path)
        with pytest.raises(ModelFileError, match=r"own_statistic:Alternations.*If you trust it"):
            exchangeable.load(path)
        with pytest.raises(ModelFileError, match="If you trust it"):
            exchangeable.load(path, statistics=["os:system"])
        again = exchangeable.load(path, statistics=["own_statistic:Alternations"])
        np.testing.assert_array_equal(again.score_samples(STATES), model.score_samples(STATES))
        with pytest.raises(ModelFileError, match="If you trust it"):
            exchangeable.load(path)  # trust ends with the call

    @pytest.mark.parametrize("outer", [WeightedSum([1, 2, 0, 4]), Runs(4), FirstAndLast(4)])
    def test_statistics_of_statistics(self, outer: FiniteState, tmp_path: Path) -> None:
        pairs = Nested(outer, AtLeast(2, 1), [[0, 1], [2, 3], [4, 5], [6, 7]])
        model = ExchangeableMixture(1, blocks=[(range(8), pairs)]).fit(X)
        exchangeable.save(model, tmp_path / "model.exch")
        again = exchangeable.load(tmp_path / "model.exch")
        np.testing.assert_array_equal(again.score_samples(STATES), model.score_samples(STATES))

    def test_one_s_own_inside_another_must_be_trusted(self, tmp_path: Path) -> None:
        mine = Nested(Alternations(4), AtLeast(2, 1), [[0, 1], [2, 3], [4, 5], [6, 7]])
        model = ExchangeableMixture(1, blocks=[(range(8), mine)]).fit(X)
        path = tmp_path / "model.exch"
        exchangeable.save(model, path)
        with pytest.raises(ModelFileError, match="If you trust it"):
            exchangeable.load(path)
        again = exchangeable.load(path, statistics=["own_statistic:Alternations"])
        np.testing.assert_array_equal(again.score_samples(STATES), model.score_samples(STATES))

    def test_functions_cannot_be_saved(self, tmp_path: Path) -> None:
        parity = FiniteState(8, lambda odd, x: (odd ^ x, 0), start=0, final=lambda odd: odd)
        model = ExchangeableMixture(1, blocks=[(range(8), parity)]).fit(X)
        with pytest.raises(TypeError, match="never code"):
            exchangeable.save(model, tmp_path / "model.exch")
        assert list(tmp_path.iterdir()) == []
