"""Tables of columns of every kind in batches: `partial_fit`."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import exchangeable
from exchangeable import ExchangeableClassifier, ExchangeableMixture, Kinds
from typed_tables import N, assert_same_answers, make_table

TABLE, HOLED, GROUP = make_table()
TOLD = Kinds(
    {
        **dict.fromkeys(("grade", "mark"), "ordinal"),
        **dict.fromkeys(("visits", "calls"), "count"),
        **dict.fromkeys(("age", "height", "income"), "continuous"),
    },
    transform="none",
)
pytestmark = pytest.mark.filterwarnings("ignore:EM ")


def batches(model: Any, rows: Any, size: int = 75, labels: Any = None) -> Any:
    for begin in range(0, N, size):
        more = {} if labels is None else {"y": labels[begin : begin + size], "classes": [0, 1, 2]}
        model.partial_fit(rows[begin : begin + size], **more)
    return model


@pytest.mark.parametrize("rows", [TABLE, HOLED], ids=["complete", "holes"])
def test_sums_of_classes_add_up(rows: Any) -> None:
    """Columns by themselves, of whose transforms the first batch says nothing."""
    scaled = rows.assign(age=rows["age"] / 10)
    whole = ExchangeableClassifier(kinds=TOLD, n_jobs=1, max_iter=20).fit(scaled, GROUP)
    added = batches(ExchangeableClassifier(kinds=TOLD, n_jobs=1), scaled, labels=GROUP)
    assert_same_answers(whole, added, scaled, atol=1e-9)
    np.testing.assert_allclose(whole.class_count_, added.class_count_)


@pytest.mark.parametrize("family", ["mixed", "polya"])
@pytest.mark.parametrize("blocks", ["full", "evidence"])
def test_blocks_of_classes_come_near(family: str, blocks: str) -> None:
    options: Any = dict(family=family, blocks=blocks, kinds=TOLD, n_jobs=1, max_iter=30)
    for rows in (TABLE, HOLED):
        whole = ExchangeableClassifier(**options).fit(rows, GROUP)
        added = batches(ExchangeableClassifier(**options), rows, labels=GROUP)
        assert added.score_samples(rows).mean() > whole.score_samples(rows).mean() - 0.3
        assert added.score(rows, GROUP) > whole.score(rows, GROUP) - 0.05


@pytest.mark.parametrize("family", ["mixed", "polya"])
def test_a_mixture_goes_on_by_stochastic_em(family: str) -> None:
    for blocks in ("independent", "full"):
        options: Any = dict(family=family, blocks=blocks, random_state=0, n_jobs=1)
        first = ExchangeableMixture(3, **options).fit(HOLED[:75]).score(HOLED)
        whole = ExchangeableMixture(3, **options).fit(HOLED).score(HOLED)
        added = batches(ExchangeableMixture(3, **options), HOLED)
        assert first < added.score(HOLED)
        assert added.score(HOLED) > whole - (0.3 if blocks == "independent" else 1.0)
        assert added.n_samples_weight_ == N


def test_larger_counts_find_room() -> None:
    rows = TABLE.assign(visits=np.sort(TABLE["visits"]), calls=np.sort(TABLE["calls"]))
    whole = ExchangeableClassifier(kinds=TOLD, n_jobs=1).fit(rows, GROUP)
    added = batches(ExchangeableClassifier(kinds=TOLD, n_jobs=1), rows, labels=GROUP)
    assert_same_answers(whole, added, rows, atol=1e-9)
    for family in ("mixed", "polya"):
        options: Any = dict(family=family, blocks="full", kinds=TOLD, n_jobs=1)
        added = batches(ExchangeableClassifier(**options), rows, labels=GROUP)
        assert np.isfinite(added.score_samples(TABLE)).all()
    tree: Any = dict(family="mixed tree", kinds=TOLD, random_state=0, n_jobs=1)
    first = ExchangeableMixture(3, **tree).fit(rows[:75]).score(rows)
    added = batches(ExchangeableMixture(3, **tree), rows)
    assert first < added.score(rows)


def test_levels_of_the_first_batch_hold() -> None:
    first, later = TABLE[:100], TABLE[100:200].assign(city="Lima")
    strict = ExchangeableClassifier(kinds=Kinds(unseen="error"), n_jobs=1)
    strict.partial_fit(first, GROUP[:100], classes=[0, 1, 2])
    before = strict.score_samples(TABLE)
    with pytest.raises(
        ValueError, match=r"'city' is 'Lima', which is not one of its levels 'Bonn'"
    ):
        strict.partial_fit(later, GROUP[100:200])
    np.testing.assert_array_equal(strict.score_samples(TABLE), before)
    lenient = ExchangeableMixture(2, random_state=0, n_jobs=1).partial_fit(first)
    lenient.partial_fit(later)
    unknown = ExchangeableMixture(2, random_state=0, n_jobs=1).partial_fit(first)
    unknown.partial_fit(later.assign(city=None))
    np.testing.assert_array_equal(lenient.score_samples(TABLE), unknown.score_samples(TABLE))


def test_bits_at_first_and_other_numbers_later() -> None:
    bits = pd.DataFrame(np.eye(4), columns=list("abcd"))
    model = ExchangeableClassifier(n_jobs=1).partial_fit(bits, [0, 1, 0, 1], classes=[0, 1])
    with pytest.raises(ValueError, match="the columns of the first batch were all 0 and 1"):
        model.partial_fit(bits * 2.5, [0, 1, 0, 1])


def test_batches_go_on_from_a_file(tmp_path: Any) -> None:
    model = ExchangeableClassifier(kinds=TOLD, n_jobs=1).fit(TABLE[:200], GROUP[:200])
    exchangeable.save(model, tmp_path / "model.exch")
    again = exchangeable.load(tmp_path / "model.exch").partial_fit(TABLE[200:], GROUP[200:])
    assert again.class_count_.sum() == pytest.approx(N)
    whole = ExchangeableClassifier(kinds=TOLD, n_jobs=1).fit(TABLE, GROUP)
    assert again.score_samples(TABLE).mean() == pytest.approx(
        whole.score_samples(TABLE).mean(), abs=0.1
    )
    fitted = ExchangeableMixture(3, random_state=0, n_jobs=1).fit(TABLE[:200])
    exchangeable.save(fitted, tmp_path / "mixture.exch")
    again = exchangeable.load(tmp_path / "mixture.exch").partial_fit(TABLE[200:])
    assert again.score(TABLE) > fitted.score(TABLE) - 0.1


def test_sparse_counts_in_batches() -> None:
    rng = np.random.default_rng(0)
    counts = sp.csr_array(rng.poisson(np.where(GROUP[:, None] == np.arange(6) % 3, 2.0, 0.2)))
    for family in ("mixed", "polya"):
        options: Any = dict(family=family, kinds="count", blocks="full", n_jobs=1)
        whole = ExchangeableClassifier(**options).fit(counts, GROUP)
        added = batches(ExchangeableClassifier(**options), counts, labels=GROUP)
        gap = added.score_samples(counts).mean() - whole.score_samples(counts).mean()
        assert abs(gap) < 0.02
        assert added.score(counts, GROUP) > whole.score(counts, GROUP) - 0.02
