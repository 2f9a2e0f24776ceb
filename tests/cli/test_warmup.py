"""After a warm-up nothing is left to compile."""

import sys

import numpy as np
import pytest
from click.testing import CliRunner
from numba.core.dispatcher import Dispatcher

import exchangeable
from exchangeable.cli import main
from exchangeable.cli.commands.warmup import COMPILED as FAMILIES
from exchangeable.cli.commands.warmup import steps, tables
from exchangeable.families import REGISTRY
from exchangeable.runtime.kernels.bits import COMPILED


def specialisations():
    return {
        (name, kernel.__name__, signature)
        for name, module in list(sys.modules.items())
        if name.startswith("exchangeable.")
        for kernel in vars(module).values()
        if isinstance(kernel, Dispatcher)
        for signature in kernel.signatures
    }


def test_every_family_and_every_kind_of_table_has_its_turn():
    names = [name for name, _ in steps(tuple(FAMILIES))]
    assert FAMILIES
    for family in FAMILIES:
        spec = REGISTRY[family]
        for kind in tables():
            assert f"{family}, components, {kind}" in names
            assert (f"{family}, items of a test" in names) == (spec.conditional is not None)
            assert (f"{family}, classes, {kind}" in names) == ("classes" not in spec.cannot)


@pytest.mark.skipif(not COMPILED, reason="nothing is compiled")
def test_nothing_is_compiled_after_a_warm_up():
    result = CliRunner().invoke(main, ["warmup", "--family", "blocks"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert "Compiled kernels are kept in " in result.output
    before = specialisations()
    assert before
    rng = np.random.default_rng(3)
    X = rng.integers(0, 2, size=(300, 30)).astype(float)
    exchangeable.ExchangeableClassifier().fit(X, X[:, 0]).predict(X)
    X[rng.random(X.shape) < 0.2] = np.nan
    mixture = exchangeable.ExchangeableMixture(3, random_state=0).fit(X)
    mixture.impute(X)
    mixture.marginals({0: 1})
    mixture.most_probable({0: 1})
    hybrid = exchangeable.ExchangeableClassifier(training="hybrid")
    hybrid.fit(X[:, :8], np.arange(300) % 2).predict_proba(X[:, :8])
    assert specialisations() == before


@pytest.mark.skipif(not COMPILED, reason="nothing is compiled")
def test_nothing_is_compiled_after_a_warm_up_for_columns_of_every_kind():
    result = CliRunner().invoke(main, ["warmup", "--family", "mixed"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    before = specialisations()
    rng = np.random.default_rng(3)
    X = np.column_stack([rng.integers(0, 4, 400), rng.poisson(3, 400), rng.normal(size=400)])
    kinds = dict(enumerate(["nominal", "count", "continuous"]))
    mixture = exchangeable.ExchangeableMixture(3, kinds=kinds, random_state=0).fit(X)
    mixture.marginals({0: 1})
    mixture.sample(10)
    X[rng.random(X.shape) < 0.2] = np.nan
    mixture.fit(X).impute(X)
    assert specialisations() == before
