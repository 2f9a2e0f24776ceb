"""The table of abilities: every cell is tried, so that the page in the docs cannot lie."""

import importlib.util
import re
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
from click.testing import CliRunner
from scipy.special import logsumexp

import exchangeable
from enumeration import all_states
from exchangeable import Blocks, ExchangeableClassifier, ExchangeableMixture
from exchangeable.cli import main
from exchangeable.data.examples import merge_equal_rows
from exchangeable.data.observed import Observed, as_observed
from exchangeable.families import REGISTRY, WITH_STATISTICS
from exchangeable.families.abilities import ABILITIES
from exchangeable.families.common.em_data import InMemory
from exchangeable.families.contract import Family, FamilySpec, Model
from exchangeable.families.mixture import Mixture
from exchangeable.plotting import BlockMapDisplay, CountDistributionDisplay, EMHistoryDisplay
from exchangeable.report import report_html
from exchangeable.report.live import live_panel
from few_components import few_components

N = 5
STATES = all_states(N)
rng = np.random.default_rng(8)
KIND = rng.integers(0, 2, size=60)
X = (rng.random((60, N)) < np.where(KIND[:, None] == np.arange(N) % 2, 0.8, 0.3)).astype(float)
HOLED = np.where(rng.random(X.shape) < 0.15, np.nan, X)
WEIGHT = rng.integers(0, 3, size=60)
SPECS = [*REGISTRY.values(), *WITH_STATISTICS.values()]
CUTS = (25, 26)
"""Chunks of 25 rows, of one, and of the rest."""
DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Fits end after two iterations, which they say."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="EM |training ")
        yield


def options_of(spec: FamilySpec) -> dict[str, Any]:
    """Return how users ask for a family."""
    return {"family": spec.name, **({"blocks": [([3, 0, 1], "runs")]} if spec.statistics else {})}


def mixture(spec: FamilySpec, **options: Any) -> ExchangeableMixture:
    if not issubclass(spec.family, Family):
        pytest.importorskip("jax", reason="the family is trained with JAX")
    settings: dict[str, Any] = dict(n_components=2, tol=0.0, max_iter=2, random_state=0, n_jobs=1)
    return ExchangeableMixture(**settings | options_of(spec) | options)


def classifier(spec: FamilySpec, **options: Any) -> ExchangeableClassifier:
    settings = options_of(spec) | few_components(spec) | {"max_iter": 3, "n_jobs": 1}
    return ExchangeableClassifier(**settings | options)


def cut(rows: Any) -> list[Any]:
    return np.split(rows, CUTS)


def same(one: Any, other: Any, rtol: float = 1e-9) -> None:
    """Check that two models say the same of every row."""
    np.testing.assert_allclose(
        one._mixture().joint(as_observed(STATES, None)),
        other._mixture().joint(as_observed(STATES, None)),
        rtol=rtol,
        atol=1e-12,
    )


def adds_up(model: Any) -> None:
    """Check that a model is a distribution over all rows."""
    total = logsumexp(model._mixture().joint(as_observed(STATES, None)))
    assert total == pytest.approx(0.0, abs=1e-9)


def weights(spec: FamilySpec, folder: Path) -> None:
    if not issubclass(spec.family, Family):
        adds_up(mixture(spec).fit(X, sample_weight=WEIGHT + 1))  # batches are dealt from rows
        return
    options = {"init": "rows"} if spec.pooling is not None else {"n_components": 1}
    weighted = mixture(spec, **options).fit(X, sample_weight=WEIGHT)
    same(weighted, mixture(spec, **options).fit(np.repeat(X, WEIGHT, axis=0)))


def holes(spec: FamilySpec, folder: Path) -> None:
    adds_up(mixture(spec).fit(HOLED))


def classes(spec: FamilySpec, folder: Path) -> None:
    model = classifier(spec).fit(X, KIND)
    adds_up(model)
    assert model.score(X, KIND) > 0.75


def semi_supervised(spec: FamilySpec, folder: Path) -> None:
    some = np.where(np.arange(60) % 3 == 0, -1, KIND)
    model = classifier(spec, semi_supervised=True).fit(HOLED, some)
    adds_up(model)
    assert model.classes_.tolist() == [0, 1]


