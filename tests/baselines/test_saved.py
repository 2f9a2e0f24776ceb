"""Trees of the baselines in files: they come back bit for bit, and damaged ones are refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import exchangeable
from exchangeable.baselines import ChowLiuTree, LatentTree, saved
from exchangeable.baselines.base import TreeEstimator
from exchangeable.storage.archive import ModelFileError

rng = np.random.default_rng(0)
CAUSE = rng.integers(0, 2, size=(300, 1))
X = CAUSE ^ (rng.random((300, 6)) < 0.2)
MODELS = {"chow-liu": ChowLiuTree(), "latent": LatentTree("clrg", max_iter=5)}


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_a_tree_comes_back_bit_for_bit(model: TreeEstimator, tmp_path: Path) -> None:
    path = tmp_path / "tree.exch"
    exchangeable.save(model, path)
    assert not hasattr(exchangeable.load(path), "_tree")
    model.fit(X)  # type: ignore[attr-defined]
    exchangeable.save(model, path)
    again = exchangeable.load(path)
    assert type(again) is type(model)
    assert again.get_params() == model.get_params()
    np.testing.assert_array_equal(again.score_samples(X), model.score_samples(X))
    np.testing.assert_array_equal(again.sample(9, random_state=0), model.sample(9, random_state=0))
    np.testing.assert_array_equal(again.edges_, model.edges_)
    for name in ("log_likelihood_", "history_", "scores_", "method_", "n_hidden_"):
        assert getattr(again, name, None) == getattr(model, name, None)


DAMAGED: dict[str, tuple[Any, str]] = {
    "node": (np.zeros(6, dtype=np.int64), "every node once"),
    "parent": (np.arange(1, 7), "does not precede"),
    "p_on": (np.full((6, 2), 1.5), "p_on"),
    "n_variables": (np.array([7]), "has 7 variables"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_tree_is_refused(name: str) -> None:
    arrays = saved.encode(ChowLiuTree().fit(X)._tree)
    damage, message = DAMAGED[name]
    with pytest.raises(ModelFileError, match=message):
        saved.decode({**arrays, name: damage})
    with pytest.raises(ModelFileError):
        saved.decode({**arrays, name: arrays[name].astype(np.float32)[:0]})
    roots = arrays["p_on"] + np.array([0.0, 1e-3]) * (arrays["parent"] < 0)[:, None]
    with pytest.raises(ModelFileError, match="root"):
        saved.decode({**arrays, "p_on": roots})


@pytest.mark.parametrize("chance", [0.0, 1.0])
def test_rows_that_cannot_be_have_no_chance(chance: float) -> None:
    model = LatentTree("clrg", max_iter=5).fit(X)
    certain = np.full_like(model._tree.p_on, chance)
    model._tree = model._tree.with_parameters(certain)
    rows = (np.arange(64)[:, None] >> np.arange(6) & 1).astype(np.uint8)
    scores = model.score_samples(rows)
    np.testing.assert_array_equal(np.exp(scores), (rows == chance).all(axis=1))
