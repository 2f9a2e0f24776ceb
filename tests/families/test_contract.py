"""What every family promises, for each in the registry and for one added in a single file."""

import itertools
import warnings
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp

import exchangeable
from enumeration import all_states
from exchangeable import (
    Blocks,
    ExchangeableClassifier,
    ExchangeableDensity,
    ExchangeableImputer,
    ExchangeableMixture,
)
from exchangeable.data.examples import merge_equal_rows
from exchangeable.data.observed import Observed, as_observed
from exchangeable.families import REGISTRY, WITH_STATISTICS, model_kinds, register
from exchangeable.families.common.em_data import InMemory
from exchangeable.families.contract import Family, FamilySpec, Model
from exchangeable.families.joined import JoinedModel
from exchangeable.families.mixture import Mixture
from exchangeable.families.sums import ROUNDING, Sums
from exchangeable.fitting.checkpoint import save_states
from exchangeable.fitting.em import EMState
from exchangeable.fitting.runs import Runs, begin, families_of
from exchangeable.fitting.tasks import problem_of, rule_of, spec_of
from few_components import few_components
from toy_family import SPEC as COINS

N = 5
STATES = all_states(N)
rng = np.random.default_rng(4)
KIND = rng.integers(0, 2, size=90)
X = (rng.random((90, N)) < np.where(KIND[:, None] == np.arange(N) % 2, 0.8, 0.3)).astype(float)
HOLED = np.where(rng.random(X.shape) < 0.2, np.nan, X)
QUESTIONS = np.array([[1, -1, 0, -1, -1], [-1, -1, -1, -1, -1], [0, 1, 1, 0, -1]], dtype=np.int8)
SPECS = [*REGISTRY.values(), *WITH_STATISTICS.values(), COINS]
BY_EM = [spec for spec in SPECS if issubclass(spec.family, Family)]
WITH_CLASSES = [spec for spec in SPECS if "classes" not in spec.cannot]


@pytest.fixture(autouse=True)
def coins() -> Iterator[None]:
    """Register the family of one file, as its users would, for the time of a test."""
    register(COINS)
    yield
    del REGISTRY[COINS.name]


def options_of(spec: FamilySpec) -> dict[str, Any]:
    """Return how users ask for a family."""
    blocks = [([3, 0, 1], "runs")]
    return {"family": spec.name, **({"blocks": blocks} if spec.statistics else {})}


USUAL: dict[tuple[str, bool], ExchangeableMixture] = {}
"""Fits of two components to X, made once: training a network takes seconds."""


def fitted(spec: FamilySpec, data: Any = X, k: int = 2, **options: Any) -> ExchangeableMixture:
    key, usual = (spec.name, bool(spec.statistics)), data is X and k == 2 and not options
    if usual and key in USUAL:
        return deepcopy(USUAL[key])
    settings = dict(tol=10.0, max_iter=40, random_state=0) | options_of(spec) | options
    model = ExchangeableMixture(k, **settings).fit(data)
    if usual:
        USUAL[key] = deepcopy(model)
    return model


def every(specs: list[FamilySpec]) -> Any:
    names = [spec.name + (" with statistics" if spec.statistics else "") for spec in specs]
    return pytest.mark.parametrize("spec", specs, ids=names)


@every(SPECS)
def test_probabilities_add_up_to_one(spec: FamilySpec) -> None:
    model = fitted(spec)._model
    total = logsumexp(model.score(as_observed(STATES, None)), axis=0)
    np.testing.assert_allclose(total, 0.0, atol=1e-9)
    nothing = Observed.from_symbols(np.full((1, N), -1, dtype=np.int8))
    np.testing.assert_allclose(model.score(nothing), 0.0, atol=1e-9)


