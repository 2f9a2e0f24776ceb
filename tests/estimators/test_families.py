"""Every family on both estimators: exact, the same in every form, and careful with options."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import logsumexp

from em_families import BY_EM
from enumeration import agreeing, all_states
from exchangeable import Blocks, ExchangeableClassifier, ExchangeableMixture, load, save
from exchangeable.families import REGISTRY
from made_rows import bound_clusters, fit_mixture, with_holes

N = 6
STATES = all_states(N)
FAMILIES = {
    "blocks": dict(),
    "blocks, pooled": dict(pooling=3.0),
    "given blocks, pooled": dict(pooling=3.0, blocks=[[0, 3], [1, 2, 4], [5]]),
    "naive Bayes, pooled": dict(pooling=3.0, blocks="independent"),
    "weighted urn": dict(family="urns"),
    "weighted urns": dict(family="urns", blocks=[[0, 3, 5], [1, 2], [4]]),
    "learned weighted urns": dict(family="urns", blocks="welch"),
    "tree": dict(family="tree"),
    "count tree": dict(family="count tree", blocks=Blocks([[0, 3], [1, 2, 4], [5]], shrinkage=1.0)),
    "learned count tree": dict(family="count tree", blocks="welch"),
    "weighted tree": dict(family="weighted tree"),
    "hidden tree": dict(family="hidden tree"),
    "hidden tree over blocks": dict(family="hidden tree", blocks=[[0, 3], [1, 2, 4], [5]]),
}


def test_every_family_is_here():
    """Columns of other kinds have tests of their own."""
    binary = {name for name in BY_EM if REGISTRY[name].kinds == ("binary",)}
    assert {options.get("family", "blocks") for options in FAMILIES.values()} == binary


def mixture(X, k=3, **options):
    return fit_mixture(X, k, **(dict(max_iter=60) | options))


@pytest.fixture(params=FAMILIES, ids=str)
def family(request):
    return FAMILIES[request.param]


CLASSES = [name for name in FAMILIES if "hidden" not in name]
FIXED = [
    name
    for name in CLASSES
    if FAMILIES[name].get("blocks", "welch") != "welch" or "tree" in name or name == "weighted urn"
]
"""Those whose blocks are not learned: learned from posteriors and from labels, blocks differ."""
FIXED.remove("learned count tree")


@pytest.fixture(params=CLASSES, ids=str)
def family_of_classes(request):
    return FAMILIES[request.param]


@pytest.fixture(params=FIXED, ids=str)
def family_of_fixed_blocks(request):
    return FAMILIES[request.param]


@pytest.mark.parametrize("combine", ["best", "average"])
def test_mixtures_sum_to_one(family, combine):
    model = mixture(bound_clusters(), n_init=2, combine=combine, **family)
    log_p = model.score_samples(STATES)
    np.testing.assert_allclose(np.exp(log_p).sum(), 1, rtol=1e-10)
    assert model.weights_.size == (3 if combine == "best" else 6)


def test_queries_agree_with_enumeration(family):
    model = mixture(bound_clusters(), **family)
    log_p = model.score_samples(STATES)
    evidence = with_holes(bound_clusters(seed=1)[:10], 0.5)
    for row, found in zip(evidence, model.marginals(evidence), strict=True):
        able = agreeing(STATES, row)
        share = np.exp(log_p[able] - logsumexp(log_p[able]))
        np.testing.assert_allclose(found, share @ STATES[able], atol=1e-10)
    row = np.array([np.nan, 1, np.nan, np.nan, 0, np.nan])
    joint = model.conditional([0, 3], row)
    able = agreeing(STATES, row)
    expected = np.zeros((2, 2))
    np.add.at(expected, tuple(STATES[able][:, [0, 3]].T), np.exp(log_p[able]))
    np.testing.assert_allclose(joint, expected / expected.sum(), atol=1e-10)
    found = model.most_probable(row)
    by_component = model.predict_log_proba(STATES) + log_p[:, None]
    np.testing.assert_allclose(found.log_prob, by_component[able].max(), atol=1e-10)
    drawn = model.sample(50, row, random_state=0)[0]
    assert agreeing(drawn, row).all()


@pytest.mark.parametrize("form", [sp.csr_matrix, lambda X: X.astype(bool)])
def test_forms_of_data_and_threads_do_not_matter(family, form):
    X = bound_clusters()
    plain = mixture(X, n_init=2, n_jobs=1, **family).score_samples(STATES)
    other = mixture(form(X), n_init=2, n_jobs=2, **family).score_samples(STATES)
    np.testing.assert_allclose(plain, other, atol=1e-9)


def test_pickles_and_files_keep_everything(family, tmp_path):
    model = mixture(bound_clusters(), **family)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(model.score_samples(STATES), copy.score_samples(STATES))
    save(model, tmp_path / "model.exch")
    copy = load(tmp_path / "model.exch")
    np.testing.assert_array_equal(model.score_samples(STATES), copy.score_samples(STATES))
    np.testing.assert_array_equal(model.marginals({0: 1}), copy.marginals({0: 1}))


def test_fits_to_rows_with_holes_are_near_those_to_complete_rows(family):
    """EM sums over the holes: with few of them the model is nearly the same."""
    X = bound_clusters(3000)
    exactly = dict(tol=1e-7, max_iter=300)
    complete = mixture(X, 1, **exactly, **family)
    holey = mixture(with_holes(X, 0.1), 1, **exactly, **family)
    log_p = holey.score_samples(STATES)
    np.testing.assert_allclose(np.exp(log_p).sum(), 1, rtol=1e-10)
    assert abs(complete.score(X) - holey.score(X)) < 0.01


def test_classes_are_fitted_as_single_components_are(family_of_fixed_blocks):
    """A classifier's class is a mixture of one component, the other rows but a prior."""
    X = bound_clusters(800)
    y = np.repeat([0, 1], 400)
    options = {key: value for key, value in family_of_fixed_blocks.items() if key != "pooling"}
    model = ExchangeableClassifier(pooling=1e-6, tol=1e-8, max_iter=2000, **options).fit(X, y)
    for label in (0, 1):
        alone = mixture(X[y == label], 1, pooling=1e-6, tol=0, max_iter=400, init="rows", **options)
        found = model.predict_joint_log_proba(STATES)[:, label] - np.log(0.5)
        expected = alone.score_samples(STATES)
        seen = expected > -10
        np.testing.assert_allclose(found[seen], expected[seen], atol=0.02)
    assert model.predict_proba(with_holes(X)).shape == (800, 2)
    assert model.fit(with_holes(X), y).score(X, y) > 0.4


