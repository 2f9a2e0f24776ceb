"""Runs from several starts: threads, averages, and what an interrupt leaves."""

import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import logsumexp

from em_families import BY_EM
from enumeration import all_states
from exchangeable.data.observed import Observed
from exchangeable.data.rows import as_rows
from exchangeable.families import REGISTRY
from exchangeable.families.common.em_data import InMemory
from exchangeable.families.mixture import Mixture
from exchangeable.families.problem import Problem
from exchangeable.fitting import restarts
from exchangeable.fitting.em import StopRule
from exchangeable.fitting.runs import Runs
from exchangeable.partitions import Partition
from made_rows import bound_clusters, clusters, examples_of, fit_mixture

N = 6
STATES = all_states(N)
BLOCKS = ("evidence", "welch", "independent", "full", [[0, 3], [1, 2, 4], [5]])


@pytest.mark.parametrize("blocks", BLOCKS, ids=str)
def test_the_result_does_not_depend_on_threads_or_form(blocks):
    X = clusters(n_rows=1500)
    one = fit_mixture(X, blocks=blocks, n_init=3, n_jobs=1)
    for other in (
        fit_mixture(X, blocks=blocks, n_init=3, n_jobs=4),
        fit_mixture(sp.csr_matrix(X), blocks=blocks, n_init=3),
        fit_mixture(X.astype(float), blocks=blocks, n_init=3),
    ):
        np.testing.assert_array_equal(one.score_samples(X), other.score_samples(X))
        assert one.history_ == other.history_


@pytest.mark.parametrize("blocks", BLOCKS, ids=str)
def test_the_best_run_is_kept(blocks):
    X = clusters(seed=1)
    model = fit_mixture(X, blocks=blocks, n_init=3)
    assert model.log_likelihood_ == max(history[-1] for history in model.history_)
    assert model.log_likelihood_ == model.history_[model.best_init_][-1]
    np.testing.assert_allclose(model.score(X), model.log_likelihood_, rtol=1e-9)


def test_the_average_is_the_average():
    examples = examples_of(bound_clusters())
    whole = [Partition.from_labels([0] * N)] * 3
    problem = Problem(3, whole, examples=examples, pooling=8.0)
    generators = np.random.default_rng(0).spawn(3)
    rule = StopRule(max_iter=10)
    runs = Runs(REGISTRY["urns"], problem, InMemory(examples), rule, "both", generators)
    ended = [runs.run(number).best for number in range(3)]
    rows = Observed(as_rows(STATES, None))
    single = [mixture.log_posterior(rows)[1] for mixture in ended]
    both = Mixture.average(ended).log_posterior(rows)[1]
    np.testing.assert_allclose(both, logsumexp(single, axis=0) - np.log(3), atol=1e-10)


@pytest.mark.parametrize("family", BY_EM)
def test_every_family_can_be_averaged(family):
    X = bound_clusters()
    model = fit_mixture(X, family=family, n_init=2, combine="average", max_iter=60)
    np.testing.assert_allclose(np.exp(model.score_samples(STATES)).sum(), 1, rtol=1e-10)
    assert model.weights_.size == 6
    np.testing.assert_allclose(model.log_likelihood_, model.score(X), atol=1e-10)
    single = fit_mixture(X, family=family, n_init=2, max_iter=60)
    assert model.history_ == single.history_


INTERRUPTED = """
import numpy as np
from exchangeable import ExchangeableMixture
from exchangeable.fitting import restarts
X = (np.random.default_rng(0).random((2000, 60)) < 0.3).astype(np.uint8)
update = restarts.FitProgress.update
def telling(self, run, state):
    update(self, run, state)
    if run == 0 and state.n_iter == 3:
        print("iterated", flush=True)
restarts.FitProgress.update = telling
model = ExchangeableMixture(30, tol=0.0, max_iter=10**6, n_init=2, random_state=0)
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
    killer = threading.Timer(120, process.kill)
    killer.start()
    assert process.stdout.readline().strip() == "iterated"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    killer.cancel()
    assert process.returncode == 0, err
    left = out.strip().splitlines()[-1].split()
    assert left[0] == "left"
    assert int(left[1]) >= 3
    assert left[2:] == ["False", "True"]
    assert "interrupted" in err


def test_an_interrupt_before_anything_was_found_goes_through(monkeypatch):
    def interrupted(*arguments):
        monkeypatch.undo()
        raise KeyboardInterrupt

    def run_one(number, state, report, stop, threads):
        stop.wait(60)

    monkeypatch.setattr(restarts.apart, "wait_for", interrupted)
    with pytest.raises(KeyboardInterrupt):
        restarts.run_all(run_one, 2, 10, n_jobs=2)