@every(SPECS)
def test_answers_about_rows_with_holes_are_those_of_enumeration(spec: FamilySpec) -> None:
    model = fitted(spec)._model
    log_p = model.score(as_observed(STATES, None))
    observed = Observed.from_symbols(QUESTIONS)
    scores = model.score(observed)
    for y in range(model.n_classes):
        marginals = model.marginals(observed, y)
        completed, log_prob = model.complete(observed, y)
        drawn = model.draw(observed, y, np.random.default_rng(0))
        for i, question in enumerate(QUESTIONS):
            known = question >= 0
            agree = (STATES[:, known] == question[known]).all(axis=1)
            log_evidence = logsumexp(log_p[agree, y])
            assert scores[i, y] == pytest.approx(log_evidence, abs=1e-9)
            share = np.exp(log_p[agree, y] - log_evidence)
            np.testing.assert_allclose(marginals[i], share @ STATES[agree], atol=1e-9)
            assert (completed[i][known] == question[known]).all()
            assert (drawn[i][known] == question[known]).all()
            assert set(np.unique(drawn[i])) <= {0, 1}
            where = int((completed[i] == STATES).all(axis=1).argmax())
            assert log_prob[i] == pytest.approx(log_p[where, y], abs=1e-9)
            if "exact completion" not in spec.cannot:
                assert log_prob[i] == pytest.approx(log_p[agree, y].max(), abs=1e-9)


@every(SPECS)
def test_draws_follow_the_distribution(spec: FamilySpec) -> None:
    model, n = fitted(spec)._model, 400
    nothing = Observed.from_symbols(np.full((n, N), -1, dtype=np.int8))
    drawn = model.draw(nothing, 0, np.random.default_rng(1))
    expected = n * np.exp(model.score(as_observed(STATES, None))[:, 0])
    seen = np.bincount(drawn @ (1 << np.arange(N)[::-1]), minlength=1 << N)
    order = STATES.astype(int) @ (1 << np.arange(N)[::-1])
    statistic = ((seen[order] - expected) ** 2 / np.maximum(expected, 1e-9)).sum()
    assert statistic < 80  # chi-square with 31 degrees of freedom: P < 1e-5


@every(SPECS)
def test_parts_of_a_model_are_what_they_say(spec: FamilySpec) -> None:
    model = fitted(spec, k=3)._model
    k = model.n_classes
    assert isinstance(model, spec.model)
    assert model.n_variables == N
    assert model.n_parameters > 0
    assert len(model.partitions) == len(model.edges()) == k
    assert model.log_urn_weights().shape == (N, k)
    for partition, blocks, edges in zip(
        model.partitions, model.count_probabilities(), model.edges(), strict=True
    ):
        assert sorted(np.concatenate(partition.blocks).tolist()) == list(range(N))
        if not spec.statistics:
            assert [q.size for q in blocks] == (partition.sizes + 1).tolist()
        for q in blocks:
            assert q.sum() == pytest.approx(1.0, abs=1e-9)
        assert edges.shape[1:] == (2,)


@every(SPECS)
def test_some_classes_and_stacked_classes_score_as_before(spec: FamilySpec) -> None:
    models = [fitted(spec, random_state=seed)._model for seed in (0, 1)]
    rows = as_observed(STATES, None)
    both = spec.model.stack(models)
    scores = np.concatenate([model.score(rows) for model in models], axis=1)
    np.testing.assert_allclose(both.score(rows), scores, rtol=1e-12)
    chosen = np.array([0, 3])
    np.testing.assert_allclose(both.only(chosen).score(rows), scores[:, chosen], rtol=1e-12)


@every(SPECS)
def test_arrays_of_a_file_bring_the_same_model_back(spec: FamilySpec) -> None:
    model = fitted(spec)._model
    assert model_kinds()[model.kind] is spec.model
    arrays = {name: array.copy() for name, array in model.encode().items()}
    again = spec.model.decode(arrays)
    rows = as_observed(STATES, None)
    np.testing.assert_array_equal(again.score(rows), model.score(rows))


