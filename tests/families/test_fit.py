"""Weighted urns and trees on both estimators: exact, ordered as theory demands, and careful."""

import itertools
import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from exchangeable.families.common.expectation import expect
from exchangeable.fitting.density_em import StopRule
from exchangeable.fitting.density_fit import DensityOptions, DensityRuns, average
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning

from enumeration import agreeing, all_states
from exchangeable import ExchangeableClassifier, ExchangeableMixture, load, save
from exchangeable.data.examples import merge_equal_rows
from exchangeable.data.observed import Observed
from exchangeable.data.rows import as_rows
from exchangeable.families.common import log_linear
from exchangeable.families.common.pool import Pool
from exchangeable.families.urns import polynomials
from exchangeable.families.urns.family import UrnFamily
from exchangeable.fitting.search import WHOLE
from exchangeable.partitions import Partition

N = 6
STATES = all_states(N)
FAMILIES = {
    "weighted urn": dict(urn="weighted"),
    "weighted urns": dict(urn="weighted", structure=[[0, 3, 5], [1, 2], [4]]),
    "learned weighted urns": dict(urn="weighted", structure="welch"),
    "uniform urns, pooled": dict(pooling=3.0, structure=[[0, 3], [1, 2, 4], [5]]),
    "naive Bayes, pooled": dict(pooling=3.0, structure="independent"),
    "tree": dict(dependence="tree"),
    "tree over counts": dict(dependence="tree", structure=[[0, 3], [1, 2, 4], [5]], shrinkage=1.0),
    "tree over learned counts": dict(dependence="tree", structure="welch"),
    "weighted tree": dict(urn="weighted", dependence="tree"),
}


def clusters(n_rows=400, n_variables=N, n_kinds=3, seed=0):
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, n_kinds, n_rows)
    rates = rng.beta(0.6, 0.6, (n_kinds, n_variables))
    X = (rng.random((n_rows, n_variables)) < rates[kind]).astype(np.uint8)
    X[:, 1] |= X[:, 0]  # something that independent variables do not explain
    return X


def with_holes(X, share=0.25, seed=0):
    holes = np.random.default_rng(seed).random(X.shape) < share
    return np.where(holes, np.nan, X)