def in_batches(model: Any, rows: Any) -> Any:
    """Return a model after three batches; scikit-learn says in the cause why there is none."""
    try:
        add = model.partial_fit
    except AttributeError as error:
        raise ValueError(str(error.__cause__)) from error
    labelled = isinstance(model, ExchangeableClassifier)
    for part, kind in zip(cut(rows), cut(KIND), strict=True):
        add(part, kind, **({"classes": [0, 1]} if labelled else {}))
    return model


def partial_fit(spec: FamilySpec, folder: Path) -> None:
    batches = in_batches(mixture(spec), X)
    adds_up(batches)
    assert batches.n_samples_weight_ == 60
    assert batches.score(X) > mixture(spec).fit(X[:25]).score(X)
    if spec.class_components is not None:  # classes are mixtures, which steps come near to
        batches, first = in_batches(classifier(spec), X), classifier(spec).fit(X[:25], KIND[:25])
        adds_up(batches)
        np.testing.assert_array_equal(batches.class_count_, np.bincount(KIND))
        of_labels = [model.predict_joint_log_proba(X) for model in (batches, first)]
        told = [joint[np.arange(60), KIND].mean() for joint in of_labels]
        assert told[0] > told[1]
    elif spec.why_not("classes") is None:
        options = {"blocks": "full"} if "full" in spec.blocks and not spec.statistics else {}
        options |= {"max_iter": 500, "tol": 1e-12}
        batches = in_batches(classifier(spec, **options), X)
        remembers = {"rtol": 0.05} if spec.before is not None else {}  # the fit it started from
        same(batches, classifier(spec, **options).fit(X, KIND), **{"rtol": 1e-6} | remembers)


def holes_in_batches(spec: FamilySpec, folder: Path) -> None:
    batches = in_batches(mixture(spec), HOLED)
    adds_up(batches)
    assert batches.score(HOLED) > mixture(spec).fit(HOLED[:25]).score(HOLED)
    if spec.why_not("classes") is None:
        batches = in_batches(classifier(spec), HOLED)
        adds_up(batches)
        assert batches.score(X, KIND) > (0.75 if spec.class_components is None else 0.7)


def warm_start(spec: FamilySpec, folder: Path) -> None:
    model = mixture(spec, warm_start=True).fit(X)
    before = model.log_likelihood_
    rel = 1e-9 if issubclass(spec.family, Family) else 1e-5  # training scores in single precision
    assert model.set_params(max_iter=3).fit(X).history_[0][0] == pytest.approx(before, rel=rel)
    adds_up(model.fit(X[:40]))
    with pytest.raises(ValueError, match=r"fit to 5 columns, but X has 4|with other statistics"):
        model.fit(X[:, :4])


def test_other_statistics_are_no_start() -> None:
    model = ExchangeableMixture(2, blocks=[([0, 1, 2], "runs")], max_iter=2, warm_start=True)
    model.set_params(random_state=0, n_jobs=1).fit(X)
    with pytest.raises(ValueError, match="with other statistics than those now asked for"):
        model.set_params(blocks=[([0, 1, 2], "transitions")]).fit(X)
    with pytest.raises(ValueError, match="with other statistics"):
        model.set_params(blocks=[([1, 0, 2], "runs")]).fit(X)


def checkpoint(spec: FamilySpec, folder: Path) -> None:
    path = folder / "state"
    mixture(spec, checkpoint=path, max_iter=1).fit(X)
    assert path.exists()
    same(mixture(spec, checkpoint=path, max_iter=1).fit(X), mixture(spec, max_iter=1).fit(X))


def accept(spec: FamilySpec, folder: Path) -> None:
    method = "welch" if "welch" in spec.blocks else spec.blocks[0]
    blocks = options_of(spec).get("blocks", method)
    adds_up(mixture(spec, blocks=Blocks(blocks, accept="component")).fit(X))


def relearn(spec: FamilySpec, folder: Path) -> None:
    method = "welch" if "welch" in spec.blocks else spec.blocks[0]
    blocks = options_of(spec).get("blocks", method)
    for choice in (True, False):
        adds_up(mixture(spec, blocks=Blocks(blocks, relearn=choice)).fit(X))


def held_out_rows(spec: FamilySpec, folder: Path) -> None:
    model = mixture(spec).fit(X, X_valid=X[40:])
    assert len(model.valid_history_[0]) == len(model.history_[0])
    adds_up(model)