@every(SPECS)
@pytest.mark.parametrize("data", [X, HOLED], ids=["complete", "holes"])
def test_a_pass_finds_the_likelihood_and_shares_out_all_weight(spec: FamilySpec, data: Any) -> None:
    mixture = fitted(spec, data)._mixture()
    weights = np.random.default_rng(2).random(len(data)) + 0.5
    examples = merge_equal_rows(as_observed(data, 0.0), weights)[0]
    sums = InMemory(examples).expect(mixture)
    assert isinstance(sums, Sums)
    assert sums.totals.sum() == pytest.approx(weights.sum())
    assert sums.log_likelihood == pytest.approx(mixture.log_likelihood(examples), rel=1e-10)


LEAVES = [spec for spec in SPECS if spec.model.shared_out is not Model.shared_out]


@every(LEAVES)
@pytest.mark.parametrize("data", [X, HOLED], ids=["complete", "holes"])
def test_rows_that_are_shared_out_sum_to_what_a_pass_sums(spec: FamilySpec, data: Any) -> None:
    mixture = fitted(spec, data)._mixture()
    examples = merge_equal_rows(as_observed(data, 0.0), np.ones(len(data)))[0]
    wanted: Any = InMemory(examples).expect(mixture)
    mass = examples.weights[:, None] * np.exp(mixture.log_posterior(examples.observed)[0])
    found: Any = mixture.model.shared_out(examples, mass)
    np.testing.assert_allclose(found.totals, wanted.totals)
    own = {field.name for field in fields(wanted)} - {field.name for field in fields(Sums)}
    assert own
    for name in own:
        assert_alike(getattr(found, name), getattr(wanted, name))


def assert_alike(found: Any, wanted: Any) -> None:
    """Check that sums are the same, part by part."""
    if isinstance(wanted, dict):
        assert found.keys() == wanted.keys()
        for name, each in wanted.items():
            assert_alike(found[name], each)
    elif isinstance(wanted, list):
        for one, other in zip(found, wanted, strict=True):
            assert_alike(one, other)
    elif is_dataclass(wanted):
        for field in {"totals", "histograms"}:
            assert_alike(getattr(found, field), getattr(wanted, field))
    else:
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12)


@every([spec for spec in SPECS if spec.model.alternatives is not Model.alternatives])
def test_the_best_completion_is_an_alternative_whatever_classes_weigh(spec: FamilySpec) -> None:
    whole = [([3, 0, 1, 2, 4], "runs")]
    model = fitted(spec, k=3, **({"blocks": whole} if spec.statistics else {}))._model
    log_p = model.score(as_observed(STATES, None))
    found = model.alternatives(Observed.from_symbols(QUESTIONS), 64)
    assert found is not None
    assert model.alternatives(Observed.from_symbols(QUESTIONS), 2) is None
    for weights in np.random.default_rng(0).dirichlet(np.full(3, 0.3), size=20):
        value = np.exp(log_p) @ weights
        for question, rows in zip(QUESTIONS, found, strict=True):
            known = question >= 0
            agree = (STATES[:, known] == question[known]).all(axis=1)
            assert (rows[:, known] == question[known]).all()
            place = [int((row == STATES).all(axis=1).argmax()) for row in rows]
            assert value[place].max() == pytest.approx(value[agree].max(), rel=1e-9)


@every(BY_EM)
@pytest.mark.parametrize("data", [X, HOLED], ids=["complete", "holes"])
def test_em_never_lowers_what_it_maximises(spec: FamilySpec, data: Any) -> None:
    estimator = ExchangeableMixture(2, **options_of(spec), tol=0.0, max_iter=8, random_state=3)
    examples = merge_equal_rows(as_observed(data, 0.0), np.ones(len(data)))[0]
    problem = problem_of(estimator, spec_of(estimator), N, range(2), labelled=False)
    problem = replace(problem, examples=examples)
    rows = InMemory(examples)
    runs = Runs(spec, problem, rows, rule_of(estimator), "rows", [np.random.default_rng(3)])
    states: list[EMState] = []
    end = runs.run(0, report=states.append)
    last = [state for state in states if state.stage == end.stage]
    for before, after in itertools.pairwise(last):
        if after.mixture is before.mixture:
            continue
        gain = (after.history[-1] - before.history[-1]) * rows.total
        gain += _prior_gain(runs, before, after)
        assert gain >= -2 * ROUNDING * abs(before.history[-1]) * rows.total
    if end.fell:
        assert not end.converged