def mixture(X, k=3, X_valid=None, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        options = dict(random_state=0, max_iter=60) | options
        return ExchangeableMixture(k, **options).fit(X, X_valid=X_valid)


@pytest.fixture(params=FAMILIES, ids=str)
def family(request):
    return FAMILIES[request.param]


@pytest.mark.parametrize("restarts", ["best", "average"])
def test_mixtures_sum_to_one(family, restarts):
    model = mixture(clusters(), n_init=2, restarts=restarts, **family)
    log_p = model.score_samples(STATES)
    np.testing.assert_allclose(np.exp(log_p).sum(), 1, rtol=1e-10)
    assert model.weights_.size == (3 if restarts == "best" else 6)


def test_queries_agree_with_enumeration(family):
    model = mixture(clusters(), **family)
    log_p = model.score_samples(STATES)
    evidence = with_holes(clusters(seed=1)[:10], 0.5)
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
    drawn = model.sample(50, evidence=row, random_state=0)[0]
    assert agreeing(drawn, row).all()


@pytest.mark.parametrize("form", [sp.csr_matrix, lambda X: X.astype(bool)])
def test_forms_of_data_and_threads_do_not_matter(family, form):
    X = clusters()
    plain = mixture(X, n_init=2, n_jobs=1, **family).score_samples(STATES)
    other = mixture(form(X), n_init=2, n_jobs=2, **family).score_samples(STATES)
    np.testing.assert_allclose(plain, other, atol=1e-9)


def test_pickles_and_files_keep_everything(family, tmp_path):
    model = mixture(clusters(), **family)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(model.score_samples(STATES), copy.score_samples(STATES))
    save(model, tmp_path / "model.exch")
    copy = load(tmp_path / "model.exch")
    np.testing.assert_array_equal(model.score_samples(STATES), copy.score_samples(STATES))
    np.testing.assert_array_equal(model.marginals({0: 1}), copy.marginals({0: 1}))


def test_fits_to_rows_with_holes_are_near_those_to_complete_rows(family):
    """EM sums over the holes: with few of them the model is nearly the same."""
    X = clusters(3000)
    exactly = dict(tol=1e-7, max_iter=300)
    complete = mixture(X, 1, **exactly, **family)
    holey = mixture(with_holes(X, 0.1), 1, **exactly, **family)
    log_p = holey.score_samples(STATES)
    np.testing.assert_allclose(np.exp(log_p).sum(), 1, rtol=1e-10)
    assert abs(complete.score(X) - holey.score(X)) < 0.01


@pytest.mark.parametrize("name", ["naive Bayes, pooled", "weighted urn", "weighted tree"])
def test_sums_over_holes_are_sums_over_completions(name):
    """The E-step with holes is that over all completions, each by its probability."""
    model = mixture(clusters(), k=2, **FAMILIES[name])
    X = with_holes(clusters(12, seed=2), 0.4)
    symbols = np.where(np.isnan(X), -1, X).astype(np.int8)
    examples, _ = merge_equal_rows(Observed.from_symbols(symbols), np.ones(len(X)))
    found = expect(model._model, examples, model._log_prior)
    log_joint = model._model.score(Observed(as_rows(STATES, None))) + model._log_prior
    rows, weights = [], []
    for row in np.where(symbols < 0, np.nan, symbols):
        able = agreeing(STATES, row)
        rows.append(STATES[able])
        weights.append(np.exp(log_joint[able] - logsumexp(log_joint[able])))
    rows, weights = np.concatenate(rows), np.concatenate(weights)
    np.testing.assert_allclose(found.ones, rows.T @ weights, atol=1e-10)
    np.testing.assert_allclose(found.totals, weights.sum(axis=0), atol=1e-10)
    if found.counts.size:
        counts = rows.sum(axis=1)
        expected = np.stack([weights[counts == n].sum(axis=0) for n in range(N + 1)])
        np.testing.assert_allclose(found.counts, expected, atol=1e-10)
    for y, parent in enumerate(model._model.scores.parent.T if found.pairs.size else ()):
        for j in np.flatnonzero(parent < N):
            both = rows[:, j] * rows[:, parent[j]]
            np.testing.assert_allclose(found.pairs[j, y], both @ weights[:, y], atol=1e-10)


def test_one_component_of_single_variables_is_the_chow_liu_tree():
    """No tree over four variables has a higher likelihood (all 16 are tried)."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (600, 4))
    X[:, 2] = np.where(rng.random(600) < 0.8, X[:, 0], X[:, 2])
    X[:, 1] = np.where(rng.random(600) < 0.6, X[:, 2], X[:, 1])
    X[:, 3] = np.where(rng.random(600) < 0.5, X[:, 2], X[:, 3])
    weak = dict(pooling=1e-6, shrinkage=1e-6)
    model = mixture(X, k=1, dependence="tree", **weak)
    edges = list(itertools.combinations(range(4), 2))
    best = max(
        tree_likelihood(X, chosen) for chosen in itertools.combinations(edges, 3) if is_tree(chosen)
    )
    np.testing.assert_allclose(model.score(X), best, atol=1e-5)
    assert is_tree([tuple(edge) for edge in model.edges_[0]])


def is_tree(edges):
    reached = {edges[0][0]} if len(edges) else set()
    for _ in edges:
        for a, b in edges:
            if a in reached or b in reached:
                reached |= {a, b}
    return len(reached) == 4


def tree_likelihood(X, edges):
    """Σ_j log p(x_j) + Σ_edges log p(x_i, x_j) / p(x_i)p(x_j), frequencies as probabilities."""

    def log_frequency(columns):
        _, inverse, counts = np.unique(columns, axis=0, return_inverse=True, return_counts=True)
        return np.log(counts / len(X))[inverse.ravel()]

    total = sum(log_frequency(X[:, [j]]) for j in range(4))
    for i, j in edges:
        total = total + log_frequency(X[:, [i, j]])
        total -= log_frequency(X[:, [i]]) + log_frequency(X[:, [j]])
    return total.mean()


def test_a_weighted_urn_expects_what_is_observed():
    """At the end of the scaling E[x_j] given the counts is the observed frequency."""
    X = clusters(500)
    examples, _ = merge_equal_rows(Observed(as_rows(X, None)), np.ones(len(X)))
    pool = Pool.of(examples, 1e-9, 0.1)
    partition = Partition.from_labels([0] * N)
    urns = UrnFamily.of(pool, [partition])
    given = np.ones((examples.rows.n_rows, 1))
    scores = log_linear.LogLinear(np.zeros(1), np.zeros((N, 1)))
    sums = log_linear.expect(examples, scores, np.zeros(1), posterior=given)
    model = urns.first(examples, sums)
    held = expect(model, examples, np.zeros(1), posterior=given)
    for step in range(200):
        model = urns.following(examples, model, held, step)
    expected = polynomials.expected_ones([partition], model.polynomials, list(held.counts.T))
    np.testing.assert_allclose(expected[:, 0], X.sum(axis=0), rtol=1e-6)


def test_a_richer_family_has_no_lower_training_likelihood():
    """One component, hardly any prior: naive Bayes ≤ urn ≤ weighted tree, naive Bayes ≤ tree."""
    X = clusters(2000)
    options = dict(k=1, pooling=0.01, tol=1e-9, max_iter=500)
    naive = mixture(X, structure="independent", **options).score(X)
    urn = mixture(X, urn="weighted", **options).score(X)
    tree = mixture(X, dependence="tree", shrinkage=0.1, **options).score(X)
    both = mixture(X, urn="weighted", dependence="tree", shrinkage=0.1, **options).score(X)
    assert naive < urn + 1e-6
    assert naive < tree - 0.1
    assert urn < both - 0.1
    assert tree < both + 5e-3


def test_likelihood_rises_but_for_rounding_and_prior():
    model = mixture(clusters(1000), urn="weighted", pooling=0.1, tol=0, max_iter=30)
    assert np.diff(model.history_[0]).min() > -1e-5
    assert model.history_[0][-1] > model.history_[0][0]


def test_held_out_rows_stop_a_run_and_the_best_parameters_are_kept():
    X, valid = clusters(60, seed=1), clusters(300, seed=2)
    model = mixture(X, 10, valid, urn="weighted", pooling=0.2, tol=0, max_iter=200)
    history = model.valid_history_[0]
    assert model.converged_
    assert len(history) < 200
    np.testing.assert_allclose(model.score(valid), max(history), atol=1e-9)
    shares = mixture(X, 4, urn="weighted", validation_fraction=0.2)
    assert shares.n_samples_weight_ == 48


def test_the_average_is_the_average():
    X = clusters()
    examples, _ = merge_equal_rows(Observed(as_rows(X, None)), np.ones(len(X)))
    options = DensityOptions("urns", 3, WHOLE, rule=StopRule(max_iter=10))
    runs = DensityRuns.of(examples, None, options, np.random.default_rng(0).spawn(3))
    ended = [runs.run(number) for number in range(3)]
    rows = Observed(as_rows(STATES, None))
    single = [logsumexp(run.model.score(rows) + run.log_prior, axis=1) for run in ended]
    model, log_prior = average(ended)
    both = logsumexp(model.score(rows) + log_prior, axis=1)
    np.testing.assert_allclose(both, logsumexp(single, axis=0) - np.log(3), atol=1e-10)


def test_the_papers_mixture_can_be_averaged_too():
    X = clusters()
    one = mixture(X, structure="full", n_init=2, restarts="average")
    np.testing.assert_allclose(np.exp(one.score_samples(STATES)).sum(), 1, rtol=1e-10)
    assert one.weights_.size == 6
    np.testing.assert_allclose(one.log_likelihood_, one.score(X), atol=1e-10)


def test_classes_are_fitted_as_single_components_are(family):
    """A classifier's class is a mixture of one component, the other rows but a prior."""
    X = clusters(800)
    y = np.repeat([0, 1], 400)
    options = {key: value for key, value in family.items() if key != "pooling"}
    if options.get("structure") == "welch":
        pytest.skip("blocks learned from posteriors and from labels differ")
    model = ExchangeableClassifier(pooling=1e-6, tol=1e-8, max_iter=2000, **options).fit(X, y)
    for label in (0, 1):
        alone = mixture(X[y == label], 1, pooling=1e-6, tol=0, max_iter=400, init="rows", **options)
        found = model.predict_joint_log_proba(STATES)[:, label] - np.log(0.5)
        expected = alone.score_samples(STATES)
        seen = expected > -10
        np.testing.assert_allclose(found[seen], expected[seen], atol=0.02)
    assert model.predict_proba(with_holes(X)).shape == (800, 2)
    assert model.fit(with_holes(X), y).score(X, y) > 0.4


def test_counting_classifiers_can_count():
    """Parity is what naive Bayes cannot learn and a weighted urn can."""
    X = np.random.default_rng(0).integers(0, 2, (1000, 10))
    y = X.sum(axis=1) % 2
    assert ExchangeableClassifier(urn="weighted").fit(X[:500], y[:500]).score(X[500:], y[500:]) == 1


BAD = [
    (dict(urn="magic"), "urn='magic' is unknown; expected one of uniform, weighted"),
    (dict(dependence="chain"), "dependence='chain' is unknown"),
    (dict(pooling=-1.0), "pooling must be positive and finite, got -1.0"),
    (dict(shrinkage=3.0), "shrinkage=3.0 is about the edges of trees"),
    (dict(urn="weighted", structure="independent"), "leaves one variable in each urn"),
    (dict(urn="weighted", dependence="tree", structure="welch"), "or give 'full'"),
    (dict(urn="weighted", alpha=0.0), "alpha=0 leaves what never occurs"),
]


@pytest.mark.parametrize(("options", "message"), BAD, ids=str)
def test_options_that_make_no_sense_are_refused(options, message):
    X = clusters(50)
    with pytest.raises(ValueError, match=message):
        ExchangeableMixture(2, **options).fit(X)
    with pytest.raises(ValueError, match=message):
        ExchangeableClassifier(**options).fit(X, X[:, 0])


MIXTURE_BAD = [
    (dict(restarts="both"), "restarts='both' is unknown"),
    (dict(validation_fraction=0.1), "validation_fraction=0.1 needs a pooled prior"),
    (dict(urn="weighted", validation_fraction=1.5), "must lie between 0 and 1, got 1.5"),
    (dict(urn="weighted", validation_fraction=1e-3), "leaves 50 to fit and 0 to hold out"),
    (dict(urn="weighted", warm_start=True), "warm_start=True is for the paper's model"),
    (dict(urn="weighted", checkpoint="here"), "checkpoint='here' is for the paper's model"),
    (dict(pooling=2.0, accept="component"), "accept='component' is for the paper's model"),
]


@pytest.mark.parametrize(("options", "message"), MIXTURE_BAD, ids=str)
def test_options_of_mixtures_that_make_no_sense_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        ExchangeableMixture(2, random_state=0, **options).fit(clusters(50))


def test_what_does_not_go_with_pooling_says_so():
    X = clusters(50)
    with pytest.raises(ValueError, match="X_valid goes with X in memory"):
        ExchangeableMixture(2).fit([X, X], X_valid=X)
    with pytest.raises(ValueError, match="semi_supervised=True is for the paper's model"):
        ExchangeableClassifier(urn="weighted", semi_supervised=True).fit(X, X[:, 0])
    assert not hasattr(ExchangeableClassifier(urn="weighted"), "partial_fit")
    wide = sp.csr_matrix((np.ones(3), ([0, 1, 2], [0, 1, 2])), shape=(3, 10_001))
    with pytest.raises(ValueError, match="at most 4000 variables"):
        ExchangeableMixture(1, dependence="tree").fit(wide)
