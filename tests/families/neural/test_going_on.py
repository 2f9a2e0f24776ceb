"""What goes on after training: checkpoints of networks, and EM from the components they leave."""

import warnings
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp

from enumeration import all_states
from exchangeable import ExchangeableClassifier, ExchangeableMixture, Generative, Neural
from exchangeable.data.examples import merge_equal_rows
from exchangeable.data.observed import Observed, as_observed
from exchangeable.families.common.em_data import InMemory
from exchangeable.families.mixture import Mixture
from exchangeable.families.neural import anchored
from exchangeable.families.problem import Problem
from exchangeable.families.trees.model import TreeModel
from exchangeable.families.trees.moments import tree_moments
from exchangeable.families.trees.natural import Edges, natural_parameters
from exchangeable.families.urns.model import UrnModel
from exchangeable.fitting import restarts
from exchangeable.fitting.em import EMState, StopRule, run_em
from exchangeable.partitions import Partition
from exchangeable.storage import archive

FAMILIES = ["neural independent", "neural urns", "neural tree"]
N = 6
STATES = all_states(N)
rng = np.random.default_rng(5)
KIND = rng.integers(0, 2, size=300)
X = (rng.random((300, N)) < np.where(KIND[:, None] == np.arange(N) % 2, 0.8, 0.2)).astype(float)
HOLED = np.where(rng.random(X.shape) < 0.2, np.nan, X)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="EM did|training did|the fit was interrupted")
        yield


def mixture(family: Any = "neural independent", **options: Any) -> ExchangeableMixture:
    pytest.importorskip("jax")
    settings: dict[str, Any] = {"random_state": 0, "max_iter": 6, "tol": 0.0, "n_jobs": 1}
    return ExchangeableMixture(4, family=family, **settings | options)


class CrashError(Exception):
    """Stands for a crash in the middle of a fit."""


def crashing_after(monkeypatch: pytest.MonkeyPatch, n_reports: int) -> None:
    update, seen = restarts.FitProgress.update, list[Any]()

    def dying(self: Any, run: int, state: Any) -> None:
        update(self, run, state)
        seen.append(state)
        if len(seen) == n_reports:
            raise CrashError

    monkeypatch.setattr(restarts.FitProgress, "update", dying)


def goes_on(
    monkeypatch: pytest.MonkeyPatch, path: Path, n_reports: int, make: Callable[..., Any]
) -> Any:
    """Check that a fit which dies and goes on is, bit for bit, the one that is returned."""
    whole = make()
    with monkeypatch.context() as context:
        crashing_after(context, n_reports)
        with pytest.raises(CrashError):
            make(checkpoint=path)
    resumed = make(checkpoint=path)
    assert resumed.history_ == whole.history_
    assert resumed.valid_history_ == whole.valid_history_
    assert resumed.converged_ == whole.converged_
    np.testing.assert_array_equal(resumed.score_samples(STATES), whole.score_samples(STATES))
    return whole