def _prior_gain(runs: Runs, before: EMState, after: EMState) -> float:
    """Return the gain in the prior's log-density, by a family that has begun as the run has."""
    data = runs.data.for_run(1)
    families = families_of(runs.spec, runs.problem)
    sums: Any = families[-1].start(data, "rows", np.random.default_rng(3))
    if len(families) > 1:
        assert after.before is not None
        sums = data.expect(after.before)
    begin(data, families[-1], sums, before=after.before)
    return families[-1].prior_gain(before.mixture.model, after.mixture.model)


@every(SPECS)
def test_the_number_of_threads_changes_nothing(spec: FamilySpec) -> None:
    answers = [fitted(spec, HOLED, n_jobs=n_jobs).score_samples(X) for n_jobs in (1, 2)]
    np.testing.assert_array_equal(*answers)


@every(SPECS)
def test_mixtures_average_join_save_and_answer(spec: FamilySpec, tmp_path: Path) -> None:
    average = fitted(spec, n_init=2, combine="average", init="random")
    assert np.exp(average.score_samples(STATES)).sum() == pytest.approx(1.0)
    exchangeable.save(average, tmp_path / "model.exch")
    again = exchangeable.load(tmp_path / "model.exch")
    np.testing.assert_array_equal(again.score_samples(STATES), average.score_samples(STATES))
    assert again.get_params()["family"] == spec.name
    other = fitted(REGISTRY["blocks"])
    joined = Mixture.join([average._mixture(), other._mixture()], np.array([0.25, 0.75]))
    total = logsumexp(joined.log_posterior(as_observed(STATES, None))[1])
    assert total == pytest.approx(0.0, abs=1e-9)
    assert isinstance(joined.model, JoinedModel)
    assert average.conditional([1, 2], {0: 1}).sum() == pytest.approx(1.0)
    assert (average.information_gain({0: 1}, target=2) >= 0).all()
    assert average.sample(3, {0: 1}, random_state=0)[0][:, 0].tolist() == [1, 1, 1]
    filled = ExchangeableImputer(fitted(spec, HOLED)).fit(HOLED).transform(HOLED)
    assert not np.isnan(filled).any()


@every(WITH_CLASSES)
@pytest.mark.parametrize("data", [X, HOLED], ids=["complete", "holes"])
def test_classes_are_fitted_and_told_apart(spec: FamilySpec, data: Any) -> None:
    options = options_of(spec) | few_components(spec) | {"max_iter": 3}
    model = ExchangeableClassifier(**options).fit(data, KIND)
    joint = model.predict_joint_log_proba(STATES)
    np.testing.assert_allclose(logsumexp(joint), 0.0, atol=1e-9)
    np.testing.assert_allclose(model.predict_proba(STATES).sum(axis=1), 1.0)
    if spec is not COINS:  # which has one chance for all variables
        assert model.score(X, KIND) > 0.75
    some = np.where(np.arange(len(X)) % 3 == 0, -1, KIND)
    half = ExchangeableClassifier(**options, semi_supervised=True)
    if "semi_supervised" in spec.cannot:
        with pytest.raises(ValueError, match="semi_supervised"):
            half.fit(data, some)
    else:
        assert np.isfinite(half.fit(data, some).predict_proba(data)).all()