def chunks(spec: FamilySpec, folder: Path) -> None:
    for init in ("rows", "random"):
        in_chunks = mixture(spec, init=init).fit(cut(X), sample_weight=WEIGHT)
        same(in_chunks, mixture(spec, init=init).fit(X, sample_weight=WEIGHT))


def classes_in_chunks(spec: FamilySpec, folder: Path) -> None:
    same(classifier(spec).fit(cut(X), KIND), classifier(spec).fit(X, KIND))


def pooling_in_chunks(spec: FamilySpec, folder: Path) -> None:
    same(mixture(spec, pooling=3.0).fit(cut(X)), mixture(spec, pooling=3.0).fit(X))


def cluster(spec: FamilySpec, folder: Path) -> None:
    arrays = pytest.importorskip("dask.array")
    dask = pytest.importorskip("dask")
    with dask.config.set(scheduler="synchronous"):
        there = mixture(spec).fit(arrays.from_array(X, chunks=(25, -1)))
    same(there, mixture(spec).fit(X))


def holes_in_chunks(spec: FamilySpec, folder: Path) -> None:
    for init in ("rows", "random"):
        in_chunks = mixture(spec, init=init).fit(cut(HOLED), sample_weight=WEIGHT)
        same(in_chunks, mixture(spec, init=init).fit(HOLED, sample_weight=WEIGHT))
    if spec.why_not("classes in chunks") is None:
        same(classifier(spec).fit(cut(HOLED), KIND), classifier(spec).fit(HOLED, KIND))


def labels_in_chunks(spec: FamilySpec, folder: Path) -> None:
    some = np.where(np.arange(60) % 3 == 0, -1, KIND)
    in_chunks = classifier(spec, semi_supervised=True).fit(cut(HOLED), some)
    same(in_chunks, classifier(spec, semi_supervised=True).fit(HOLED, some))


def held_out_rows_in_chunks(spec: FamilySpec, folder: Path) -> None:
    for valid in (X[40:], [HOLED[:7], HOLED[7:20]]):
        in_chunks = mixture(spec).fit(cut(X), X_valid=valid)
        one = valid if isinstance(valid, np.ndarray) else np.concatenate(valid)
        same(in_chunks, mixture(spec).fit(X, X_valid=one))
    in_chunks = mixture(spec, validation_fraction=0.3).fit(cut(X), sample_weight=WEIGHT)
    same(in_chunks, mixture(spec, validation_fraction=0.3).fit(X, sample_weight=WEIGHT))


def on_a_device(spec: FamilySpec, folder: Path) -> None:
    jax = pytest.importorskip("jax")
    if not issubclass(spec.family, Family):
        adds_up(mixture(spec, device="cpu").fit(X))
        return
    full = "full" in spec.blocks and not spec.statistics
    found = mixture(spec, **({"blocks": "full"} if full else {})).fit(X)
    rows = InMemory(merge_equal_rows(as_observed(X, 0.0), np.ones(60))[0], n_jobs=1)
    there = found._model.expect_on(jax.devices("cpu")[0], rows, found._log_prior)
    assert there is not None
    here = found._model.expect(rows, found._log_prior)
    assert there.log_likelihood == pytest.approx(here.log_likelihood, rel=1e-5)
    np.testing.assert_allclose(there.totals, here.totals, rtol=1e-4)


def averaging(spec: FamilySpec, folder: Path) -> None:
    model = mixture(spec, n_init=2, combine="average").fit(X)
    adds_up(model)
    assert model.weights_.size == 4


def joining(spec: FamilySpec, folder: Path) -> None:
    parts = [mixture(spec).fit(X)._mixture(), mixture(REGISTRY["blocks"]).fit(X)._mixture()]
    joined = Mixture.join(parts, np.array([0.25, 0.75]))
    assert logsumexp(joined.joint(as_observed(STATES, None))) == pytest.approx(0.0, abs=1e-9)


def pooling(spec: FamilySpec, folder: Path) -> None:
    weak, strong = (mixture(spec, pooling=p).fit(X) for p in (0.1, 1e6))
    rows = as_observed(STATES, None)
    apart = [np.ptp(model._model.score(rows), axis=1).max() for model in (weak, strong)]
    assert apart[0] > apart[1]


def hybrid(spec: FamilySpec, folder: Path) -> None:
    model = classifier(spec, training="hybrid").fit(X, KIND)
    adds_up(model)
    assert model.score(X, KIND) > 0.75


