"""What is saved comes back bit for bit: in the library's own files, in pickles and in joblib's."""

import io
import pickle
import warnings
from pathlib import Path

import joblib
import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

import exchangeable
from exchangeable import (
    EVM,
    Blocks,
    Count,
    ExchangeableClassifier,
    ExchangeableImputer,
    ExchangeableMixture,
    FiniteState,
    ModelFileError,
)
from exchangeable.rasch.parameters import ItemParameters
from saved_models import HOLES, KIND, MODELS, TABLE, TABLE_MODELS, X, answers

FILES = Path(__file__).parent / "files"
COMMITTED = (
    "classifier words",
    "mixture urns",
    "mixture trees",
    "imputer",
    "block counts",
    "mixture trees over counts",
    "mixture weighted trees",
    "mixture hidden in blocks",
    "mixture with settings of blocks",
    "density joined",
)


@pytest.fixture(scope="module")
def fitted():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {name: make() for name, make in MODELS.items()}


def assert_same(before, after):
    """Check that two values are the same bit for bit, of the same type."""
    assert type(before) is type(after)
    if isinstance(before, np.ndarray):
        assert before.dtype == after.dtype
        assert before.shape == after.shape
        if before.dtype == object:
            assert before.tolist() == after.tolist()
        else:
            assert before.tobytes() == after.tobytes()
    elif isinstance(before, list | tuple):
        assert len(before) == len(after)
        for left, right in zip(before, after, strict=True):
            assert_same(left, right)
    elif isinstance(before, dict):
        assert_same(list(before), list(after))
        assert_same(list(before.values()), list(after.values()))
    elif isinstance(before, BaseEstimator):
        assert_same(vars(before).keys() - {"_model"}, vars(after).keys() - {"_model"})
        for name in vars(before).keys() - {"_model"}:
            assert_same(getattr(before, name), getattr(after, name))
    elif isinstance(before, ItemParameters):
        assert_same(vars(before), vars(after))
    elif isinstance(before, float):
        assert np.float64(before).tobytes() == np.float64(after).tobytes()
    elif isinstance(before, exchangeable.Statistic | range):
        assert repr(before) == repr(after)
    else:
        assert before == after


@pytest.mark.parametrize("name", MODELS)
def test_every_model_comes_back_bit_for_bit(name, fitted, tmp_path):
    model = fitted[name]
    exchangeable.save(model, tmp_path / "model.exch")
    again = exchangeable.load(tmp_path / "model.exch")
    assert_same(answers(model), answers(again))
    if hasattr(model, "table_"):  # how long trials took is not in the file
        model.table_ = [_without_seconds(row) for row in model.table_]
        model.rounds_ = [_without_seconds(row) for row in model.rounds_]
    if name != "classifier given":  # a range comes back as the list of its members
        assert_same(model, again)
    exchangeable.save(again, tmp_path / "again.exch")
    assert (tmp_path / "again.exch").read_bytes() == (tmp_path / "model.exch").read_bytes()
    if hasattr(model, "partitions_"):
        assert_same(model.partitions_, again.partitions_)
        assert_same(model.count_probabilities_, again.count_probabilities_)
        assert_same(model.edges_, again.edges_)


