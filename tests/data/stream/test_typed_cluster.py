"""Tables of columns of every kind on a cluster of several processes."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from exchangeable import ExchangeableClassifier, ExchangeableMixture, Kinds
from typed_tables import N, assert_same_answers, make_table

dd = pytest.importorskip("dask.dataframe")
da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")
TABLE, HOLED, GROUP = make_table()
OPTIONS: Any = dict(n_components=3, max_iter=2, tol=0.0, random_state=0, n_jobs=1)
pytestmark = pytest.mark.filterwarnings("ignore:EM ")


@pytest.fixture
def client(cluster: Any) -> Iterator[Any]:
    with distributed.Client(cluster) as made:
        made.wait_for_workers(2, timeout=60)
        yield made


@pytest.mark.parametrize("blocks", ["independent", "full", "evidence"])
def test_a_mixture_is_the_one_in_memory(client: Any, blocks: str) -> None:
    there = dd.from_pandas(HOLED, npartitions=4)
    local = ExchangeableMixture(blocks=blocks, **OPTIONS).fit(HOLED)
    far = ExchangeableMixture(blocks=blocks, **OPTIONS).fit(there)
    assert_same_answers(local, far, HOLED)
    np.testing.assert_allclose(
        far.score_samples(there).compute(), local.score_samples(HOLED), atol=1e-10
    )


def test_a_classifier_is_the_one_in_memory(client: Any) -> None:
    kinds = Kinds({"grade": "nominal"}, unseen="error")
    local = ExchangeableClassifier(kinds=kinds, n_jobs=1).fit(TABLE, GROUP)
    there = dd.from_pandas(TABLE.assign(kind=GROUP), npartitions=5)
    far = ExchangeableClassifier(kinds=kinds, n_jobs=1).fit(there, "kind")
    assert_same_answers(local, far, TABLE)
    answer = far.predict(there.drop(columns="kind")).compute()
    np.testing.assert_array_equal(answer, local.predict(TABLE))


def test_an_array_of_counts(client: Any) -> None:
    counts = np.random.default_rng(0).poisson(1 + 2 * GROUP[:, None], (N, 4)).astype(float)
    counts[::7, 1] = np.nan
    options: Any = dict(kinds="count", family="polya", blocks="full")
    local = ExchangeableMixture(**OPTIONS, **options).fit(counts)
    far = ExchangeableMixture(**OPTIONS, **options).fit(da.from_array(counts, chunks=(90, 2)))
    np.testing.assert_allclose(
        local.score_samples(counts), far.score_samples(counts), rtol=0, atol=1e-7
    )


def test_a_partition_that_cannot_be_is_named(client: Any) -> None:
    wrong = TABLE.assign(visits=np.where(np.arange(N) < 200, 1, -1))
    with pytest.raises(ValueError, match=r"partition 2 of X: column 'visits' is a count"):
        ExchangeableMixture(kinds={"visits": "count"}, **OPTIONS).fit(
            dd.from_pandas(wrong, npartitions=3)
        )