@every(SPECS)
def test_what_a_family_cannot_do_is_refused_with_the_reason(spec: FamilySpec) -> None:
    for ability, reason in spec.cannot.items():
        with pytest.raises(ValueError, match="does not go with family"):
            spec.check(ability, "what is asked")
        assert len(reason) > 10
    chunks = [X[:50], X[50:]]
    if "chunks" in spec.cannot:
        with pytest.raises(ValueError, match=r"chunks or on a cluster does not go with family"):
            fitted(spec, chunks)
    else:
        in_memory, in_chunks = fitted(spec), fitted(spec, chunks)
        np.testing.assert_allclose(
            in_chunks.score_samples(X), in_memory.score_samples(X), rtol=1e-9
        )
    classifier = ExchangeableClassifier(**options_of(spec))
    can_add = not {"partial_fit", "classes"} & spec.cannot.keys()
    assert hasattr(classifier, "partial_fit") == can_add
    warm = ExchangeableMixture(2, **options_of(spec), warm_start=True, max_iter=2, tol=10.0)
    if "warm_start" in spec.cannot:
        with pytest.raises(ValueError, match="warm_start=True does not go with family"):
            warm.fit(X)
    else:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="EM did|training did")
            assert warm.fit(X).fit(X).n_iter_ >= 1
    if "pooling" in spec.cannot:
        with pytest.raises(ValueError, match=r"pooling=1\.0 does not go with family"):
            fitted(spec, pooling=1.0)
    if "checkpoint" in spec.cannot:
        with pytest.raises(ValueError, match="checkpoint does not go with family"):
            fitted(spec, checkpoint="runs.checkpoint")
    if spec.shrinkage is None:
        with pytest.raises(ValueError, match=r"shrinkage=1\.0 is about the edges of trees"):
            fitted(spec, blocks=Blocks(shrinkage=1.0))
    if spec.needs_smoothing:
        with pytest.raises(ValueError, match="alpha must be > 0"):
            fitted(spec, alpha=0.0)
    if spec.most_variables is not None:
        wide = np.zeros((20, spec.most_variables + 1), dtype=np.uint8)
        with pytest.raises(ValueError, match=f"the limit is {spec.most_variables:,}"):
            fitted(spec, wide)
    for method in {"evidence", "welch", "independent", "full"} - set(spec.blocks):
        with pytest.raises(ValueError, match=f"blocks='{method}' does not go with family"):
            fitted(spec, blocks=method)


@every([spec for spec in SPECS if "checkpoint" not in spec.cannot])
def test_a_checkpoint_goes_on_where_it_was(
    spec: FamilySpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings: dict[str, Any] = dict(tol=0.0, random_state=0, n_init=2, n_jobs=1, max_iter=3)
    path, written = tmp_path / "runs.checkpoint", list[bytes]()

    def save_and_copy(path: Path, states: Any, purpose: Any) -> None:
        save_states(path, states, purpose)
        written.append(path.read_bytes())

    monkeypatch.setattr("exchangeable.fitting.checkpoint.save_states", save_and_copy)
    monkeypatch.setattr("exchangeable.fitting.checkpoint.SECONDS_APART", 0.0)
    whole = _quietly(spec, checkpoint=path, **settings)
    copies = list(written)
    for number in {0, 2, len(copies) // 2, len(copies) - 1}:
        path.write_bytes(copies[number])
        resumed = _quietly(spec, checkpoint=path, **settings)
        np.testing.assert_allclose(resumed.score_samples(X), whole.score_samples(X), rtol=1e-10)
        assert resumed.n_iter_ == whole.n_iter_


def _quietly(spec: FamilySpec, **options: Any) -> ExchangeableMixture:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fitted(spec, **options)


@every([spec for spec in SPECS if spec.search is not None])
def test_the_search_takes_it_and_its_settings_can_be_passed_back(spec: FamilySpec) -> None:
    density = ExchangeableDensity(
        [spec.name], n_init=1, max_components=2, max_iter=2, time_budget=0.5, random_state=0
    ).fit(X)
    found = density.best_params_["family"]
    assert getattr(found, "family", found) == spec.name
    assert np.exp(density.score_samples(STATES)).sum() == pytest.approx(1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        again = ExchangeableMixture(**density.best_params_, max_iter=2, random_state=0).fit(X)
    assert np.isfinite(again.score(X))
