"""Reading a file takes at most twice its size, beside a constant that small files do not exceed."""

import gc
import tracemalloc

import numpy as np
import pytest

from exchangeable import (
    EVM,
    BlockCounts,
    CategoricalCounts,
    ExchangeableMixture,
    ModelFileError,
    load,
    save,
)
from exchangeable.families import REGISTRY
from exchangeable.persistence.parameters import decode_model, encode_model
from exchangeable.storage import archive
from exchangeable.storage.limits import Budget
from exchangeable.storage.values import Reader, Writer

N = 240
SPARE = 4 << 20
"""Bytes that reading may take beside twice the size of a file; see tests/fuzz/fuzz_files.py."""
X = (np.random.default_rng(3).random((60, N)) < np.linspace(0.1, 0.9, N)).astype(np.uint8)
STRETCHES = [(list(range(begin, begin + 40)), "transitions") for begin in range(0, N, 40)]
SETTINGS = {
    "blocks": {},
    "single variables": {"blocks": "independent"},
    "urns": {"family": "urns"},
    "trees": {"family": "tree"},
    "weighted trees": {"family": "weighted tree"},
    "trees over counts": {"family": "count tree", "blocks": "welch"},
    "hidden trees": {"family": "hidden tree"},
    "statistics": {"blocks": STRETCHES},
    "levels": {"family": "mixed", "kinds": dict.fromkeys(range(N), "nominal")},
}


def most(read):
    """Return the largest number of bytes that Python held at a time while reading."""
    read()  # imports and compiles
    gc.collect()
    tracemalloc.start()
    try:
        kept = read()
        taken = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    del kept
    return taken


@pytest.mark.filterwarnings("ignore:EM did not converge")
@pytest.mark.parametrize("name", SETTINGS)
def test_a_file_with_more_classes_takes_at_most_twice_what_they_take_in_it(name, tmp_path):
    fit = ExchangeableMixture(6, max_iter=1, tol=0.1, random_state=0, **SETTINGS[name]).fit(X)
    sizes, taken = [], []
    for times in (8, 16):
        writer, path = Writer(), tmp_path / str(times)
        model = encode_model(type(fit._model).stack([fit._model] * times), writer, "model")
        archive.write(path, {"model": model}, writer.arrays)

        def read(path=path):
            header, arrays = archive.read(path)
            return decode_model(header["model"], Reader(arrays, Budget()), "model")

        sizes.append(path.stat().st_size)
        taken.append(most(read))
    assert taken[1] - taken[0] <= 2 * (sizes[1] - sizes[0])
    assert taken[1] <= 2 * sizes[1] + SPARE


@pytest.mark.parametrize(
    "statistic",
    [CategoricalCounts(40, n_symbols=6), BlockCounts([range(9 * b, 9 * b + 9) for b in range(6)])],
    ids=lambda statistic: type(statistic).__name__,
)
def test_values_of_a_statistic_are_not_listed_before_they_are_asked_for(statistic, tmp_path):
    n_values = statistic.n_values
    save(EVM.from_weights(statistic, np.full(n_values, 1 / n_values)), tmp_path / "wide.exch")
    assert statistic.values.nbytes > SPARE
    assert len(statistic.values) == n_values
    size = (tmp_path / "wide.exch").stat().st_size
    assert most(lambda: load(tmp_path / "wide.exch")) <= 2 * size + (1 << 20)


@pytest.mark.filterwarnings("ignore:EM did not converge")
@pytest.mark.parametrize("family", ["blocks", "urns", "count tree", "hidden tree"])
def test_labels_without_tables_take_no_more_than_twice_their_size(family):
    """Sizes and starts of as many blocks as variables would take ten times as much."""
    n = 1_000_000
    labels = np.arange(n, dtype=np.int32)[None]
    kind = REGISTRY[family].model
    small = ExchangeableMixture(1, family=family, max_iter=1, random_state=0, tol=0.1, alpha=0.5)
    arrays = small.fit(X[:, :4])._model.encode()
    names = [name for name in arrays if name.endswith("labels")]

    def read():
        with pytest.raises(ModelFileError, match="labels do not go with tables"):
            kind.read({**arrays, **dict.fromkeys(names, labels)})

    assert names
    assert most(read) <= labels.nbytes
