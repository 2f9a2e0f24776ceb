"""ExchangeableMixture: exact steps, a likelihood that never falls, and everything around a fit."""

import os
import signal
import subprocess
import sys
import threading
import time
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from exchangeable.fitting.structural_em import (
    EMSettings,
    run_em,
    soft_proposals,
    start_from_posterior,
)
from scipy.special import logsumexp
from scipy.stats import chisquare
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from enumeration import all_states
from exchangeable import EVM, Count, ExchangeableMixture
from exchangeable.data.examples import merge_equal_rows
from exchangeable.data.observed import as_observed
from exchangeable.structure.learner import BlockLearner, BlockSettings
from reference_em import structural_em

STRUCTURES = ("evidence", "welch", "independent", "full", [[0, 3], [1, 2, 4], [5]])


def clusters(n_rows=400, n_variables=6, n_kinds=3, seed=0):
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, n_kinds, n_rows)
    rates = rng.beta(0.6, 0.6, (n_kinds, n_variables))
    return (rng.random((n_rows, n_variables)) < rates[kind]).astype(np.uint8)


def fit(X, structure="evidence", **options):
    options = dict(n_components=3, random_state=0) | options
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return ExchangeableMixture(structure=structure, **options).fit(X)


@pytest.mark.parametrize("structure", STRUCTURES, ids=str)
@pytest.mark.parametrize("alpha", [0.0, 0.1])
def test_probabilities_sum_to_one(structure, alpha):
    model = fit(clusters(), structure, alpha=alpha)
    np.testing.assert_allclose(np.exp(model.score_samples(all_states(6))).sum(), 1, rtol=1e-10)


@pytest.mark.parametrize("structure", STRUCTURES, ids=str)
def test_scores_are_those_of_the_components(structure):
    """log P(x) = log Σ_y p(y) Π_b P_b(x), each block an EVM with the model's own weights."""
    model = fit(clusters(), structure)
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


@pytest.mark.parametrize("seed", range(3))
def test_em_equals_the_plain_algorithm(seed):
    """From the same start, through changes of structure, to ten digits."""
    X = clusters(n_rows=300, n_variables=12, seed=seed)
    X = np.vstack([X, X[:80]])  # equal rows, which ours merges
    posterior = np.random.default_rng(seed).dirichlet(np.ones(4), size=len(X))
    posterior[300:] = posterior[:80]
    expected = structural_em(X.astype(int), posterior, 12)
    examples, member = merge_equal_rows(as_observed(X, None), np.ones(len(X)))
    first = np.array([np.flatnonzero(member == i)[0] for i in range(examples.rows.n_rows)])
    # Equal rows must have started with equal posteriors for the comparison to make sense.
    for i, row in enumerate(first):
        posterior[member == i] = posterior[row]
    expected = structural_em(X.astype(int), posterior, 12)
    learner = BlockLearner("welch", BlockSettings(0.1, 0.1, 0.1, (1,)))
    settings = EMSettings(alpha=0.1, tol=-np.inf, max_iter=12, accept="all")
    propose = soft_proposals(lambda found: learner.propose(examples, found))
    state = start_from_posterior(examples, posterior[first], propose, settings)
    state = run_em(examples, state, [propose], settings)
    rising = np.flatnonzero(np.diff(expected) < 0)
    until = rising[0] + 1 if rising.size else len(expected)  # ours does not take a step down
    np.testing.assert_allclose(state.history[:until], expected[:until], rtol=1e-10)
    assert until > 5


@pytest.mark.parametrize("structure", STRUCTURES, ids=str)
@pytest.mark.parametrize("accept", ["all", "component"])
@pytest.mark.parametrize("init", ["rows", "random"])
def test_the_likelihood_never_falls(structure, accept, init):
    model = fit(clusters(seed=1), structure, accept=accept, init=init, n_init=3, tol=1e-7)
    for history in model.history_:
        assert (np.diff(history) >= 0).all()
    assert model.log_likelihood_ == max(history[-1] for history in model.history_)
    np.testing.assert_allclose(model.score(clusters(seed=1)), model.log_likelihood_, rtol=1e-9)


@pytest.mark.parametrize("structure", STRUCTURES, ids=str)
def test_the_result_does_not_depend_on_threads_or_form(structure):
    X = clusters(n_rows=1500)
    one = fit(X, structure, n_init=3, n_jobs=1)
    for other in (
        fit(X, structure, n_init=3, n_jobs=4),
        fit(sp.csr_matrix(X), structure, n_init=3),
        fit(X.astype(float), structure, n_init=3),
    ):
        np.testing.assert_array_equal(one.score_samples(X), other.score_samples(X))
        assert one.history_ == other.history_


