"""Hidden trees whose leaves read statistics, against enumeration of rows and hidden states."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import chisquare

import exchangeable
from enumeration import all_states
from exchangeable import (
    Blocks,
    ExchangeableDensity,
    ExchangeableMixture,
    ModelFileError,
    Pooled,
    Runs,
    Transitions,
)
from exchangeable.arrays import UNASSIGNED
from exchangeable.data.examples import merge_equal_rows
from exchangeable.data.observed import Observed
from exchangeable.data.rows import ColumnType
from exchangeable.families.common.em_data import InMemory
from exchangeable.families.leaf_trees import choice
from exchangeable.families.leaf_trees.leaves import Leaf
from exchangeable.families.leaf_trees.model import LeafModel
from exchangeable.families.leaf_trees.tree import LeafTree, States
from exchangeable.families.mixed.model import MixedModel
from exchangeable.families.mixed.parts.levels import Levels
from exchangeable.families.statistics.model import FittedBlock, MixedBlocksModel
from own_statistic import Alternations

H = 3
STATISTICS = {
    "sequences": [([4, 0, 2], Runs(3)), ([5, 1], Transitions(2)), ([3], None)],
    "an image": [([0, 2, 1, 3], Pooled(2, 2, 1)), ([4], None), ([5], None)],
    "a user's own": [([3, 1, 0, 2, 5], Alternations(5)), ([4], None)],
}
N = 6
STATES_OF_ROWS = all_states(N)
EVIDENCE = np.array(list(itertools.product((0, 1, UNASSIGNED), repeat=N)))


def random_leaf(rng: np.random.Generator, variables: Any, statistic: Any) -> Leaf:
    size = 2 if statistic is None else statistic.n_values
    log_q = np.log(rng.dirichlet(np.ones(size), size=H).T)
    own = np.arange(len(variables))
    if statistic is not None:
        block = FittedBlock(own, statistic, log_q)
        return Leaf(np.array(variables), MixedBlocksModel([block], None, np.empty(0, dtype=int)))
    types = (ColumnType("binary", 2),)
    return Leaf(np.array(variables), MixedModel(types, [Levels(own, types, log_q)], own))


def random_tree(name: str, seed: int = 0, states: Any = None) -> LeafTree:
    rng = np.random.default_rng(seed)
    leaves = [random_leaf(rng, *block) for block in STATISTICS[name]]
    n = len(leaves)
    parent = np.array([n, 0, 0][:n], dtype=np.int32)
    if n == 3 and seed % 2:
        parent = np.array([1, n, 0], dtype=np.int32)
    edges = rng.dirichlet(np.ones(H), size=(n, H))
    return LeafTree(States(parent, edges), leaves, np.arange(H) if states is None else states)


def leaf_chances(leaf: Leaf) -> Any:
    """P of every row of a leaf in each state, by how many rows share its value."""
    rows = all_states(leaf.variables.size)
    model: Any = leaf.model
    if isinstance(model, MixedModel):
        return np.exp(model.parts[0].log_shares)[rows[:, 0]]  # type: ignore[attr-defined]
    statistic, q = model.blocks[0].statistic, np.exp(model.blocks[0].log_q)
    value = np.array([statistic.position(t) for t in statistic.values[statistic.index(rows)]])
    return q[value] / np.bincount(value)[value][:, None]


def joint_by_hand(tree: LeafTree) -> Any:
    """P(row, hidden states | root's state) with an axis per leaf's state, after that of rows."""
    n, parent, edges = len(tree.leaves), tree.hidden.parent, tree.hidden.edges
    total = np.zeros((len(STATES_OF_ROWS), *(H,) * n))
    for hidden in itertools.product(range(H), repeat=n):
        chance = np.ones(len(STATES_OF_ROWS))
        for b, leaf in enumerate(tree.leaves):
            if parent[b] < n:
                chance *= edges[b, hidden[parent[b]], hidden[b]]
            place = STATES_OF_ROWS[:, leaf.variables] @ (1 << np.arange(leaf.variables.size)[::-1])
            chance *= leaf_chances(leaf)[place, hidden[b]]
        total[(slice(None), *hidden)] = chance
    return total


def by_hand(tree: LeafTree) -> Any:
    """P(row | root's state)."""
    root = int(np.flatnonzero(tree.hidden.parent == len(tree.leaves))[0])
    others = tuple(1 + b for b in range(len(tree.leaves)) if b != root)
    return joint_by_hand(tree).sum(axis=others)


def able(row: Any) -> Any:
    return ((row == UNASSIGNED) | (row == STATES_OF_ROWS)).all(axis=1)


@pytest.fixture(params=[(name, seed) for name in STATISTICS for seed in (0, 1)], ids=str)
def tree(request: Any) -> LeafTree:
    return random_tree(*request.param)


def test_scores_and_marginals_for_every_pattern_of_holes(tree: LeafTree) -> None:
    model, p = LeafModel([tree]), by_hand(tree)
    np.testing.assert_allclose(p.sum(axis=0), 1.0, rtol=1e-12)
    observed = Observed.from_symbols(EVIDENCE)
    expected = np.stack([p[able(row)].sum(axis=0) for row in EVIDENCE])
    np.testing.assert_allclose(np.exp(model.score(observed)), expected, rtol=1e-10)
    for y in range(H):
        some = EVIDENCE[y::11]
        found = model.marginals(Observed.from_symbols(some), y)
        for row, answer in zip(some, found, strict=True):
            share = p[able(row), y] / p[able(row), y].sum()
            np.testing.assert_allclose(answer, share @ STATES_OF_ROWS[able(row)], atol=1e-12)
    on = model.predictive(Observed.from_symbols(EVIDENCE[-1:]), 2, 1)
    np.testing.assert_allclose(on[0, 1], p[STATES_OF_ROWS[:, 2] == 1, 1].sum(), rtol=1e-10)


def test_completions_are_the_best_or_bounded(tree: LeafTree) -> None:
    model, p = LeafModel([tree]), np.log(by_hand(tree))
    rows = EVIDENCE[::5]
    observed, log_prior = Observed.from_symbols(rows), np.log([0.2, 0.5, 0.3])
    found = model.most_probable(observed, log_prior, np.arange(H))
    best = np.array([(p + log_prior)[able(row)].max() for row in rows])
    np.testing.assert_allclose(found.log_prob, best, rtol=1e-9)
    np.testing.assert_array_equal(found.bound, found.log_prob)
    place = found.rows @ (1 << np.arange(N)[::-1])
    np.testing.assert_allclose((p + log_prior)[place, found.classes], best, rtol=1e-9)
    for y in range(H):
        completed, log_prob = model.complete(observed, y)
        assert ((rows == UNASSIGNED) | (rows == completed)).all()
        place = completed.astype(int) @ (1 << np.arange(N)[::-1])
        np.testing.assert_allclose(log_prob, p[place, y], rtol=1e-9)
        for b, leaf in enumerate(tree.leaves):
            free = np.zeros(N, dtype=bool)
            free[leaf.variables] = True
            fixed = np.where(free & (rows == UNASSIGNED), UNASSIGNED, completed)
            others = np.array([p[able(row), y].max() for row in fixed])
            assert (others <= log_prob + 1e-8).all(), b


def test_draws_follow_the_distribution(tree: LeafTree) -> None:
    model, p, n = LeafModel([tree]), by_hand(tree), 4000
    row = np.array([UNASSIGNED, 1, UNASSIGNED, UNASSIGNED, 0, UNASSIGNED], dtype=np.int8)
    observed = Observed.from_symbols(np.tile(row, (n, 1)))
    drawn = model.draw(observed, 2, np.random.default_rng(3))
    seen = np.bincount(drawn @ (1 << np.arange(N)[::-1]), minlength=1 << N)
    expected = np.where(able(row), p[:, 2], 0.0)
    assert seen[expected == 0].sum() == 0
    kept = expected > 0
    assert chisquare(seen[kept], n * expected[kept] / expected.sum()).pvalue > 1e-4


def test_a_pass_sums_what_enumeration_expects(tree: LeafTree) -> None:
    rows = EVIDENCE[::37]
    weights = np.random.default_rng(5).random(len(rows)) + 0.5
    log_prior = np.log([0.2, 0.5, 0.3])
    examples, _ = merge_equal_rows(Observed.from_symbols(rows), weights)
    sums = LeafModel([tree]).expect(InMemory(examples), log_prior)
    n, parent = len(tree.leaves), tree.hidden.parent
    root = int(np.flatnonzero(parent == n)[0])
    prior = np.exp(log_prior).reshape([H if b == root else 1 for b in range(n)])
    joint = joint_by_hand(tree) * prior
    worth, pairs, masses = 0.0, np.zeros((n, H, H)), np.zeros((n, H))
    histograms = [np.zeros((1 << leaf.variables.size, H)) for leaf in tree.leaves]
    for row, weight in zip(rows, weights, strict=True):
        own = np.where(able(row).reshape(-1, *(1,) * n), joint, 0.0)
        worth += weight * np.log(own.sum())
        own = weight * own / own.sum()
        for b, leaf in enumerate(tree.leaves):
            both = own.sum(axis=tuple(1 + c for c in range(n) if c != b))
            masses[b] += both.sum(axis=0)
            place = STATES_OF_ROWS[:, leaf.variables] @ (1 << np.arange(leaf.variables.size)[::-1])
            if isinstance(leaf.model, MixedBlocksModel) or row[leaf.variables[0]] != UNASSIGNED:
                np.add.at(histograms[b], place, both)  # single columns count where they are known
            if parent[b] < n:
                kept = (1 + b, 1 + int(parent[b]))
                table = own.sum(axis=tuple(c for c in range(n + 1) if c not in kept))
                pairs[b] += table if kept[0] > kept[1] else table.T
    assert sums.log_likelihood == pytest.approx(worth, rel=1e-10)
    np.testing.assert_allclose(sums.masses, masses, rtol=1e-9)
    np.testing.assert_allclose(sums.totals, masses[root], rtol=1e-9)
    np.testing.assert_allclose(sums.pairs, pairs, rtol=1e-9, atol=1e-12)
    for leaf, own, table in zip(tree.leaves, sums.leaves, histograms, strict=True):
        model: Any = leaf.model
        if isinstance(model, MixedModel):
            np.testing.assert_allclose(own.parts[0]["levels"], table, rtol=1e-9, atol=1e-12)
            continue
        value = model.blocks[0].statistic.index(all_states(leaf.variables.size))
        expected = np.zeros(own.histograms[0].shape)
        np.add.at(expected, value, table)
        np.testing.assert_allclose(own.histograms[0], expected, rtol=1e-9, atol=1e-12)


def test_classes_of_two_trees_are_told_apart() -> None:
    trees = [random_tree("sequences", 2), random_tree("an image", 3, np.array([0, 2]))]
    model = LeafModel(trees)
    p = np.concatenate([by_hand(trees[0]), by_hand(trees[1])[:, [0, 2]]], axis=1)
    rows = Observed.from_symbols(STATES_OF_ROWS)
    np.testing.assert_allclose(np.exp(model.score(rows)), p, rtol=1e-10)
    some = model.only(np.array([1, 4]))
    np.testing.assert_allclose(np.exp(some.score(rows)), p[:, [1, 4]], rtol=1e-10)
    again = LeafModel.decode(some.encode())
    np.testing.assert_array_equal(again.score(rows), some.score(rows))
    for y, blocks in enumerate(model.count_probabilities()):
        leaves = trees[0 if y < H else 1].leaves
        for leaf, q in zip(leaves, blocks, strict=True):
            own: Any = leaf.model
            if isinstance(own, MixedModel):
                value = STATES_OF_ROWS[:, leaf.variables[0]]
            else:
                value = own.blocks[0].statistic.index(STATES_OF_ROWS[:, leaf.variables])
            expected = np.bincount(value, p[:, y], minlength=q.size)
            np.testing.assert_allclose(q, expected, atol=1e-12)


rng = np.random.default_rng(11)


def series(n: int, m: int) -> Any:
    """Days of m steps, calm or restless; what the next day is like depends on the last."""
    restless = np.zeros((n, 4), dtype=bool)
    restless[:, 0] = rng.random(n) < 0.5
    for day in range(1, 4):
        restless[:, day] = restless[:, day - 1] ^ (rng.random(n) < 0.2)
    moves = rng.random((n, 4, m)) < np.where(restless, 0.6, 0.1)[:, :, None]
    moves[:, :, 0] = rng.random((n, 4)) < 0.5
    return (np.cumsum(moves, axis=2) % 2).reshape(n, 4 * m).astype(float)


DAYS, NEW_DAYS = series(400, 7), series(400, 7)
HOLED = np.where(rng.random(DAYS.shape) < 0.3, np.nan, DAYS)
WEEK: list[Any] = [(range(first, first + 7), "runs") for first in (0, 7, 14, 21)]


@pytest.mark.parametrize("data", [DAYS, HOLED], ids=["complete", "holes"])
def test_statistics_find_what_counts_do_not(data: Any) -> None:
    settings: dict[str, Any] = dict(family="hidden tree", random_state=0, n_jobs=1)
    runs = ExchangeableMixture(2, blocks=WEEK, **settings).fit(data)
    counts = ExchangeableMixture(
        2, blocks=[list(range(first, first + 7)) for first in (0, 7, 14, 21)], **settings
    ).fit(data)
    mixture = ExchangeableMixture(2, blocks=WEEK, n_init=3, random_state=0, n_jobs=1).fit(data)
    assert runs.score(NEW_DAYS) > counts.score(NEW_DAYS) + 0.5
    assert runs.score(NEW_DAYS) > mixture.score(NEW_DAYS) + 0.02
    tree = runs._model.trees[0]
    joined = {frozenset(map(int, edge)) for edge in tree.edges()}
    assert joined == {frozenset({0, 1}), frozenset({1, 2}), frozenset({2, 3})}


def test_the_evidence_chooses_between_statistics() -> None:
    blocks = [(list(variables), ["count", "runs", "transitions"]) for variables, _ in WEEK]
    model = ExchangeableMixture(2, family="hidden tree", blocks=blocks, n_init=2, random_state=1)
    model.set_params(combine="average", max_iter=20, tol=1e-2, n_jobs=1).fit(HOLED)
    chosen = {
        repr(leaf.model.blocks[0].statistic) for tree in model._model.trees for leaf in tree.leaves
    }
    assert chosen == {"Runs(7)"}
    warm = ExchangeableMixture(2, family="hidden tree", blocks=blocks, warm_start=True)
    warm.set_params(max_iter=2, random_state=0, n_jobs=1)
    with pytest.warns(UserWarning, match="EM did not converge"):
        warm.fit(DAYS)
    with pytest.raises(ValueError, match="with other statistics than those now asked for"):
        warm.set_params(blocks=[(block, "transitions") for block, _ in WEEK]).fit(DAYS)


def test_a_users_own_statistic_is_loaded_only_if_it_is_named(tmp_path: Path) -> None:
    blocks = [(range(7), Alternations(7)), (range(7, 14), "runs")]
    model = ExchangeableMixture(2, family="hidden tree", blocks=blocks, random_state=0, n_jobs=1)
    model.set_params(max_iter=3, tol=10.0).fit(DAYS)
    path = tmp_path / "model.exch"
    exchangeable.save(model, path)
    with pytest.raises(ModelFileError, match="own_statistic"):
        exchangeable.load(path)
    again = exchangeable.load(path, statistics=["own_statistic:Alternations"])
    np.testing.assert_array_equal(again.score_samples(HOLED), model.score_samples(HOLED))
    assert again.most_probable({0: 1, 8: 0}).exact


def damaged(arrays: dict[str, Any], name: str, change: Any) -> dict[str, Any]:
    return {**arrays, name: change(arrays[name].copy())}


def put(place: Any, value: Any) -> Any:
    def change(array: Any) -> Any:
        array[place] = value
        return array

    return change


@pytest.mark.parametrize(
    ("name", "change", "told"),
    [
        ("0.parent", put(0, 0), "parent|cycle|forest|root"),
        ("0.parent", put(1, 3), "one root"),
        ("0.edges", put((1, 0, 0), 0.9), "add up to one"),
        ("0.edges", lambda array: array[:, :, :2], "edges"),
        ("0.states", put(0, 7), "states of the root"),
        ("0.models", put(0, 9), "unknown"),
        ("0.models", put(0, 1), "kinds"),
        ("0.sizes", put(0, 1), "sizes"),
        ("0.variables", put(0, 1), "every variable once"),
        ("0.leaf0.log_q_0", lambda array: array[:, :2], "leaf 0 has 2 states"),
        ("0.leaf0.log_q_0", put(0, -0.1), "add up to one"),
        ("0.leaf2.part0.log_shares", put(0, -0.1), "add up to one"),
    ],
)
def test_damaged_files_are_refused(name: str, change: Any, told: str) -> None:
    arrays = LeafModel([random_tree("sequences")]).encode()
    LeafModel.read(arrays)
    with pytest.raises(ModelFileError, match=told):
        LeafModel.read(damaged(arrays, name, change))


def test_what_is_missing_from_a_file_is_named() -> None:
    arrays = LeafModel([random_tree("sequences")]).encode()
    for name in arrays:
        with pytest.raises(ModelFileError):
            LeafModel.read({key: each for key, each in arrays.items() if key != name})


def test_a_search_tries_statistics_in_hidden_trees() -> None:
    search = ExchangeableDensity(families=["hidden tree"], blocks=WEEK, max_components=2, tol=0.1)
    search.set_params(n_init=1, random_state=0, n_jobs=1, time_budget=3).fit(DAYS)
    assert search.best_params_["blocks"].method == WEEK
    refitted = ExchangeableMixture(**search.best_params_, random_state=0, n_jobs=1).fit(DAYS)
    assert refitted.score(NEW_DAYS) == pytest.approx(search.score(NEW_DAYS), abs=0.5)
    total = logsumexp(search.score_samples(np.array([[np.nan] * 28])))
    assert total == pytest.approx(0.0, abs=1e-9)


def test_parameters_are_those_of_leaves_and_edges(tree: LeafTree) -> None:
    own = sum(
        H * (1 if isinstance(leaf.model, MixedModel) else leaf.model.blocks[0].log_q.shape[0] - 1)  # type: ignore[attr-defined]
        for leaf in tree.leaves
    )
    assert tree.n_parameters == own + (len(tree.leaves) - 1) * H * (H - 1)


FEW: dict[str, Any] = dict(family="hidden tree", blocks=WEEK, random_state=0, n_jobs=1)


@pytest.mark.filterwarnings("ignore:EM ")
def test_shrinkage_pulls_edges_between_leaves_to_independence() -> None:
    spread = []
    for shrinkage in (1e-6, 10.0):
        settings = FEW | {"blocks": Blocks(WEEK, shrinkage=shrinkage)}
        model = ExchangeableMixture(2, max_iter=1, tol=0, **settings).fit(DAYS)
        tree = model._model.trees[0]
        below = tree.hidden.parent < len(tree.leaves)
        spread.append(np.ptp(tree.hidden.edges[below], axis=1).mean())
    assert spread[1] < spread[0] - 0.01


@pytest.mark.filterwarnings("ignore:EM ")
def test_a_step_that_the_prior_pays_for_is_taken() -> None:
    """From leaves almost without a prior to those under a strong one the log-likelihood falls."""
    model = ExchangeableMixture(2, pooling=1e-3, max_iter=30, tol=1e-5, warm_start=True, **FEW)
    before = model.fit(DAYS).score(DAYS)
    model.set_params(pooling=200.0).fit(DAYS)
    assert model.score(DAYS) < before - 0.05


def test_rows_of_which_nothing_is_known_are_no_evidence() -> None:
    symbols = np.random.default_rng(2).integers(0, 2, size=(80, 5)).astype(np.int8)
    empty = np.full((80, 5), UNASSIGNED, dtype=np.int8)
    for statistic in (Runs(5), Transitions(5)):
        worth = [
            choice._log_evidence(
                InMemory(merge_equal_rows(Observed.from_symbols(rows), np.ones(len(rows)))[0]),
                statistic,
            )
            for rows in (symbols, np.concatenate([symbols, empty]))
        ]
        assert worth[1] == pytest.approx(worth[0], abs=6.0)
