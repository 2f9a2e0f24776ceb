"""Searches that go on: from a file, or from the fit before."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import exchangeable
from exchangeable import ExchangeableDensity
from exchangeable.fitting.search.trials import Fitter
from exchangeable.storage import archive
from made_rows import clusters

X = clusters(n_rows=300, n_variables=6, seed=1)
OPTIONS: dict[str, Any] = dict(
    families=["urns", "tree"], n_init=2, max_components=3, max_iter=4, random_state=0, n_jobs=1
)
pytestmark = pytest.mark.filterwarnings("ignore:EM ")


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return the settings and seeds that are fitted, as they are."""
    calls: list[Any] = []
    run = Fitter.run

    def watched(self: Fitter, settings: Any, seed: int, *args: Any, **options: Any) -> Any:
        calls.append((settings, seed))
        return run(self, settings, seed, *args, **options)

    monkeypatch.setattr(Fitter, "run", watched)
    return calls


def test_a_search_goes_on_from_its_file(tmp_path: Path, made: list[Any]) -> None:
    path = tmp_path / "search"
    whole = ExchangeableDensity(**OPTIONS).fit(X)
    n_fits = len(made)
    first = ExchangeableDensity(**OPTIONS, checkpoint=path).fit(X)
    assert len(made) == 2 * n_fits
    again = ExchangeableDensity(**OPTIONS, checkpoint=path).fit(X)
    assert len(made) == 2 * n_fits  # everything was in the file
    for model in (first, again):
        np.testing.assert_array_equal(model.score_samples(X), whole.score_samples(X))
        assert [row["valid"] for row in model.table_] == [row["valid"] for row in whole.table_]


def test_a_file_of_another_search_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "search"
    ExchangeableDensity(**OPTIONS, checkpoint=path).fit(X)
    with pytest.raises(ValueError, match=r"belongs to another search: alpha was 0.1, is 0.2"):
        ExchangeableDensity(**OPTIONS, alpha=0.2, checkpoint=path).fit(X)
    with pytest.raises(ValueError, match="checkpoint needs a whole number as random_state"):
        ExchangeableDensity(**OPTIONS | {"random_state": None}, checkpoint=path).fit(X)
    path.write_bytes(b"nothing")
    with pytest.raises(ValueError, match="is not a checkpoint of this library"):
        ExchangeableDensity(**OPTIONS, checkpoint=path).fit(X)


def test_a_file_that_lies_about_its_rows_is_refused(tmp_path: Path) -> None:
    for name, rows in (("one", X), ("other", X[:, 1:])):
        ExchangeableDensity(**OPTIONS, checkpoint=tmp_path / name).fit(rows)
    purpose = archive.read(tmp_path / "one")[0]["purpose"]
    header, arrays = archive.read(tmp_path / "other")
    archive.write(tmp_path / "one", {**header, "purpose": purpose}, arrays)
    with pytest.raises(ValueError, match="rows of another shape"):
        ExchangeableDensity(**OPTIONS, checkpoint=tmp_path / "one").fit(X)


def test_a_warm_start_makes_no_fit_twice(tmp_path: Path, made: list[Any]) -> None:
    model = ExchangeableDensity(**OPTIONS | {"n_init": 1}, warm_start=True).fit(X)
    before = len(made)
    model.set_params(n_init=2).fit(X)
    assert not set(made[:before]) & set(made[before:])
    alone = ExchangeableDensity(**OPTIONS).fit(X)
    np.testing.assert_array_equal(model.score_samples(X), alone.score_samples(X))
    exchangeable.save(model, tmp_path / "model")
    assert not hasattr(exchangeable.load(tmp_path / "model"), "_fits")


def test_a_warm_start_on_other_rows_begins_with_what_was_best(made: list[Any]) -> None:
    model = ExchangeableDensity(**OPTIONS, warm_start=True).fit(X)
    best = model._fits.best_settings()
    made.clear()
    model.fit(X[:200])
    assert made[0][0] in best.values()
    assert np.isfinite(model.score(X))
