"""Passes on a device sum what the compiled ones do, here on JAX's backend for the processor."""

from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from exchangeable import ExchangeableMixture
from exchangeable.data.examples import merge_equal_rows
from exchangeable.data.observed import as_observed
from exchangeable.families import REGISTRY, WITH_STATISTICS
from exchangeable.families.common.em_data import InMemory
from exchangeable.families.contract import Family, FamilySpec

jax = pytest.importorskip("jax")
from exchangeable.devices import choice  # noqa: E402
from exchangeable.devices.networks import engine  # noqa: E402
from exchangeable.devices.passes import chunks, hidden, linear  # noqa: E402

N = 12
rng = np.random.default_rng(0)
KIND = rng.integers(0, 3, size=(300, 1))
X = (rng.random((300, N)) < np.where(np.arange(N) % 3 == KIND, 0.8, 0.2)).astype(float)
BY_EM = [spec for spec in REGISTRY.values() if issubclass(spec.family, Family)]
BLOCKS = [[0, 3, 6], [1, 4, 7, 10], [2], [5, 8, 9, 11]]
STATISTICS: list[Any] = [([5, 3, 1, 0], "runs"), ([2, 4, 6], "first and last")]
WHOLE = [*STATISTICS, (range(7, 12), "transitions")]
CASES = [(spec, "auto") for spec in BY_EM]
CASES += [(spec, BLOCKS) for spec in BY_EM if "given" in spec.blocks]
CASES += [(REGISTRY[name], each) for name in WITH_STATISTICS for each in (STATISTICS, WHOLE)]
ON_DEVICE = {"blocks", "urns", "tree", "weighted tree", "hidden tree", "mixed tree"}
"""Families whose passes are written for devices; those of others stay on the processor."""


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Let the processor stand for the GPU that a test machine lacks."""
    cpu = jax.devices("cpu")[0]
    monkeypatch.setattr("exchangeable.fitting.tasks.find_device", lambda *_: cpu)
    return cpu


def compare(found: Any, expected: Any) -> None:
    """Compare sums of any kind, field by field."""
    for field in fields(expected):
        one, other = getattr(found, field.name), getattr(expected, field.name)
        if field.name in ("moments", "recipe", "log_likelihood"):
            continue
        _compare(one, other)


def _compare(one: Any, other: Any) -> None:
    if isinstance(other, list):
        for a, b in zip(one, other, strict=True):
            _compare(a, b)
    elif isinstance(other, dict):
        _compare([one[name] for name in other], list(other.values()))
    elif hasattr(other, "__dataclass_fields__"):
        compare(one, other)
    elif other is None:
        assert one is None
    else:
        np.testing.assert_allclose(one, other, rtol=2e-4, atol=2e-3)


@pytest.mark.parametrize(("spec", "blocks"), CASES, ids=[f"{s.name}, {b}" for s, b in CASES])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_pass_on_a_device_sums_what_the_compiled_one_does(
    spec: FamilySpec, blocks: Any, device: Any
) -> None:
    model = ExchangeableMixture(3, family=spec.name, blocks=blocks, max_iter=3, random_state=0)
    mixture = model.fit(X)._mixture()
    weights = np.random.default_rng(1).random(len(X)) + 0.5
    examples = merge_equal_rows(as_observed(X, None), weights)[0]
    found = mixture.model.expect_on(device, InMemory(examples), mixture.log_prior)
    if spec.name not in ON_DEVICE:
        assert found is None
        return
    expected = InMemory(examples).expect(mixture)
    total = weights.sum()
    assert found.log_likelihood / total == pytest.approx(expected.log_likelihood / total, abs=1e-4)
    compare(found, expected)


FITS = [("blocks", "independent"), ("urns", "auto"), ("tree", "auto"), ("hidden tree", "auto")]
FITS += [("blocks", WHOLE), ("hidden tree", STATISTICS), ("mixed tree", "auto")]


@pytest.mark.parametrize(("family", "blocks"), FITS, ids=str)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_fit_on_a_device_is_that_of_the_processor(family: str, blocks: Any, device: Any) -> None:
    options: dict[str, Any] = dict(family=family, blocks=blocks, random_state=0)
    options |= dict(max_iter=6, tol=0.0)
    here = ExchangeableMixture(3, **options).fit(X)
    there = ExchangeableMixture(3, device="gpu", **options).fit(X)
    assert there.score(X) == pytest.approx(here.score(X), abs=1e-4)


def test_rows_with_holes_are_summed_by_the_processor(device: Any) -> None:
    holed = np.where(np.random.default_rng(2).random(X.shape) < 0.1, np.nan, X)
    options: dict[str, Any] = dict(family="tree", random_state=0, tol=0.1)
    here = ExchangeableMixture(3, **options).fit(holed)
    there = ExchangeableMixture(3, device="gpu", **options).fit(holed)
    np.testing.assert_array_equal(there.score_samples(X), here.score_samples(X))


def test_products_in_parts_keep_single_precision() -> None:
    values = np.random.default_rng(3).normal(size=(40, 5)).astype(np.float32) * 10
    rows = np.random.default_rng(4).integers(0, 2, size=(30, 40)).astype(np.float32)
    found = linear.product(jax.numpy.asarray(rows, dtype=jax.numpy.bfloat16), values)
    expected = rows.astype(np.float64) @ values.astype(np.float64)
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-5, atol=1e-4)


def test_several_tiles_make_the_same_sums() -> None:
    bits = np.packbits(X.astype(np.uint8), axis=1, bitorder="little")
    weights = np.random.default_rng(5).random(len(X))
    slope = np.random.default_rng(6).normal(size=(N, 4))
    parameters = linear.single(-np.logaddexp(0, slope).sum(axis=0) - np.log(4), slope)
    cpu = jax.devices("cpu")[0]
    for halved in (False, True):
        whole, *others = (
            chunks.expect_chunks(
                chunks.put_rows(bits, weights, tile, tiles, cpu), [parameters], 300, halved, cpu
            )[0]
            for tile, tiles in ((512, 1), (32, 10), (32, 2), (64, 1))
        )
        for parts in others:  # many tiles at once, and in chunks
            for one, other in zip(whole, parts, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_a_tree_of_hidden_states_is_summed_in_tiles() -> None:
    codes = np.stack([X[:, v].astype(np.int32) + 2 * v for v in range(4)], axis=1)
    shape = hidden.Shape((0, 1, 2, 3), (4, 0, 0, 1), (0, 2, 4, 6, 8))
    source = np.random.default_rng(7)
    evidence, edges = source.random((8, 3)), source.dirichlet(np.ones(3), size=(4, 3))
    given, weights = (
        hidden.single(evidence, edges, np.log([0.5, 0.3, 0.2])),
        source.random(len(X)),
    )
    cpu = jax.devices("cpu")[0]
    whole, *others = (
        hidden.expect_hidden(shape, hidden.put_rows(codes, weights, *how), [given], cpu)[0]
        for how in ((300, cpu), (64, cpu), (64, cpu, False))
    )
    for parts in others:
        for one, other in zip(whole, parts, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("family", sorted(ON_DEVICE))
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_rows_for_which_a_device_has_no_room_are_sent_in_chunks(
    family: str, device: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    mixture = ExchangeableMixture(3, family=family, max_iter=3, random_state=0).fit(X)._mixture()
    examples = merge_equal_rows(as_observed(X, None), np.arange(1.0, len(X) + 1))[0]
    data, chunked = InMemory(examples), InMemory(examples)
    room = 72_000.0 if family in ("hidden tree", "mixed tree") else 8_000.0
    whole = mixture.model.expect_on(device, data, mixture.log_prior)
    monkeypatch.setattr("exchangeable.devices.choice.room_on", lambda device: room)
    parts = mixture.model.expect_on(device, chunked, mixture.log_prior)
    compare(parts, whole)
    assert parts.log_likelihood == pytest.approx(whole.log_likelihood, rel=1e-6)
    (kept,), (sent,) = data.memo.values(), chunked.memo.values()
    if family == "hidden tree":
        kept, sent = kept[1].codes, sent[1].codes
    elif family == "mixed tree":
        kept, sent = kept.codes, sent.codes
    assert len(sent) > len(kept) == 1
    assert all(isinstance(part, jax.Array) for part in jax.tree.leaves(kept))
    assert all(isinstance(part, np.ndarray) for part in jax.tree.leaves(sent))
    monkeypatch.setattr("exchangeable.devices.choice.room_on", lambda device: 500.0)
    with pytest.raises(MemoryError, match="on the device"):
        mixture.model.expect_on(device, InMemory(examples), mixture.log_prior)


def test_a_device_that_is_not_there_is_named() -> None:
    with pytest.raises(ValueError, match="device='tpu' is unknown; expected one of auto, cpu, gpu"):
        ExchangeableMixture(2, device="tpu").fit(X)
    if any(each.platform != "cpu" for each in jax.devices()):
        pytest.skip("this machine has an accelerator")
    with pytest.raises(RuntimeError, match=r"device='gpu': JAX finds none on this machine"):
        ExchangeableMixture(2, device="gpu").fit(X)
    assert choice.find_device("auto", "a test").platform == "cpu"
    assert choice.room_on(jax.devices()[0]) > 0


@pytest.mark.parametrize("family", ["urns", "hidden tree", "neural independent"])
def test_a_device_that_runs_out_of_memory_is_told(
    family: str, device: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def exhausted(*arguments: Any, **options: Any) -> Any:
        raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 9 bytes.")

    monkeypatch.setattr(chunks, "expect_linear", exhausted)
    monkeypatch.setattr(hidden, "expect_tile", exhausted)
    monkeypatch.setattr(engine, "train_steps", exhausted)
    where = "auto" if family.startswith("neural") else "gpu"
    with pytest.raises(MemoryError, match=r"run out of the device's memory.*give device='cpu'"):
        ExchangeableMixture(3, family=family, random_state=0, device=where).fit(X)


def test_what_does_not_fit_on_a_device_is_refused() -> None:
    class Small:
        def memory_stats(self) -> dict[str, int]:
            return {"bytes_limit": 3_000_000_000, "bytes_in_use": 1_000_000_000}

    choice.check_room(Small(), 1e9, "a fit")
    with pytest.raises(MemoryError, match=r"a fit needs about 4\.0 GB on the device, .* 2\.0 GB"):
        choice.check_room(Small(), 4e9, "a fit")
