"""Labels that are missing, mixed or text; and how much the rows of each class count."""

import numpy as np
import pandas as pd
import pytest

from exchangeable import ExchangeableClassifier

RNG = np.random.default_rng(1)
KIND = RNG.random(300) < 0.2
ROWS = (RNG.random((300, 5)) < np.where(KIND[:, None], 0.7, 0.3)).astype(np.uint8)
HOLED = np.where(RNG.random(ROWS.shape) < 0.1, np.nan, ROWS)
WORDS = np.where(KIND, "yes", "no")


@pytest.mark.parametrize("X", [ROWS, HOLED], ids=["complete", "holes"])
@pytest.mark.parametrize("options", [{}, {"family": "urns"}, {"blocks": "independent"}])
@pytest.mark.parametrize("class_weight", ["balanced", {"yes": 3.0}, {"yes": 2.0, "no": 0.5}])
def test_class_weights_multiply_sample_weights(X, options, class_weight):
    weight = RNG.integers(1, 3, len(X)).astype(float)
    factor = {"yes": 1.0, "no": 1.0}
    if class_weight == "balanced":
        totals = {label: weight[label == WORDS].sum() for label in factor}
        factor = {label: weight.sum() / (2 * total) for label, total in totals.items()}
    else:
        factor |= class_weight
    by_hand = weight * np.array([factor[label] for label in WORDS])
    expected = ExchangeableClassifier(**options).fit(X, WORDS, by_hand)
    found = ExchangeableClassifier(**options, class_weight=class_weight).fit(X, WORDS, weight)
    np.testing.assert_allclose(found.predict_proba(X), expected.predict_proba(X), rtol=1e-9)
    if class_weight == "balanced":
        np.testing.assert_allclose(np.exp(found.class_log_prior_), 0.5)
    assert found.get_params()["class_weight"] == class_weight


def test_class_weights_of_batches_and_of_unlabelled_rows():
    model = ExchangeableClassifier(class_weight={True: 4.0})
    for part in np.array_split(np.arange(300), 3):
        model.partial_fit(ROWS[part], KIND[part], classes=[False, True])
    assert model.class_count_.tolist() == [(~KIND).sum(), 4 * KIND.sum()]
    with pytest.raises(ValueError, match="needs all rows at once"):
        ExchangeableClassifier(class_weight="balanced").partial_fit(ROWS, KIND, classes=[0, 1])
    half = np.where(np.arange(300) % 2, WORDS.astype(object), None)
    light = ExchangeableClassifier(semi_supervised=True, class_weight={"yes": 1.0}).fit(ROWS, half)
    plain = ExchangeableClassifier(semi_supervised=True).fit(ROWS, half)
    np.testing.assert_array_equal(light.predict_proba(ROWS), plain.predict_proba(ROWS))
    with pytest.raises(ValueError, match="class_weight='balanced' needs X in memory"):
        ExchangeableClassifier(class_weight="balanced").fit([ROWS[:150], ROWS[150:]], KIND)


@pytest.mark.parametrize(
    ("class_weight", "message"),
    [("heavy", "class_weight='heavy' is unknown"), ({"old": 1}, "'old'"), ({"no": 0}, "positive")],
)
def test_class_weights_that_make_no_sense(class_weight, message):
    with pytest.raises(ValueError, match=message):
        ExchangeableClassifier(class_weight=class_weight).fit(ROWS, WORDS)


@pytest.mark.parametrize("mark", [None, np.nan, -1, pd.NA])
def test_rows_without_a_label_are_marked_alike(mark):
    hidden = np.arange(300) % 3 == 0
    numbers = np.where(hidden, -1, KIND.astype(int))
    expected = ExchangeableClassifier(semi_supervised=True).fit(ROWS, numbers)
    words = WORDS.astype(object)
    words[hidden] = mark
    for y in (words, words.tolist(), pd.Series(words, name="buys")):
        found = ExchangeableClassifier(semi_supervised=True).fit(ROWS, y)
        assert found.classes_.tolist() == ["no", "yes"]
        np.testing.assert_array_equal(found.predict_proba(ROWS), expected.predict_proba(ROWS))
    objects = KIND.astype(int).astype(object)
    objects[hidden] = mark
    found = ExchangeableClassifier(semi_supervised=True).fit(ROWS, objects)
    assert found.classes_.dtype.kind == "i"


def test_labels_that_are_missing_or_text_are_named():
    y = pd.Series(WORDS, name="buys", dtype=object)
    y.iloc[7] = None
    with pytest.raises(ValueError, match=r"row 7 of y, column 'buys', is None, but every row"):
        ExchangeableClassifier().fit(ROWS, y)
    with pytest.raises(ValueError, match="Input y contains NaN: row 1 of y is nan"):
        ExchangeableClassifier().fit(ROWS[:3], [0.0, np.nan, 1.0])
    with pytest.raises(ValueError, match="row 0 of y is the text '-1' among labels that are text"):
        ExchangeableClassifier(semi_supervised=True).fit(ROWS[:3], np.array(["-1", "a", "b"]))
    with pytest.raises(ValueError, match="all rows are unlabelled"):
        ExchangeableClassifier(semi_supervised=True).fit(ROWS[:2], [None, None])
    with pytest.raises(TypeError, match="int such as 1, str such as 'a'"):
        ExchangeableClassifier(semi_supervised=True).fit(ROWS[:3], np.array(["a", 1, None], object))