@pytest.mark.parametrize("n_reports", [1, 3, 5])
@pytest.mark.parametrize("family", FAMILIES)
def test_training_goes_on_where_it_was(
    family: str, n_reports: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Three iterations of trees are those of independent variables, before trees are chosen."""

    def make(**options: Any) -> Any:
        return mixture(family, **options).fit(X)

    goes_on(monkeypatch, tmp_path / "state", n_reports, make)


@pytest.mark.parametrize("n_reports", [10, 13])
def test_so_does_training_whose_rate_is_cut_and_whose_components_settle(
    n_reports: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """With so large a tolerance training ends after eight iterations, and components settle."""
    weights = 1.0 + np.arange(len(X)) % 3

    def make(**options: Any) -> Any:
        neural = Neural("tree", trees=2, cuts=1, settle=64, points=4, layers=(8,), latent=3)
        model = ExchangeableMixture(
            8, family=neural, random_state=1, max_iter=30, tol=10.0, n_jobs=1, **options
        )
        return model.fit(X, sample_weight=weights)

    pytest.importorskip("jax")
    whole = goes_on(monkeypatch, tmp_path / "state", n_reports, make)
    assert whole.n_iter_ > 13


def test_training_goes_on_with_more_iterations(tmp_path: Path) -> None:
    path = tmp_path / "state"
    mixture(checkpoint=path, max_iter=3).fit(X)
    longer = mixture(checkpoint=path, max_iter=6).fit(X)
    assert longer.history_ == mixture(max_iter=6).fit(X).history_


def test_a_checkpoint_belongs_to_its_settings(tmp_path: Path) -> None:
    path = tmp_path / "state"
    mixture(Neural(latent=3), checkpoint=path, max_iter=1).fit(X)
    with pytest.raises(ValueError, match=r"another fit: settings was .*'latent', 3.*'latent', 4"):
        mixture(Neural(latent=4), checkpoint=path, max_iter=1).fit(X)
    with pytest.raises(ValueError, match="family was neural independent, is neural urns"):
        mixture(Neural("urns", latent=3), checkpoint=path, max_iter=1).fit(X)


def rewritten(path: Path, change: Callable[[Any, Any], None]) -> None:
    header, arrays = archive.read(path)
    change(header, arrays)
    archive.write(path, header, arrays)


def with_array(name: str, change: Callable[[Any], Any]) -> Callable[[Any, Any], None]:
    def changed(header: Any, arrays: Any) -> None:
        full = f"0.parts.{name}"
        arrays[full] = change(arrays[full].copy())

    return changed


def without_part(header: Any, arrays: Any) -> None:
    header["runs"][0]["parts"].remove("0.rng")


def without_first_phase(header: Any, arrays: Any) -> None:
    run = header["runs"][0]
    run["parts"] = [name for name in run["parts"] if name.startswith("settled")]


def with_another_phase(header: Any, arrays: Any) -> None:
    arrays["0.parts.7.rng"] = arrays["0.parts.0.rng"]
    header["runs"][0]["parts"].append("7.rng")


def number(position: Any, value: Any) -> Callable[[Any], Any]:
    def changed(array: Any) -> Any:
        array[position] = value
        return array

    return changed


FORGERIES: dict[str, tuple[Callable[[Any, Any], None], str]] = {
    "a number that is none": (
        with_array("settled.network.0", number((0, 0), np.nan)),
        r"whose network\.0 holds what is not a number",
    ),
    "a share that was -inf": (
        with_array("settled.network.1", number(7, 0.0)),
        r"whose network\.1 holds what is not a number",
    ),
    "another width": (
        with_array("0.best.0", lambda array: array[:, 1:].copy()),
        r"best\.0 is float32 of shape \(3, 7\), expected float32 of shape \(3, 8\)",
    ),
    "another type": (
        with_array("0.best.1", lambda array: array.astype(np.float64)),
        r"best\.1 is float64",
    ),
    "a row there is not": (
        with_array("settled.left", number(0, 10**9)),
        "left names rows beyond the",
    ),
    "a row below the first": (with_array("settled.left", number(-1, -1)), "left names rows"),
    "too many rows": (
        with_array("settled.left", lambda array: np.zeros(10**6, dtype=np.int64)),
        "left is int64 of shape",
    ),
    "no steps": (with_array("settled.counts", number(2, -1)), "counts are"),
    "more cuts than there are": (with_array("0.counts", number(3, 9)), "counts are"),
    "no learning rate": (with_array("0.numbers", number(1, 0.0)), "learning rate of 0.0"),
    "an infinite worth": (with_array("0.numbers", number(0, np.inf)), "numbers are"),
    "shares of nothing": (
        with_array("settled.shares", lambda array: 0 * array),
        "shares do not add up to one",
    ),
    "no generator": (with_array("0.rng", number(3, 2)), "rng is not the state of a generator"),
    "a part that is missing": (without_part, "without rng"),
    "a phase that is missing": (without_first_phase, "without phase 0"),
    "a phase there is not": (with_another_phase, "of 7, which is no part of it"),
    "histories of two lengths": (
        lambda header, arrays: arrays.update({"0.history": np.zeros(2)}),
        "histories of different lengths",
    ),
    "no list of parts": (
        lambda header, arrays: header["runs"][0].update(parts=3),
        "a training without its parts",
    ),
    "parts that are not there": (
        lambda header, arrays: header["runs"][0].update(parts=["0.leaf"]),
        "lacks 0.parts.0.leaf",
    ),
}


@pytest.fixture(scope="module")
def settled(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Return the checkpoint of training whose components have begun to settle."""
    path = tmp_path_factory.mktemp("settled") / "state"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        settling(path).fit(X)
    names = list(archive.read(path)[1])
    assert any("settled" in name for name in names)
    return path.read_bytes()


def settling(path: Path, max_iter: int = 12) -> ExchangeableMixture:
    neural = Neural(settle=64, cuts=0, layers=(8,), latent=3)
    return mixture(neural, tol=10.0, max_iter=max_iter, checkpoint=path)


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_forged_state_of_training_is_refused(
    forgery: str, settled: bytes, tmp_path: Path
) -> None:
    change, match = FORGERIES[forgery]
    path = tmp_path / "state"
    path.write_bytes(settled)
    rewritten(path, change)
    with pytest.raises(ValueError, match=match):
        settling(path).fit(X)


def test_a_state_that_was_cut_off_is_refused(settled: bytes, tmp_path: Path) -> None:
    path = tmp_path / "state"
    for size in (100, len(settled) // 2, len(settled) - 10):
        path.write_bytes(settled[:size])
        with pytest.raises(ValueError, match="is not a checkpoint of this library"):
            settling(path).fit(X)


def test_states_of_em_and_of_training_are_not_exchanged(settled: bytes, tmp_path: Path) -> None:
    trained, by_em = tmp_path / "trained", tmp_path / "by em"
    trained.write_bytes(settled)
    ExchangeableMixture(4, family="tree", random_state=0, max_iter=2, checkpoint=by_em).fit(X)
    headers = [archive.read(path) for path in (trained, by_em)]
    for path, (own, _), (other, arrays) in zip(
        (trained, by_em), headers, headers[::-1], strict=True
    ):
        archive.write(path, other | {"purpose": own["purpose"]}, arrays)
    with pytest.raises(ValueError, match="a fit by EM, but family='neural independent'"):
        settling(trained).fit(X)
    with pytest.raises(ValueError, match="that is trained, but family='tree' is fitted by EM"):
        ExchangeableMixture(4, family="tree", random_state=0, max_iter=2, checkpoint=by_em).fit(X)


PARENTS = np.array([[6, 0, 1, 2, 3, 4], [6, 0, 0, 6, 3, 3], [6, 0, 1, 2, 3, 4]], dtype=np.int32).T


def trees(parent: Any = PARENTS) -> TreeModel:
    draw = np.random.default_rng(2)
    means = draw.uniform(0.2, 0.8, size=(N, 3))
    if not len(parent):
        slope = np.log(means) - np.log1p(-means)
        return TreeModel.make(np.log1p(-means).sum(axis=0), slope)
    above = np.concatenate([means, np.ones((1, 3))])[parent, np.arange(3)]
    both = means * above * draw.uniform(0.8, 1.2, size=means.shape)
    base, slope, pair = natural_parameters(means, both, Edges.of(parent))
    return TreeModel.make(base, slope, parent, pair)


def urns() -> UrnModel:
    draw = np.random.default_rng(3)
    log_q = [np.log(q) for q in draw.dirichlet(np.ones(N + 1), size=3)]
    partition = Partition.from_labels(np.zeros(N, dtype=np.int64))
    return UrnModel.make([partition] * 3, draw.normal(size=(N, 3)), log_q)


@pytest.mark.parametrize("parent", [PARENTS, PARENTS[:0]], ids=["edges", "no edges"])
def test_moments_of_trees_are_those_of_enumeration(parent: Any) -> None:
    model = trees(parent)
    chances = np.exp(model.score(as_observed(STATES, None)))
    means, both = tree_moments(model)
    np.testing.assert_allclose(means, STATES.T @ chances, atol=1e-12)
    assert both.shape == model.parent.shape
    for y in range(3 if parent.size else 0):
        for j, above in enumerate(parent[:, y]):
            pair = STATES[:, j] * (STATES[:, above] if above < N else 0)
            assert both[j, y] == pytest.approx(pair @ chances[:, y], abs=1e-12)


MODELS = {
    "independent": (trees(PARENTS[:0]), anchored.AnchoredTrees),
    "trees": (trees(), anchored.AnchoredTrees),
    "urns": (urns(), anchored.AnchoredUrns),
}


@pytest.mark.parametrize("data", [X, HOLED], ids=["complete", "holes"])
@pytest.mark.parametrize("kind", MODELS)
def test_em_from_anchored_components_maximises_what_it_says(kind: str, data: Any) -> None:
    """The log-likelihood minus the divergences from the first components, by enumeration."""
    model, made = MODELS[kind]
    first = Mixture(model, np.log(np.array([0.2, 0.3, 0.5])))
    examples = merge_equal_rows(as_observed(data, 0.0), np.ones(len(data)))[0]
    rows, states = InMemory(examples, n_jobs=1), as_observed(STATES, None)
    family = made(Problem(3, [Partition.from_labels(np.arange(N))] * 3, examples=examples))
    assert family.resume(rows, first) is first
    reached = list[EMState]()
    run_em(
        rows, family, EMState(first, first, np.ones(3)), StopRule(0.0, 12), report=reached.append
    )
    weights = np.exp(model.score(states))

    def objective(mixture: Mixture) -> float:
        divergence = (weights * (model.score(states) - mixture.model.score(states))).sum()
        return mixture.log_likelihood(examples) - anchored.STRENGTH * float(divergence)

    found = [objective(state.mixture) for state in reached]
    assert len(found) > 5
    assert np.diff(found).min() > -1e-8
    assert found[-1] > found[0] + 1
    gain = family.prior_gain(reached[1].mixture.model, reached[4].mixture.model)
    apart = [
        objective(reached[step].mixture) - reached[step].mixture.log_likelihood(examples)
        for step in (1, 4)
    ]
    assert gain == pytest.approx(apart[1] - apart[0], abs=1e-8)
    total = logsumexp(reached[-1].mixture.model.score(states), axis=0)
    np.testing.assert_allclose(total, 0.0, atol=1e-9)
    assert all(map(np.array_equal, reached[-1].mixture.model.edges(), model.edges()))


@pytest.mark.parametrize("family", FAMILIES)
def test_a_warm_start_goes_on_by_em_and_never_harms_held_out_rows(family: str) -> None:
    model = mixture(family, warm_start=True, max_iter=3).fit(X[:150])
    before = model.score(X[150:])
    model.set_params(max_iter=20).fit(X[:150], X_valid=X[150:])
    assert model.valid_history_[0][0] == pytest.approx(before, rel=1e-5)
    assert model.score(X[150:]) >= before
    with pytest.raises(ValueError, match=r"of 4 components, but n_components=3"):
        model.set_params(n_components=3).fit(X)


def test_a_warm_start_can_be_stopped_and_go_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    first = mixture(max_iter=3).fit(X)

    def make(**options: Any) -> Any:
        return deepcopy(first).set_params(warm_start=True, max_iter=6, **options).fit(X)

    goes_on(monkeypatch, tmp_path / "state", 3, make)


@pytest.mark.parametrize("family", FAMILIES)
def test_rows_without_labels_make_rows_and_labels_likelier(family: str) -> None:
    """Twenty labels, and nine times as many rows without."""
    pytest.importorskip("jax")
    y = np.where(np.arange(len(X)) < 20, KIND, -1)
    options: dict[str, Any] = {"training": Generative(8, n_init=1), "max_iter": 3, "n_jobs": 1}
    alone = ExchangeableClassifier(family, **options).fit(X[:20], KIND[:20])
    both = ExchangeableClassifier(family, semi_supervised=True, **options).fit(X, y)

    def worth(model: Any) -> float:
        joint = model.predict_joint_log_proba(X)
        return float(joint[np.arange(20), KIND[:20]].sum() + logsumexp(joint[20:], axis=1).sum())

    assert worth(both) > worth(alone) + 1
    assert logsumexp(both.predict_joint_log_proba(STATES)) == pytest.approx(0.0, abs=1e-9)


def test_later_batches_move_components_towards_their_rows() -> None:
    model = mixture("neural tree", max_iter=3).partial_fit(X[:100])
    before = model.score(X[100:])
    for begin in range(100, 300, 50):
        model.partial_fit(X[begin : begin + 50])
    assert model.score(X[100:]) > before
    assert model.n_samples_weight_ == 300
    nothing = Observed.from_symbols(np.full((1, N), -1, dtype=np.int8))
    np.testing.assert_allclose(model._model.score(nothing), 0.0, atol=1e-9)
