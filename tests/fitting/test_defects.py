"""Defects that were mended with the floor plan; each of these failed before."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from exchangeable import (
    EVM,
    Blocks,
    Count,
    ExchangeableClassifier,
    ExchangeableDensity,
    ExchangeableMixture,
)
from exchangeable.data.examples import merge_equal_rows
from exchangeable.data.observed import as_observed
from exchangeable.families import REGISTRY
from exchangeable.families.common.em_data import InMemory
from exchangeable.families.contract import Model
from exchangeable.families.problem import Problem
from exchangeable.fitting.em import StopRule
from exchangeable.fitting.runs import Runs
from exchangeable.structure import proposals
from exchangeable.structure.learner import BlockLearner, BlockSettings
from toy_family import SPEC as COINS
from toy_family import CoinFamily, CoinModel

rng = np.random.default_rng(0)
KIND = rng.integers(0, 2, size=300)
X = (rng.random((300, 8)) < np.where(KIND[:, None] == np.arange(8) // 4, 0.8, 0.2)).astype(float)


@pytest.mark.parametrize("pooling", [None, 2.0])
def test_a_pooled_prior_does_not_switch_structural_em_off(
    monkeypatch: pytest.MonkeyPatch, pooling: float | None
) -> None:
    asked = []

    def counting(*args: Any) -> Any:
        asked.append(1)
        return learn(*args)

    learn = proposals._from_posteriors
    monkeypatch.setattr(proposals, "_from_posteriors", counting)
    model = ExchangeableMixture(2, blocks="welch", pooling=pooling, random_state=0).fit(X)
    assert len(asked) == 1 + model.n_iter_  # the first blocks, and a proposal in each iteration


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_blocks_stay_where_learning_is_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def counting(*args: Any) -> Any:
        asked.append(1)
        return learn(*args)

    learn = proposals._from_posteriors
    monkeypatch.setattr(proposals, "_from_posteriors", counting)
    for family in ("blocks", "urns"):
        for relearn in (False, True):
            asked.clear()
            blocks = Blocks("welch", relearn=relearn)
            model = ExchangeableMixture(2, family=family, blocks=blocks, random_state=0).fit(X)
            assert len(asked) == (1 + model.n_iter_ if relearn else 1)


class WorseCoins(CoinFamily):
    """A family whose third step is a bad one."""

    def following(self, data: Any, model: Any, sums: Any, step: int) -> list[Model]:
        good: Any = super().following(data, model, sums, step)[0]
        if step in (0, 3):
            return [CoinModel(1 - good.chance, good.width)]
        return [good]


def test_a_step_that_lowers_the_objective_is_not_taken_and_not_called_convergence() -> None:
    examples = merge_equal_rows(as_observed(X, 0.0), np.ones(len(X)))[0]
    single = BlockLearner("independent", BlockSettings(0.1, 0.1, 0.1, (1,)))
    problem = Problem(2, single, examples=examples)
    spec = replace(COINS, family=WorseCoins)
    generators = [np.random.default_rng(5)]
    runs = Runs(spec, problem, InMemory(examples), StopRule(0.0, 10), "rows", generators)
    seen: list[Any] = []
    end = runs.run(0, report=seen.append)
    assert end.n_iter == 3
    assert end.fell > 0
    assert not end.converged
    assert end.history[3] == end.history[2]
    np.testing.assert_array_equal(end.best.model.chance, seen[2].mixture.model.chance)


def test_hidden_trees_of_too_many_variables_are_refused() -> None:
    wide = np.zeros((30, 4001), dtype=np.uint8)
    with pytest.raises(ValueError, match="the limit is 4,000, X has 4,001"):
        ExchangeableMixture(2, family="hidden tree").fit(wide)
    with pytest.raises(ValueError, match="the limit is 4,000, X has 4,001"):
        ExchangeableDensity(["hidden tree"]).fit(wide)


def test_conditional_takes_query_and_given_in_one_order_everywhere() -> None:
    evm = EVM(Count(8)).fit(X, alpha=0.5)
    mixture = ExchangeableMixture(2, random_state=0).fit(X)
    classifier = ExchangeableClassifier().fit(X, KIND)
    for model in (evm, mixture, classifier):
        joint = model.conditional([1, 2], {0: 1})
        assert joint.shape == (2, 2)
        assert joint.sum() == pytest.approx(1.0)
        assert joint[1].sum() == pytest.approx(model.marginals({0: 1})[1])
        with pytest.raises(TypeError, match=r"query=\{0: 1\} is a dict.*goes second"):
            model.conditional({0: 1})


def test_the_winner_of_a_search_can_be_passed_back() -> None:
    for family in ("blocks", "urns", "tree", "weighted tree", "count tree", "hidden tree"):
        density = ExchangeableDensity(
            [family], n_init=1, max_components=3, max_iter=3, time_budget=0.2, random_state=0
        ).fit(X)
        again = ExchangeableMixture(**density.best_params_, tol=1.0, random_state=0).fit(X)
        assert again.family == family
        best = max(density.table_, key=lambda row: row["valid"])
        blocks = density.best_params_.get("blocks")
        assert best.get("shrinkage") == (blocks.shrinkage if isinstance(blocks, Blocks) else None)
        assert ("shrinkage" in best) == (REGISTRY[family].shrinkage is not None)


def test_settings_of_blocks_can_be_searched() -> None:
    model = ExchangeableClassifier(blocks="welch")
    assert model.set_params(blocks__significance=0.01).blocks.significance == 0.01
    assert model.get_params()["blocks__method"] == "welch"
    for blocks in ("auto", [[0, 1], [2, 3]], {0: [[0]], 1: [[0]]}):
        tree = ExchangeableMixture(family="count tree", blocks=blocks)
        assert tree.set_params(blocks__shrinkage=2.0).blocks.method == blocks
        assert tree.blocks.shrinkage == 2.0


def test_constructors_are_short() -> None:
    assert len(ExchangeableClassifier().get_params(deep=False)) <= 13
    assert len(ExchangeableMixture().get_params(deep=False)) <= 18
