"""The paper's density figures on two of its sets, where they are present."""

import pytest

from exchangeable import ExchangeableMixture
from exchangeable.datasets import fetch_density
from missing_data import skip_without_data


def load(name):
    try:
        return fetch_density(name, download_if_missing=False)
    except OSError:
        skip_without_data(name)


@pytest.mark.parametrize(
    ("name", "published", "blocks"), [("nltcs", -6.04, 8.8), ("plants", -14.86, 15.9)]
)
def test_the_papers_sweep_and_what_merging_adds(name, published, blocks):
    """Three random starts of 20 components: near the paper's figure, and not below it after."""
    data = load(name)
    options = dict(n_init=3, init="random", random_state=0, binarize=None)
    sweep = ExchangeableMixture(20, blocks="welch", **options).fit(data.train)
    assert sweep.score(data.test) == pytest.approx(published, rel=0.01)
    assert sweep.n_blocks_.mean() == pytest.approx(blocks, abs=1.5)
    merged = ExchangeableMixture(20, **options).fit(data.train)
    assert merged.log_likelihood_ >= sweep.log_likelihood_
    assert merged.score(data.valid) > sweep.score(data.valid)


def test_equal_rows_of_msnbc_are_merged():
    from exchangeable.data.examples import merge_equal_rows
    from exchangeable.data.observed import as_observed

    X = load("msnbc").train
    examples, _ = merge_equal_rows(as_observed(X, None), X.sum(axis=1) * 0.0 + 1.0)
    assert (len(X), examples.rows.n_rows, examples.total) == (291_326, 9_228, 291_326.0)