@pytest.mark.parametrize("structure", STRUCTURES, ids=str)
def test_whole_weights_are_repetitions(structure):
    X = clusters()
    weight = np.random.default_rng(3).integers(0, 4, len(X))
    start = fit(X, structure)
    models = []
    for data, options in ((X, dict(sample_weight=weight)), (np.repeat(X, weight, axis=0), {})):
        model = ExchangeableMixture(3, structure=structure, warm_start=True, random_state=0)
        model.__dict__.update(start.__dict__, warm_start=True)
        models.append(model.fit(data, **options))
    np.testing.assert_allclose(models[0].score_samples(X), models[1].score_samples(X), rtol=1e-8)


def test_equal_rows_are_merged_once():
    X = np.array([[0, 1, 1], [1, 0, 0], [0, 1, 1], [0, 1, 1]], dtype=np.uint8)
    for form in (X, sp.csr_matrix(X)):
        examples, member = merge_equal_rows(as_observed(form, None), np.array([1.0, 2, 3, 4]))
        assert member.tolist() == [0, 1, 0, 0]
        assert examples.weights.tolist() == [8, 2]
        assert examples.total == 10


@pytest.mark.parametrize("seed", range(5))
def test_one_start_finds_two_clear_clusters(seed):
    """Random starts alone often do not, which is why they are not the default."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 2, 1500)
    X = rng.random((1500, 8)) < np.where(kind[:, None] == np.arange(8) % 2, 0.2, 0.8)
    found = ExchangeableMixture(2, random_state=seed).fit(X).predict(X)
    assert max((found == kind).mean(), (found != kind).mean()) > 0.9


def test_other_rows_choose_the_run():
    X, held = np.split(clusters(400, 12, 4), 2)
    gains = []
    for seed in range(6):
        mixture = ExchangeableMixture(4, n_init=5, random_state=seed)
        by_training = mixture.fit(X)
        trained, worth = by_training.log_likelihood_, by_training.score(held)
        by_others = mixture.fit(X, X_valid=held)
        assert by_others.log_likelihood_ == by_others.history_[by_others.best_init_][-1]
        assert by_others.log_likelihood_ <= trained
        gains.append(by_others.score(held) - worth)
    assert min(gains) >= 0
    assert max(gains) > 0
    with pytest.raises(ValueError, match="features"):
        ExchangeableMixture(2).fit(X, X_valid=held[:, :3])


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


def test_samples_follow_the_distribution():
    model = fit(clusters(), n_components=2)
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
    model = fit(X)
    assert model.n_parameters_ == 3 * 6 + 2
    total = model.score_samples(X).sum()
    np.testing.assert_allclose(model.aic(X), -2 * total + 2 * 20)
    np.testing.assert_allclose(model.bic(X), -2 * total + 20 * np.log(len(X)))


def test_select():
    X = clusters(n_rows=2000, n_variables=10, n_kinds=3, seed=5)
    found = ExchangeableMixture.select(X, n_components=[1, 3, 8], random_state=0, n_init=3)
    assert found.criterion == "bic"
    assert found.best.n_components == 3
    assert "chosen by bic" in str(found)
    held_out = clusters(n_rows=500, n_variables=10, n_kinds=3, seed=5)
    by_rows = ExchangeableMixture.select(X, held_out, n_components=[1, 3], random_state=0)
    assert by_rows.criterion == "valid"
    assert by_rows.best.score(held_out) == max(row.valid for row in by_rows.table)
    with pytest.raises(ValueError, match="criterion='valid' needs X_valid"):
        ExchangeableMixture.select(X, criterion="valid")
    with pytest.raises(ValueError, match="criterion='luck' is unknown"):
        ExchangeableMixture.select(X, criterion="luck")
    with pytest.raises(ValueError, match="n_components is empty"):
        ExchangeableMixture.select(X, n_components=[])


def test_a_component_without_rows_is_dropped(monkeypatch):
    """With the limit set between the two smallest shares exactly one component falls below it."""
    X = clusters()
    smallest = np.sort(ExchangeableMixture(3, random_state=0).fit(X).weights_)[:2]
    monkeypatch.setattr("exchangeable.estimators.mixture.NO_MASS", smallest.mean())
    with pytest.warns(ConvergenceWarning, match="1 of 3 components lost all their rows"):
        model = ExchangeableMixture(3, random_state=0).fit(X)
    assert model.weights_.size == len(model.partitions_) == 2
    np.testing.assert_allclose(np.exp(model.score_samples(all_states(6))).sum(), 1)


@pytest.mark.parametrize("structure", ["evidence", "welch", "independent", "full"])
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
def test_plain_data_gives_finite_models(structure, X):
    model = fit(X, structure, n_components=2)
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
        (np.eye(3), dict(accept="some"), "accept='some' is unknown"),
        (np.eye(3), dict(init="luck"), "init='luck' is unknown"),
        (np.eye(3), dict(tol=-1), "tol must be at least 0, got -1"),
        (np.eye(3), dict(n_init=0), "n_init must be at least 1, got 0"),
        (np.eye(3), dict(max_iter=0), "max_iter must be at least 1, got 0"),
        (np.eye(3), dict(n_components=0), "n_components must be at least 1, got 0"),
        (np.eye(3), dict(structure="magic"), "structure='magic' is unknown"),
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


class StopAfterError(Exception):
    """Stands for a crash in the middle of a fit."""


def crash_after(monkeypatch, n_reports):
    """Make the fit die at its n-th report, the checkpoint of that already written."""
    from exchangeable.fitting import restarts

    seen = []
    update = restarts.FitProgress.update

    def dying(self, run, state):
        update(self, run, state)
        seen.append(state)
        if len(seen) == n_reports:
            raise StopAfterError

    monkeypatch.setattr(restarts.FitProgress, "update", dying)


@pytest.mark.parametrize("n_reports", [1, 4, 9])
def test_a_checkpoint_resumes_exactly(monkeypatch, tmp_path, n_reports):
    X = clusters(n_rows=800, n_variables=10)
    options = dict(n_init=2, tol=1e-6, random_state=3, n_jobs=1)
    whole = fit(X, **options)
    path = tmp_path / "fit.npz"
    with monkeypatch.context() as context:
        crash_after(context, n_reports)
        with pytest.raises(StopAfterError):
            fit(X, checkpoint=path, **options)
    assert [p.name for p in tmp_path.iterdir()] == ["fit.npz"]
    resumed = fit(X, checkpoint=path, **options)
    assert resumed.history_ == whole.history_
    np.testing.assert_array_equal(resumed.score_samples(X), whole.score_samples(X))
    again = fit(X, checkpoint=path, **options)  # nothing left to do
    assert again.history_ == whole.history_


def test_a_checkpoint_of_another_fit_is_refused(tmp_path):
    path = tmp_path / "fit.npz"
    X = clusters()
    fit(X, checkpoint=path)
    with pytest.raises(ValueError, match=r"belongs to another fit: alpha was 0\.1, is 0\.5"):
        fit(X, checkpoint=path, alpha=0.5)
    with pytest.raises(ValueError, match="belongs to another fit: data was"):
        fit(1 - X, checkpoint=path)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(ValueError, match="is not a checkpoint of this library"):
        fit(X, checkpoint=path)
    with pytest.raises(
        ValueError, match="checkpoint needs a whole number as random_state, got None"
    ):
        fit(X, checkpoint=tmp_path / "other.npz", random_state=None)


INTERRUPTED = """
import numpy as np, sys
from exchangeable import ExchangeableMixture
X = (np.random.default_rng(0).random((20000, 60)) < 0.3).astype(np.uint8)
ExchangeableMixture(2, random_state=0).fit(X[:500])  # compile
model = ExchangeableMixture(30, tol=0.0, max_iter=10**6, n_init=2, random_state=0)
print("fitting", flush=True)
model.fit(X)
print("left", model.n_iter_, model.converged_, np.isfinite(model.score(X[:100])), flush=True)
"""


def test_an_interrupt_leaves_the_best_model_so_far():
    """A real SIGINT to a real process, in the middle of a fit that would not end."""
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"NUMBA_NUM_THREADS": "2"},
    )
    assert process.stdout.readline().strip() == "fitting"
    killer = threading.Timer(120, process.kill)
    killer.start()
    time.sleep(4)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    killer.cancel()
    assert process.returncode == 0, err
    assert out.startswith("left")
    assert out.split()[2:] == ["False", "True"]
    assert "interrupted" in err
