"""Checkpoints: a fit of any family that is stopped goes on exactly where it was."""

import numpy as np
import pytest

from em_families import BY_EM
from exchangeable.families import REGISTRY
from exchangeable.fitting import checkpoint, restarts, steps
from exchangeable.storage import archive
from made_rows import bound_clusters, clusters, fit_mixture


class StopAfterError(Exception):
    """Stands for a crash in the middle of a fit."""


def crash_after(monkeypatch, n_reports):
    """Make the fit die at its n-th report, the checkpoint of that already written."""
    seen = []
    update = restarts.FitProgress.update

    def dying(self, run, state):
        update(self, run, state)
        seen.append(state)
        if len(seen) == n_reports:
            raise StopAfterError

    monkeypatch.setattr(restarts.FitProgress, "update", dying)


def assert_resumes(monkeypatch, tmp_path, n_reports, X, X_valid=None, **options):
    """Check that a fit which dies and goes on ends where an undisturbed one does."""
    options = dict(n_init=2, random_state=3, n_jobs=1) | options
    whole = fit_mixture(X, X_valid=X_valid, **options)
    path = tmp_path / "fit.npz"
    with monkeypatch.context() as context:
        crash_after(context, n_reports)
        with pytest.raises(StopAfterError):
            fit_mixture(X, X_valid=X_valid, checkpoint=path, **options)
    assert [p.name for p in tmp_path.iterdir()] == ["fit.npz"]
    for _ in range(2):  # the second time there is nothing left to do
        resumed = fit_mixture(X, X_valid=X_valid, checkpoint=path, **options)
        assert resumed.history_ == whole.history_
        assert resumed.converged_ == whole.converged_
        np.testing.assert_array_equal(resumed.score_samples(X), whole.score_samples(X))
    if X_valid is not None:
        assert resumed.valid_history_ == whole.valid_history_


@pytest.mark.parametrize("n_reports", [1, 4, 9])
def test_a_checkpoint_resumes_exactly(monkeypatch, tmp_path, n_reports):
    X = clusters(n_rows=800, n_variables=10)
    assert_resumes(monkeypatch, tmp_path, n_reports, X, tol=1e-6)


@pytest.mark.parametrize("n_reports", [12, 15])
def test_of_steps_over_batches(monkeypatch, tmp_path, n_reports):
    """They are not kept before they have ended: a fit that dies makes them again."""
    monkeypatch.setattr(steps, "SMALLEST", 8)
    X, X_valid = bound_clusters(n_rows=500, n_variables=9), bound_clusters(60, 9)
    options = {"family": "hidden tree", "tol": 0.0, "max_iter": 20}
    assert_resumes(monkeypatch, tmp_path, n_reports, X, X_valid, **options)


@pytest.mark.parametrize("n_reports", [1, 3, 8, 14])
@pytest.mark.parametrize("family", BY_EM)
def test_of_every_family(monkeypatch, tmp_path, family, n_reports):
    X = bound_clusters(n_rows=300, n_variables=8)
    assert_resumes(monkeypatch, tmp_path, n_reports, X, family=family, tol=0.0, max_iter=6)


@pytest.mark.parametrize("family", BY_EM)
def test_with_held_out_rows(monkeypatch, tmp_path, family):
    X, valid = np.split(bound_clusters(n_rows=400, n_variables=8), 2)
    assert_resumes(monkeypatch, tmp_path, 5, X, valid, family=family, tol=0.0, max_iter=8)


@pytest.mark.parametrize("family", ["blocks", "weighted tree", "count tree"])
def test_what_a_killed_process_leaves_is_older_but_whole(monkeypatch, tmp_path, family):
    """Between two writes iterations are lost, and repeated with the same result."""
    monkeypatch.setattr(checkpoint, "SECONDS_APART", np.inf)
    X = bound_clusters(n_rows=300, n_variables=8)
    options = dict(n_init=2, family=family, tol=0.0, max_iter=6, n_jobs=1, random_state=3)
    path, left = tmp_path / "fit.npz", tmp_path / "left.npz"
    update = restarts.FitProgress.update

    def copying(self, run, state):
        update(self, run, state)
        left.write_bytes(path.read_bytes())

    with monkeypatch.context() as context:
        context.setattr(restarts.FitProgress, "update", copying)
        whole = fit_mixture(X, checkpoint=path, **options)
    assert left.read_bytes() != path.read_bytes()
    resumed = fit_mixture(X, checkpoint=left, **options)
    assert resumed.history_ == whole.history_
    np.testing.assert_array_equal(resumed.score_samples(X), whole.score_samples(X))
    assert left.read_bytes() == path.read_bytes()