@pytest.mark.parametrize("name", TABLE_MODELS)
def test_equal_tables_make_equal_files_that_answer_alike(name, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model, twin = TABLE_MODELS[name](), TABLE_MODELS[name]()
    exchangeable.save(model, tmp_path / "one")
    exchangeable.save(twin, tmp_path / "other")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()
    again = exchangeable.load(tmp_path / "one")
    rows = TABLE[list(model.feature_names_in_)]
    ask = "transform" if isinstance(model, ExchangeableImputer) else "score_samples"
    assert_same(np.asarray(getattr(model, ask)(rows)), np.asarray(getattr(again, ask)(rows)))
    exchangeable.save(again, tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "one").read_bytes()


def _without_seconds(row):
    return {key: value for key, value in row.items() if key != "seconds"}


@pytest.mark.parametrize("name", MODELS)
def test_equal_fits_make_equal_files(name, fitted, tmp_path):
    if name == "classifier semi-supervised":
        pytest.skip("draws its labels anew")
    exchangeable.save(fitted[name], tmp_path / "one")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exchangeable.save(MODELS[name](), tmp_path / "other")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()


@pytest.mark.parametrize("name", MODELS)
def test_pickle_and_joblib(name, fitted):
    expected = answers(fitted[name])
    assert_same(expected, answers(pickle.loads(pickle.dumps(fitted[name]))))
    stream = io.BytesIO()
    joblib.dump(fitted[name], stream)
    assert_same(expected, answers(joblib.load(stream)))


def test_partial_fit_goes_on_from_a_file(tmp_path):
    """A file holds no rows to learn blocks from: they stay, and the counts in them add up."""
    whole = ExchangeableClassifier().partial_fit(X[:100], KIND[:100], classes=[0, 1, 2])
    exchangeable.save(whole, tmp_path / "half")
    resumed = exchangeable.load(tmp_path / "half").partial_fit(X[100:], KIND[100:])
    blocks = dict(zip([0, 1, 2], whole.partitions_, strict=True))
    given = ExchangeableClassifier(blocks=blocks).fit(X, KIND)
    assert_same(answers(resumed), answers(given))


def test_what_is_not_fitted_keeps_its_parameters(tmp_path):
    model = ExchangeableMixture(4, blocks=Blocks("welch", conditions=(1, 2)), tol=0.5)
    exchangeable.save(model, tmp_path / "m")
    again = exchangeable.load(tmp_path / "m")
    assert_same(model, again)
    assert not hasattr(again, "weights_")


def test_a_file_does_not_say_where_a_later_fit_writes(tmp_path):
    exchangeable.save(ExchangeableMixture(4, checkpoint=tmp_path / "c"), tmp_path / "m")
    again = exchangeable.load(tmp_path / "m")
    assert again.get_params() == ExchangeableMixture(4).get_params()


@pytest.mark.parametrize("name", COMMITTED)
def test_files_of_the_second_format_are_still_read(name):
    path = FILES / f"{name.replace(' ', '_')}.exch"
    expected = np.load(FILES / f"{name.replace(' ', '_')}.npz")
    found = answers(exchangeable.load(path))
    for number, array in enumerate(found):
        np.testing.assert_allclose(array, expected[str(number)], rtol=1e-10, atol=1e-12)


def test_files_of_the_first_format_are_refused_with_advice():
    """Parameters were renamed since; no release has ever written such a file."""
    with pytest.raises(ModelFileError, match=r"version_1\.exch: has format version 1, from before"):
        exchangeable.load(FILES / "version_1.exch")
    with pytest.raises(ModelFileError, match="fit the model again"):
        exchangeable.load(FILES / "version_1.exch")


def test_what_cannot_be_saved_is_refused(tmp_path):
    path = tmp_path / "model"
    own = FiniteState(3, lambda s, x: (x, int(x != s)), start=None)
    with pytest.raises(TypeError, match="made of Python functions"):
        exchangeable.save(EVM(own).fit([[0, 1, 0]]), path)
    with pytest.raises(TypeError, match="random_state is a Generator"):
        exchangeable.save(ExchangeableMixture(random_state=np.random.default_rng(0)), path)
    with pytest.raises(NotFittedError):
        exchangeable.save(EVM(Count(3)), path)
    with pytest.raises(TypeError, match="CountVectorizer cannot be saved"):
        exchangeable.save(CountVectorizer(), path)

    class Mine(ExchangeableClassifier):
        pass

    with pytest.raises(TypeError, match="Mine cannot be saved"):
        exchangeable.save(Mine(), path)
    with pytest.raises(TypeError, match="blocks is <object"):
        exchangeable.save(ExchangeableClassifier(blocks=object()), path)
    assert not list(tmp_path.iterdir())
    with pytest.raises(FileNotFoundError, match="does not exist"):
        exchangeable.save(ExchangeableMixture(), tmp_path / "none" / "model")


def test_a_file_that_is_there_is_replaced_whole(tmp_path):
    path = tmp_path / "model"
    path.write_text("before")
    with pytest.raises(TypeError):
        exchangeable.save(ExchangeableMixture(blocks=object()), path)
    assert path.read_text() == "before"
    exchangeable.save(EVM.from_weights(Count(3), [0.1, 0.2, 0.3, 0.4]), path)
    assert exchangeable.load(path).statistic.n_variables == 3
    assert [entry.name for entry in tmp_path.iterdir()] == ["model"]


def test_as_part_of_scikit_learn():
    search = GridSearchCV(ExchangeableClassifier(), {"alpha": [0.1, 1.0]}, cv=3).fit(X, KIND)
    assert clone(search.best_estimator_).get_params() == search.best_estimator_.get_params()
    calibrated = CalibratedClassifierCV(ExchangeableClassifier(), cv=3).fit(X, KIND)
    assert calibrated.predict_proba(X).shape == (240, 3)
    holes = make_pipeline(
        ExchangeableImputer(ExchangeableMixture(2, random_state=0, max_iter=3, tol=0.1)),
        ExchangeableClassifier(),
    )
    again = pickle.loads(pickle.dumps(holes.fit(HOLES, KIND)))
    assert (again.predict(HOLES) == holes.predict(HOLES)).all()


if __name__ == "__main__":  # writes the files that later versions must keep reading
    for committed in COMMITTED:
        kept = MODELS[committed]()
        place = FILES / committed.replace(" ", "_")
        exchangeable.save(kept, place.with_suffix(".exch"))
        np.savez_compressed(
            place.with_suffix(".npz"), **{str(i): a for i, a in enumerate(answers(kept))}
        )