def test_rows_of_one_class_go_through_the_same_em(family_of_fixed_blocks):
    """With one class, EM over holes is step by step that of a mixture of one component."""
    X = with_holes(bound_clusters(400), 0.2)
    options = dict(tol=0.0, max_iter=8, **family_of_fixed_blocks)
    model = ExchangeableClassifier(**options).fit(X, np.zeros(400))
    alone = mixture(X, 1, init="rows", **options)
    assert len(model.history_) > 3
    np.testing.assert_allclose(model.history_, alone.history_[0], atol=1e-10)
    np.testing.assert_allclose(model.score_samples(X), alone.score_samples(X), atol=1e-8)
    assert model.converged_ == alone.converged_


def test_labels_stay_where_others_are_missing(family_of_classes):
    X = bound_clusters(600, seed=3)
    y = np.repeat([0, 1, 2], 200)
    X[:, :3] |= (np.random.default_rng(0).random((600, 3)) < 0.8) & (np.arange(3) == y[:, None])
    partly = np.where(np.random.default_rng(1).random(600) < 0.7, -1, y)
    options = dict(semi_supervised=True, max_iter=30, **family_of_classes)
    for rows in (X, with_holes(X, 0.1)):
        model = ExchangeableClassifier(**options).fit(rows, partly)
        assert model.classes_.tolist() == [0, 1, 2]
        np.testing.assert_allclose(model.class_count_.sum(), 600)
        assert (model.class_count_ >= np.bincount(partly[partly >= 0]) - 1e-9).all()
        np.testing.assert_allclose(np.exp(model.class_log_prior_).sum(), 1)
        assert model.n_iter_ == len(model.history_) - 1
        joint = np.exp(model.predict_joint_log_proba(STATES))
        np.testing.assert_allclose(joint.sum(), 1, rtol=1e-10)


