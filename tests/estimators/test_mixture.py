"""ExchangeableMixture: exact probabilities, weights, going on, and what it refuses."""

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import chisquare
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from enumeration import all_states
from exchangeable import EVM, Blocks, Count, ExchangeableMixture
from made_rows import clusters, fit_mixture

BLOCKS = ("evidence", "welch", "independent", "full", [[0, 3], [1, 2, 4], [5]])


@pytest.mark.parametrize("blocks", BLOCKS, ids=str)
@pytest.mark.parametrize("alpha", [0.0, 0.1])
def test_probabilities_sum_to_one(blocks, alpha):
    model = fit_mixture(clusters(), blocks=blocks, alpha=alpha)
    np.testing.assert_allclose(np.exp(model.score_samples(all_states(6))).sum(), 1, rtol=1e-10)


@pytest.mark.parametrize("blocks", BLOCKS, ids=str)
def test_scores_are_those_of_the_components(blocks):
    """log P(x) = log Σ_y p(y) Π_b P_b(x), each block an EVM with the model's own weights."""
    model = fit_mixture(clusters(), blocks=blocks)
    states = all_states(6)
    joint = np.tile(np.log(model.weights_), (len(states), 1))
    for y in range(3):
        for block, q in zip(model.partitions_[y], model.count_probabilities_[y], strict=True):
            component = EVM.from_weights(Count(len(block)), q)
            joint[:, y] += component.log_prob(states[:, block])
    np.testing.assert_allclose(model.score_samples(states), logsumexp(joint, axis=1), rtol=1e-9)
    posterior = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
    np.testing.assert_allclose(model.predict_proba(states), posterior, rtol=1e-8, atol=1e-12)
    np.testing.assert_array_equal(model.predict(states), posterior.argmax(axis=1))


@pytest.mark.parametrize("blocks", BLOCKS, ids=str)
def test_whole_weights_are_repetitions(blocks):
    X = clusters()
    weight = np.random.default_rng(3).integers(0, 4, len(X))
    start = fit_mixture(X, blocks=blocks)
    models = []
    for data, options in ((X, dict(sample_weight=weight)), (np.repeat(X, weight, axis=0), {})):
        model = ExchangeableMixture(3, blocks=blocks, warm_start=True, random_state=0)
        model.__dict__.update(start.__dict__, warm_start=True)
        models.append(model.fit(data, **options))
    np.testing.assert_allclose(models[0].score_samples(X), models[1].score_samples(X), rtol=1e-8)


