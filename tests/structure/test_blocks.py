"""`Blocks`: what users may write, and what it stands for."""

import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from exchangeable import Blocks, ExchangeableClassifier, ExchangeableMixture
from exchangeable.structure.blocks import as_blocks, kind_of, structure_of
from made_rows import bound_clusters


def test_a_word_stands_for_a_method():
    settings, method = as_blocks("welch")
    assert (settings.method, method) == ("welch", "welch")
    assert as_blocks(Blocks("welch", significance=0.01))[0].significance == 0.01
    settings, method = as_blocks([[0], [1]])
    assert (settings.method, method, kind_of(method)) == ([[0], [1]], [[0], [1]], "given")
    settings, method = as_blocks(Blocks([[0], [1]], shrinkage=3.0))
    assert (settings.shrinkage, method) == (3.0, [[0], [1]])


@pytest.mark.parametrize(
    ("blocks", "error", "message"),
    [
        ("magic", ValueError, "blocks='magic' is unknown; expected one of auto, evidence, welch"),
        (Blocks("magic"), ValueError, r"Blocks\(method='magic'\) is unknown"),
        (Blocks(iter([[0]])), TypeError, "blocks is an iterator"),
        (iter([[0]]), TypeError, "blocks is an iterator"),
    ],
)
def test_what_is_unknown_is_refused(blocks, error, message):
    with pytest.raises(error, match=message):
        as_blocks(blocks)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (Blocks(accept="some"), "accept='some' is unknown; expected one of all, component"),
        (Blocks(relearn="yes"), "relearn must be True, False or None, got 'yes'"),
        (Blocks(significance=2), "significance must lie between 0 and 1, got 2"),
        (Blocks(start=0), "start must lie between 0 and 1, got 0"),
        (Blocks(prior=-1), "prior must be positive and finite, got -1"),
        (Blocks(conditions=(2,)), r"conditions=\(2,\): expected"),
    ],
)
def test_settings_are_checked(settings, message):
    with pytest.raises(ValueError, match=message):
        structure_of(settings, "welch", False, 3, [0])


@pytest.mark.parametrize(("labelled", "start"), [(True, 0.5), (False, 0.1)])
def test_merging_starts_finer_where_labels_are_known(labelled, start):
    learner = structure_of(Blocks(), "evidence", labelled, 3, [0])
    assert learner.settings.start == start
    assert structure_of(Blocks(start=0.3), "evidence", labelled, 3, [0]).settings.start == 0.3


def test_settings_can_be_searched():
    X = np.random.default_rng(0).integers(0, 2, (120, 5))
    model = ExchangeableClassifier(blocks="welch")
    search = GridSearchCV(model, {"blocks__significance": [0.01, 0.5]}, cv=2)
    search.fit(X, X.sum(axis=1) % 2)
    assert search.best_estimator_.blocks.method == "welch"
    assert search.best_estimator_.blocks.significance in (0.01, 0.5)
    assert model.blocks == "welch"
    again = clone(ExchangeableMixture(blocks=Blocks("welch", prior=0.2)))
    assert again.blocks.prior == 0.2


CHANGED = {
    "significance": 0.4,
    "start": 0.9,
    "prior": 30.0,
    "conditions": (1, 2),
    "accept": "component",
    "relearn": False,
}
USED = {
    "welch": {"significance", "conditions", "accept", "relearn"},
    "evidence": set(CHANGED),
    "independent": set(),
    "full": set(),
}


@pytest.mark.parametrize("labelled", [False, True])
@pytest.mark.parametrize("setting", CHANGED)
@pytest.mark.parametrize("method", USED)
def test_every_setting_is_used_or_refused(method, setting, labelled):
    settings = Blocks(method, **{setting: CHANGED[setting]})
    used = USED[method] - ({"significance"} if labelled and method == "evidence" else set())
    if setting in used:
        structure_of(settings, method, labelled, 3, [0])
        return
    with pytest.raises(ValueError, match=rf"^{setting}=.* does not go with blocks='{method}'"):
        structure_of(settings, method, labelled, 3, [0])


@pytest.mark.parametrize("setting", CHANGED)
@pytest.mark.parametrize("method", ["welch", "evidence"])
def test_a_setting_that_is_used_makes_a_difference(method, setting):
    X = bound_clusters(600, 14, seed=4)
    X[:, 7:] &= X[:, :7]

    def fit(estimator, **settings):
        blocks = Blocks(method, **settings)
        y = np.where(np.arange(600) < 300, X[:, 0], -1)
        return estimator(blocks).fit(X[:, 1:], y).score_samples(X[:, 1:])

    def mixture(blocks):
        return ExchangeableMixture(3, blocks=blocks, random_state=1, tol=1e-3)

    def classes(blocks):
        return ExchangeableClassifier(blocks=blocks, semi_supervised=True)

    differs = []
    for estimator in (mixture, classes):
        try:
            found = fit(estimator, **{setting: CHANGED[setting]})
        except ValueError:
            continue
        differs.append((found != fit(estimator)).any())
    assert any(differs) == (setting in USED[method])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (dict(relearn=False, accept="component"), "with relearn=False blocks stay"),
        (dict(method="evidence", conditions=(1, 2), significance=0.2), None),
        (dict(method="independent", conditions=[1], significance=0.1), None),
    ],
)
def test_settings_that_depend_on_each_other(settings, message):
    settings = dict(method="welch") | settings
    if message is None:
        structure_of(Blocks(**settings), settings["method"], True, 3, [0])
        return
    with pytest.raises(ValueError, match=message):
        structure_of(Blocks(**settings), settings["method"], True, 3, [0])


@pytest.mark.parametrize("relearn", [True, False])
def test_trees_over_counts_learn_their_blocks_before(relearn):
    model = ExchangeableMixture(2, family="count tree", blocks=Blocks("welch", relearn=relearn))
    with pytest.raises(ValueError, match=f"relearn={relearn} does not go with family='count tree'"):
        model.fit(np.eye(4))


def test_blocks_stay_where_relearning_is_switched_off():
    """The blocks of the first step are kept; by default EM goes on and finds better ones."""
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 3, 800)
    X = (rng.random((800, 12)) < rng.beta(0.6, 0.6, (3, 12))[kind]).astype(np.uint8)
    kept = ExchangeableMixture(3, blocks=Blocks("welch", relearn=False), random_state=0).fit(X)
    goes_on = ExchangeableMixture(3, blocks="welch", random_state=0).fit(X)
    given = {y: [block.tolist() for block in blocks] for y, blocks in enumerate(kept.partitions_)}
    told = ExchangeableMixture(3, blocks=given, random_state=0).fit(X)
    assert kept.history_ == told.history_
    assert goes_on.log_likelihood_ > kept.log_likelihood_


@pytest.mark.parametrize("name", ["Blocks", "exchangeability_report"])
def test_what_is_about_structure_can_be_imported_first(name):
    subprocess.run([sys.executable, "-c", f"from exchangeable import {name}"], check=True)