def test_writes_are_a_second_apart_and_the_last_state_is_kept(monkeypatch, tmp_path):
    clock, written = [100.0], []
    monkeypatch.setattr(checkpoint.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(
        checkpoint, "save_states", lambda path, states, purpose: written.append(list(states))
    )
    with checkpoint.Checkpoint(tmp_path / "fit.npz", 2, {}) as kept:
        for step in range(30):
            clock[0] += 0.125
            kept.update(step % 2, step)
    assert [max(filter(None, states), default=0) for states in written] == [0, 8, 16, 24, 29]
    with checkpoint.Checkpoint(tmp_path / "other.npz", 1, {}) as kept:
        kept.update(0, 1)
    assert len(written) == 6  # nothing new at the end


@pytest.mark.filterwarnings("ignore:the fit was interrupted")
@pytest.mark.parametrize("family", ["blocks", "weighted tree", "count tree"])
def test_a_fit_that_was_interrupted_goes_on_as_if_it_was_not(monkeypatch, tmp_path, family):
    """Ctrl-C ends the families that come before as well, but the checkpoint remembers them."""
    X = bound_clusters(n_rows=300, n_variables=8)
    options = dict(family=family, tol=0.0, max_iter=6, n_jobs=1)
    whole = fit_mixture(X, **options)
    update, path = restarts.FitProgress.update, tmp_path / "fit.npz"
    stops = []

    def interrupting(self, run, state):
        update(self, run, state)
        if state.n_iter == 2 and not stops[0].is_set():
            stops[0].set()

    with monkeypatch.context() as context:
        event = restarts.threading.Event
        context.setattr(restarts.threading, "Event", lambda: stops.append(event()) or stops[-1])
        context.setattr(restarts.FitProgress, "update", interrupting)
        partly = fit_mixture(X, checkpoint=path, **options)
    assert np.isfinite(partly.score(X))
    assert partly.family == family
    assert isinstance(partly._model, REGISTRY[family].model)
    resumed = fit_mixture(X, checkpoint=path, **options)
    assert resumed.history_ == whole.history_
    np.testing.assert_array_equal(resumed.score_samples(X), whole.score_samples(X))


def test_a_checkpoint_of_another_fit_is_refused(tmp_path):
    path = tmp_path / "fit.npz"
    X = clusters()
    fit_mixture(X, checkpoint=path)
    with pytest.raises(ValueError, match=r"belongs to another fit: alpha was 0\.1, is 0\.5"):
        fit_mixture(X, checkpoint=path, alpha=0.5)
    with pytest.raises(ValueError, match="belongs to another fit: data was"):
        fit_mixture(1 - X, checkpoint=path)
    with pytest.raises(ValueError, match="belongs to another fit: family was blocks, is urns"):
        fit_mixture(X, checkpoint=path, family="urns")
    with pytest.raises(ValueError, match="belongs to another fit: blocks was auto, is welch"):
        fit_mixture(X, checkpoint=path, blocks="welch")
    with pytest.raises(ValueError, match="belongs to another fit: held-out rows was"):
        fit_mixture(X, X_valid=X[:50], checkpoint=path)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(ValueError, match="is not a checkpoint of this library"):
        fit_mixture(X, checkpoint=path)
    with pytest.raises(
        ValueError, match="checkpoint needs a whole number as random_state, got None"
    ):
        fit_mixture(X, checkpoint=tmp_path / "other.npz", random_state=None)


LIES = {
    "columns": (lambda X: X[:, 1:], {}, "columns, but X has"),
    "components": (lambda X: X, {"k": 3}, "of 3 components"),
    "family": (lambda X: X, {"family": None}, "but family="),
}


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("family", BY_EM)
def test_a_checkpoint_that_lies_about_its_fit_is_refused(family, lie, tmp_path):
    change, options, match = LIES[lie]
    if "family" in options:
        options = {"family": "tree" if family == "hidden tree" else "hidden tree"}
    X, few = clusters(), {"k": 2, "max_iter": 3, "tol": 0}
    fit_mixture(X, checkpoint=tmp_path / "fit", family=family, **few)
    fit_mixture(change(X), checkpoint=tmp_path / "other", **{"family": family, **few, **options})
    purpose = archive.read(tmp_path / "fit")[0]["purpose"]
    header, arrays = archive.read(tmp_path / "other")
    archive.write(tmp_path / "fit", {**header, "purpose": purpose}, arrays)
    with pytest.raises(ValueError, match=match):
        fit_mixture(X, checkpoint=tmp_path / "fit", family=family, **few | {"max_iter": 6})