@pytest.mark.parametrize("seed", range(5))
def test_one_start_finds_two_clear_clusters(seed):
    """Random starts alone often do not, which is why they are not the default."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 2, 1500)
    X = rng.random((1500, 8)) < np.where(kind[:, None] == np.arange(8) % 2, 0.2, 0.8)
    found = ExchangeableMixture(2, random_state=seed).fit(X).predict(X)
    assert max((found == kind).mean(), (found != kind).mean()) > 0.9


def test_warm_start_goes_on():
    X = clusters()
    short = ExchangeableMixture(3, max_iter=2, warm_start=True, random_state=0)
    with pytest.warns(ConvergenceWarning, match="did not converge in 2 iterations"):
        short.fit(X)
    before = short.log_likelihood_
    short.max_iter = 200
    short.fit(X)
    assert short.log_likelihood_ >= before
    assert short.converged_


def test_warm_start_needs_the_same_columns():
    X = clusters()
    model = ExchangeableMixture(3, warm_start=True, random_state=0).fit(X)
    with pytest.raises(ValueError, match="from a fit to 6 columns, but X has 4"):
        model.fit(X[:, :4])
    assert model._model.n_variables == 6
    model.set_params(warm_start=False).fit(X[:, :4])
    assert model._model.n_variables == 4


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (dict(n_components=4), "a fit of 3 components, but n_components=4; set warm_start=False"),
        (dict(blocks="independent"), "with other blocks than those now asked for"),
        (dict(blocks=[[0, 1], range(2, 6)]), "with other blocks than those now asked for"),
    ],
)
def test_a_warm_start_that_would_ignore_a_parameter_is_refused(changed, message):
    X = clusters()
    model = ExchangeableMixture(3, blocks="full", warm_start=True, random_state=0).fit(X)
    before = model.fit(X).score_samples(X)
    with pytest.raises(ValueError, match=message):
        model.set_params(**changed).fit(X)
    np.testing.assert_array_equal(model.score_samples(X), before)
    model.set_params(blocks="welch", n_components=3).fit(X)  # which EM learns, from any blocks
    model.set_params(warm_start=False, **changed).fit(X)
    assert model.weights_.size == changed.get("n_components", 3)


@pytest.mark.filterwarnings("ignore:EM did not converge")
def test_warm_start_is_anew_after_another_family():
    X = clusters()
    model = fit_mixture(X, family="urns", max_iter=5)
    model.set_params(family="blocks", warm_start=True, max_iter=500).fit(X)
    assert model.history_ == fit_mixture(X).history_
    again = model.set_params(family="urns", max_iter=5).fit(X)
    assert again.history_ == fit_mixture(X, family="urns", max_iter=5).history_


def test_samples_follow_the_distribution():
    model = fit_mixture(clusters(), 2)
    X, component = model.sample(20_000, random_state=0)
    assert X.shape == (20_000, 6)
    states = all_states(6)
    p = np.exp(model.score_samples(states))
    key = 2 ** np.arange(6)
    seen = np.bincount(X.astype(int) @ key, minlength=64)[states @ key]
    common = p * len(X) >= 5
    assert common.sum() > 10
    expected = p[common] * seen[common].sum() / p[common].sum()
    assert chisquare(seen[common], expected).pvalue > 1e-3
    np.testing.assert_allclose(np.bincount(component) / component.size, model.weights_, atol=0.02)


def test_information_criteria_and_parameters():
    X = clusters()
    model = fit_mixture(X)
    assert model.n_parameters_ == 3 * 6 + 2
    total = model.score_samples(X).sum()
    np.testing.assert_allclose(model.aic(X), -2 * total + 2 * 20)
    np.testing.assert_allclose(model.bic(X), -2 * total + 20 * np.log(len(X)))


def test_a_component_without_rows_is_dropped(monkeypatch):
    """With the limit set between the two smallest shares exactly one component falls below it."""
    X = clusters()
    smallest = np.sort(ExchangeableMixture(3, random_state=0).fit(X).weights_)[:2]
    monkeypatch.setattr("exchangeable.fitting.mixtures.NO_MASS", smallest.mean())
    with pytest.warns(ConvergenceWarning, match="1 of 3 components lost all their rows"):
        model = ExchangeableMixture(3, random_state=0).fit(X)
    assert model.weights_.size == len(model.partitions_) == 2
    np.testing.assert_allclose(np.exp(model.score_samples(all_states(6))).sum(), 1)


@pytest.mark.parametrize("blocks", ["evidence", "welch", "independent", "full"])
@pytest.mark.parametrize(
    "X",
    [
        np.zeros((30, 4), dtype=int),
        np.ones((30, 4), dtype=int),
        np.tile([1, 0, 1], (30, 1)),
        np.arange(30)[:, None] % 2,
        np.hstack([np.ones((30, 2), dtype=int), clusters(30)]),
    ],
    ids=["all zero", "all one", "identical", "one column", "constant columns"],
)
def test_plain_data_gives_finite_models(blocks, X):
    model = fit_mixture(X, 2, blocks=blocks)
    assert np.isfinite(model.score_samples(X)).all()
    assert np.isfinite(model.predict_proba(X)).all()


@pytest.mark.parametrize(
    ("X", "options", "message"),
    [
        (
            np.eye(3),
            dict(n_components=4),
            "n_components=4 is more than the rows of X that count, n_samples = 3",
        ),
        (np.empty((0, 3)), {}, "0 sample"),
        ([[0, 2], [1, 1]], dict(binarize=None), r"X\[0, 1\] is 2"),
        (np.eye(3), dict(blocks=Blocks(accept="some")), "accept='some' is unknown"),
        (np.eye(3), dict(init="luck"), "init='luck' is unknown"),
        (np.eye(3), dict(tol=-1), "tol must be finite and at least 0, got -1"),
        (np.eye(3), dict(n_init=0), "n_init must be at least 1, got 0"),
        (np.eye(3), dict(max_iter=0), "max_iter must be at least 1, got 0"),
        (np.eye(3), dict(n_components=0), "n_components must be at least 1, got 0"),
        (np.eye(3), dict(blocks="magic"), "blocks='magic' is unknown"),
        (np.eye(3), dict(alpha=-0.1), "alpha must be finite and at least 0"),
    ],
)
def test_bad_input_is_named(X, options, message):
    with pytest.raises(ValueError, match=message):
        ExchangeableMixture(**dict(n_components=1) | options).fit(X)


def test_weights_must_count():
    X = clusters(50)
    with pytest.raises(ValueError, match=r"sample_weight\[0\] is -1"):
        ExchangeableMixture(2).fit(X, sample_weight=-np.ones(50))
    with pytest.raises(ValueError, match="sample_weight is zero for every row"):
        ExchangeableMixture(2).fit(X, sample_weight=np.zeros(50))
    with pytest.raises(
        ValueError, match="n_components=2 is more than the rows of X that count, n_samples = 1"
    ):
        ExchangeableMixture(2).fit(X, sample_weight=np.eye(50)[0])
    with pytest.raises(NotFittedError):
        ExchangeableMixture().score(X)