def test_counting_classifiers_can_count():
    """Parity is what naive Bayes cannot learn and a weighted urn can."""
    X = np.random.default_rng(0).integers(0, 2, (1000, 10))
    y = X.sum(axis=1) % 2
    assert ExchangeableClassifier("urns").fit(X[:500], y[:500]).score(X[500:], y[500:]) == 1


BAD = [
    (dict(family="magic"), "family='magic' is unknown; expected one of blocks, urns, tree"),
    (dict(family=3), "family=3 is unknown; expected one of"),
    (dict(pooling=-1.0), r"pooling must be positive and at most 1e\+100, got -1.0"),
    (dict(blocks=Blocks(shrinkage=3.0)), "shrinkage=3.0 is about the edges of trees"),
    (
        dict(family="urns", blocks=Blocks(shrinkage=3.0)),
        "edges of trees, which family='urns' does not have",
    ),
    (
        dict(family="tree", blocks=Blocks(shrinkage=-1.0)),
        r"shrinkage must be positive and at most 1e\+100, got -1.0",
    ),
    (dict(family="urns", blocks="independent"), "with one variable in each urn"),
    (dict(family="tree", blocks="welch"), "family='count tree' has blocks as nodes"),
    (dict(family="tree", blocks=[range(6)]), "blocks given as lists does not go with"),
    (dict(family="weighted tree", blocks="welch"), "it takes full"),
    (dict(family="count tree", blocks="independent"), "family='tree' is a tree over single"),
    (dict(family="urns", alpha=0.0), "alpha must be > 0 with family='urns'"),
    (dict(pooling=2.0, alpha=0.0), "alpha must be > 0 with pooling"),
    (dict(family="tree", blocks=Blocks(relearn=True)), "relearn=True does not go with"),
    (dict(family="urns", blocks=Blocks(accept="component")), "accept='component' does not go"),
]


@pytest.mark.parametrize(("options", "message"), BAD, ids=str)
def test_options_that_make_no_sense_are_refused(options, message):
    X = bound_clusters(50)
    with pytest.raises(ValueError, match=message):
        ExchangeableMixture(2, **options).fit(X)
    with pytest.raises(ValueError, match=message):
        ExchangeableClassifier(**options).fit(X, X[:, 0])


MIXTURE_BAD = [
    (dict(combine="both"), "combine='both' is unknown"),
    (dict(validation_fraction=1.5), "must lie between 0 and 1, got 1.5"),
    (dict(family="urns", validation_fraction=1e-3), "leaves 50 to fit and 0 to hold out"),
]


@pytest.mark.parametrize(("options", "message"), MIXTURE_BAD, ids=str)
def test_options_of_mixtures_that_make_no_sense_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        ExchangeableMixture(2, random_state=0, **options).fit(bound_clusters(50))


def test_what_a_family_cannot_do_it_says():
    X = bound_clusters(50)
    with pytest.raises(ValueError, match="does not go with family='hidden tree'"):
        ExchangeableClassifier("hidden tree", training="hybrid").fit(X, X[:, 0])
    with pytest.raises(ValueError, match="pooling=1 does not go with family='neural independent'"):
        ExchangeableMixture(family="neural independent", pooling=1).fit(X)
    wide = sp.csr_matrix((np.ones(3), ([0, 1, 2], [0, 1, 2])), shape=(3, 10_001))
    with pytest.raises(ValueError, match="the limit is 4,000, X has 10,001"):
        ExchangeableMixture(1, family="tree").fit(wide)