def exact_completion(spec: FamilySpec, folder: Path) -> None:
    model = mixture(spec).fit(X)._model
    found = model.complete(Observed.from_symbols(np.full((1, N), -1, dtype=np.int8)), 0)[1][0]
    assert found == pytest.approx(model.score(as_observed(STATES, None))[:, 0].max(), abs=1e-9)


def saving(spec: FamilySpec, folder: Path) -> None:
    model = mixture(spec).fit(X)
    exchangeable.save(model, folder / "model.exch")
    same(exchangeable.load(folder / "model.exch"), model)


def page(spec: FamilySpec, folder: Path) -> None:
    model = mixture(spec).fit(X)
    assert report_html(model).startswith("<!doctype html>")
    assert live_panel(model).scripts, live_panel(model).data["leftOut"]


def plots(spec: FamilySpec, folder: Path) -> None:
    model = mixture(spec).fit(X)
    for display in (BlockMapDisplay, CountDistributionDisplay, EMHistoryDisplay):
        figure = display.from_estimator(model).figure_
        assert figure.axes
        plt.close(figure)


def command_line(spec: FamilySpec, folder: Path) -> None:
    lines = [",".join("abcde"), *(",".join(str(int(x)) for x in row) for row in X)]
    (folder / "rows.csv").write_text("\n".join(lines))
    arguments = ["--family", spec.name, "--components", "2", "--seed", "0"]
    arguments += ["--block", "d,a,b=runs"] if spec.statistics else []
    files = [str(folder / "rows.csv"), "--output", str(folder / "model.exch")]
    result = CliRunner().invoke(main, ["fit", *files, *arguments])
    assert result.exit_code == 0, result.output
    model = exchangeable.load(folder / "model.exch")
    adds_up(model)
    assert isinstance(model._fitted(), spec.model)


TRIES: dict[str, Callable[[FamilySpec, Path], None]] = {
    "weights": weights,
    "holes": holes,
    "classes": classes,
    "semi_supervised": semi_supervised,
    "partial_fit": partial_fit,
    "holes in batches": holes_in_batches,
    "warm_start": warm_start,
    "checkpoint": checkpoint,
    "accept": accept,
    "relearn": relearn,
    "held-out rows": held_out_rows,
    "chunks": chunks,
    "classes in chunks": classes_in_chunks,
    "pooling in chunks": pooling_in_chunks,
    "cluster": cluster,
    "holes in chunks": holes_in_chunks,
    "labels in chunks": labels_in_chunks,
    "held-out rows in chunks": held_out_rows_in_chunks,
    "device": on_a_device,
    "averaging": averaging,
    "joining": joining,
    "pooling": pooling,
    "hybrid": hybrid,
    "exact completion": exact_completion,
    "saving": saving,
    "page": page,
    "plots": plots,
    "command line": command_line,
}
NAMES = [spec.name + (" with statistics" if spec.statistics else "") for spec in SPECS]


def test_every_ability_is_tried() -> None:
    assert list(TRIES) == list(ABILITIES)


@pytest.mark.parametrize("ability", TRIES)
@pytest.mark.parametrize("spec", SPECS, ids=NAMES)
def test_a_cell_of_the_table_is_true(spec: FamilySpec, ability: str, tmp_path: Path) -> None:
    reason = spec.why_not(ability)
    if reason is None:
        TRIES[ability](spec, tmp_path)
    elif ABILITIES[ability].refused:
        with pytest.raises(ValueError, match=re.escape(reason)):
            TRIES[ability](spec, tmp_path)


def test_families_without_passes_on_a_device_say_so() -> None:
    for spec in SPECS:
        own = spec.model.expect_on is not Model.expect_on or not issubclass(spec.family, Family)
        assert own == (spec.why_not("device") is None), spec.name


def test_a_family_cannot_lack_what_nobody_asks_for() -> None:
    with pytest.raises(ValueError, match="cannot 'fly', which is not an ability"):
        FamilySpec("birds", "", Any, Any, (), cannot={"fly": "no wings"})  # type: ignore[arg-type]


def test_the_page_in_the_docs_is_what_the_registry_says() -> None:
    found = importlib.util.spec_from_file_location("abilities_page", DOCS / "abilities.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    written = (DOCS / "abilities.md").read_text(encoding="utf-8")
    assert written == module.page(), "run python docs/abilities.py"
