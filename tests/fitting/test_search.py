"""The search for settings: where it begins, what it finds, and when it ends."""

import numpy as np
import pytest

from em_families import BY_EM
from exchangeable.families import REGISTRY
from exchangeable.fitting.em import StopRule
from exchangeable.fitting.search import Search, Settings
from made_rows import bound_clusters, examples_of

RULE = StopRule(tol=0.0, max_iter=30, patience=30)


def usual(family, n_components=3, pooling=1.0):
    return Settings(family, n_components, pooling, REGISTRY[family].shrinkage or 0.0)


@pytest.fixture(scope="module")
def examples():
    return examples_of(bound_clusters(300))


def test_a_later_family_begins_where_earlier_ones_were_best(examples):
    search = Search(examples, examples, max_components=4)
    tree = search.climb("tree").settings
    starts = search.starts_of("weighted tree", near=[Settings("urns", 3, 5.0)])
    assert Settings("weighted tree", tree.n_components, tree.pooling, tree.shrinkage) in starts
    assert usual("weighted tree", 3, 5.0) in starts
    assert REGISTRY["weighted tree"].shrinkage > 0


@pytest.mark.parametrize("family", BY_EM)
def test_a_trial_is_cut_short_at_the_deadline(family, examples):
    whole = Search(examples, examples).fit(usual(family), 0, RULE)
    cut = Search(examples, examples).fit(usual(family), 0, RULE, deadline=-np.inf)
    assert cut.n_iter < whole.n_iter
    assert np.isfinite(cut.worth)
    assert isinstance(cut.best.model, REGISTRY[family].model)


def test_no_trial_is_begun_after_the_deadline_but_the_first(examples):
    search = Search(examples, examples, max_components=4, deadline=-np.inf)
    assert np.isfinite(search.try_one(usual("urns")))
    assert search.try_one(usual("urns", 2)) == -np.inf
    assert list(search.trials) == [usual("urns")]


def test_trials_that_differ_in_shrinkage_alone_share_the_family_before(examples):
    search = Search(examples, examples)
    alone = search.fit(Settings("weighted tree", 3, 1.0, 50.0), 0, RULE)
    assert len(search._before) == 1
    search.fit(Settings("weighted tree", 3, 1.0, 200.0), 0, RULE)
    assert len(search._before) == 1
    search.fit(Settings("weighted tree", 2, 1.0, 200.0), 0, RULE)
    assert len(search._before) == 2
    again = search.fit(Settings("weighted tree", 3, 1.0, 50.0), 0, RULE)
    assert again.history == alone.history


def test_a_search_finds_the_number_of_components():
    """Four well separated kinds of rows: four components, the others have lost all their rows."""
    rng = np.random.default_rng(0)
    rates = np.where(rng.random((4, 30)) < 0.5, 0.05, 0.95)
    X = (rng.random((1200, 30)) < rates[rng.integers(0, 4, 1200)]).astype(np.uint8)
    search = Search(examples_of(X[:900]), examples_of(X[900:]))
    near = [Settings("blocks", 1, 2.0, blocks="independent")]
    best = search.climb("blocks", near=near, blocks="independent")
    assert best.settings.blocks == "independent"
    assert 4 <= best.settings.n_components < 30
    shares = np.exp(search.fit(best.settings, search.seed, search.rule).best.log_prior)
    assert (shares > 0.01).sum() == 4
    assert search.try_one(best.settings) == best.valid
    apart = search.fit(Settings("blocks", 4, 2.0, blocks="independent"), 0, search.rule)
    assert best.valid > apart.worth - 0.02
