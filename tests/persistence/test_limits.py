"""Small files cannot cause large work, and what loads is a distribution that kernels can trust."""

import json
import signal
import tracemalloc

import numpy as np
import pytest

import exchangeable
from damaged_files import npy, pack, unpack
from enumeration import all_states
from exchangeable import EVM, Count, ExchangeableMixture, ModelFileError, Pooled, Runs, Transitions
from exchangeable.cli.options import open_model
from exchangeable.data.observed import Observed
from exchangeable.families.blocks.model import BlockModel
from exchangeable.families.common.tables import Tables
from exchangeable.families.count_trees.forest import CountForest
from exchangeable.families.count_trees.model import CountTreeModel
from exchangeable.families.hidden_trees.model import HiddenModel
from exchangeable.families.hidden_trees.tree import HiddenTree
from exchangeable.families.statistics.model import FittedBlock, MixedBlocksModel
from exchangeable.families.trees.model import TreeModel
from exchangeable.families.urns.model import UrnModel
from exchangeable.partitions import Partition
from exchangeable.statistics.saved import decode_statistic
from exchangeable.storage import archive
from exchangeable.storage.limits import Budget

rng = np.random.default_rng(3)


@pytest.fixture
def watchdog():
    """End a test that works for minutes: what was to be refused at once was done."""

    def give_up(number, frame):
        raise AssertionError("a minute of a processor has passed")

    before = signal.signal(signal.SIGPROF, give_up)
    signal.setitimer(signal.ITIMER_PROF, 60)
    yield
    signal.setitimer(signal.ITIMER_PROF, 0)
    signal.signal(signal.SIGPROF, before)


def write_evm(path, n_weights, n_features, statistic):
    """Write an `EVM` over a statistic that need not exist."""
    header = {
        "format": "exchangeable model",
        "version": 2,
        "libraries": {},
        "preprocessing": None,
        "estimator": {
            "class": "EVM",
            "parameters": {"statistic": {"statistic": statistic}},
            "attributes": {"weights_": {"array": "weights_"}, "n_features_in_": n_features},
        },
    }
    archive.write(path, header, {"weights_": np.full(n_weights, 1 / n_weights)})


def write_model(path, model):
    """Write a mixture around a model that need not make sense."""
    n, k = model.n_variables, model.n_classes
    mixture = ExchangeableMixture(k)
    mixture.weights_, mixture.n_features_in_ = np.full(k, 1 / k), n
    mixture._model = model
    exchangeable.save(mixture, path)
    return path


def one_block(n):
    return Partition.from_labels(np.zeros(n, dtype=np.int32))


def uniform_urn(log_weights):
    n = len(log_weights)
    log_q = np.log(np.full(n + 1, 1 / (n + 1)))
    return UrnModel.make([one_block(n)], np.reshape(log_weights, (n, 1)).astype(float), [log_q])


def path_tree(n, slope, pair, weighted):
    parent = np.array([n, *range(n - 1)], dtype=np.int32)[:, None]
    log_q = np.log(np.full((n + 1, 1), 1 / (n + 1))) if weighted else np.empty((0, 0))
    return TreeModel.make(
        np.zeros(1), np.full((n, 1), float(slope)), parent, np.full((n, 1), float(pair)), log_q
    )


@pytest.mark.parametrize(
    ("n_values", "n_variables", "statistic"),
    [
        (2, 4000**2, {"class": "Pooled", "n": 4000, "k": 4000, "tau": 0}),
        (2, 1000**2, {"class": "Pooled", "n": 1000, "k": 1000, "tau": 0}),
        (20_001, 40_000, {"class": "Transitions", "n_variables": 40_000}),
        (1_028_790, 4, {"class": "CategoricalCounts", "n_variables": 4, "n_symbols": 70}),
        (10**6, 10**5, {"class": "CategoricalCounts", "n_variables": 10**5, "n_symbols": 10**5}),
        (10**6, 1, {"class": "CategoricalCounts", "n_variables": 1, "n_symbols": 10**6}),
        (9, 10**9, {"class": "Count", "n_variables": 10**9}),
        (
            2,
            4 * 500**2,
            {
                "class": "Nested",
                "outer": {"class": "Transitions", "n_variables": 3},
                "inner": [{"class": "Pooled", "n": 500, "k": 500, "tau": 0}] * 3,
                "groups": [[0], [1], [2]],
            },
        ),
    ],
)
@pytest.mark.usefixtures("watchdog")
def test_small_files_of_large_statistics(n_values, n_variables, statistic, tmp_path):
    path = tmp_path / "model"
    write_evm(path, n_values, n_variables, statistic)
    with pytest.raises(ModelFileError, match=r"would take more|do not go with|not one per value"):
        exchangeable.load(path)


@pytest.mark.parametrize("statistic", [Pooled(28, 4), Transitions(2000), Count(100_000)])
def test_statistics_of_usual_size_are_read(statistic, tmp_path):
    n_values = statistic.n_values
    evm = EVM.from_weights(statistic, np.full(n_values, 1 / n_values))
    exchangeable.save(evm, tmp_path / "model")
    assert exchangeable.load(tmp_path / "model").statistic.n_values == n_values


def test_many_statistics_of_one_file_share_its_steps():
    budget, value = Budget(), {"class": "Transitions", "n_variables": 3000}
    decode_statistic(value, 1501, budget)
    budget.left /= 10
    with pytest.raises(ModelFileError, match="would take more"):
        decode_statistic(value, 1501, budget)


def test_an_array_can_be_referred_to_only_so_often(tmp_path):
    many = {"array": "more_"}
    exchangeable.save(EVM.from_weights(Count(9999), np.full(10_000, 1e-4)), tmp_path / "model")
    header, arrays = archive.read(tmp_path / "model")
    arrays["more_"] = np.zeros(10**6)
    header["estimator"]["attributes"]["more_"] = [many] * 1000
    archive.write(tmp_path / "model", header, arrays)
    with pytest.raises(ModelFileError, match="would take more"):
        exchangeable.load(tmp_path / "model")


def test_what_could_not_be_read_is_not_written(tmp_path):
    with pytest.raises(ValueError, match="would take more"):
        write_model(tmp_path / "model", uniform_urn(np.zeros(200_000)))
    assert not list(tmp_path.iterdir())


def test_weighted_trees_that_would_take_minutes(tmp_path):
    arrays = path_tree(24_000, 0, 1, weighted=True).encode()
    assert sum(array.nbytes for array in arrays.values()) < 700_000
    with pytest.raises(ModelFileError, match="at most 4,000 variables"):
        TreeModel.read(arrays)
    with pytest.raises(ModelFileError, match="would take more"):
        TreeModel.read(TreeModel.stack([path_tree(4000, 0, 1, weighted=True)] * 40).encode())


@pytest.mark.parametrize("pair", [-15, 15])
@pytest.mark.parametrize("slope", [-60, -15, 0, 15, 60])
@pytest.mark.usefixtures("watchdog")
def test_the_worst_weighted_trees_are_checked_in_time(slope, pair):
    model = path_tree(400, slope, pair, weighted=True)
    np.testing.assert_allclose(model.log_totals(), 0, atol=1e-9)


def test_wide_blocks_of_hidden_trees_take_little_memory():
    n = 30_000
    log_q = np.log(np.full((n + 1, 2), 1 / (n + 1)))
    tree = HiddenTree.make(one_block(n), np.ones(1, np.int32), log_q, np.full((1, 2, 2), 0.5))
    tracemalloc.start()
    HiddenModel.read(HiddenModel([tree]).encode())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100e6


def test_totals_are_those_of_all_rows():
    """Also where parameters do not make a distribution: files are refused by them."""
    rng = np.random.default_rng(5)
    partition = Partition.from_labels(np.array([0, 1, 1, 2, 0, 1], np.int32))
    size, edges = partition.table_size, rng.random((3, 2, 2))
    parent = np.array([2, 2, 3], np.int32)
    tree = HiddenTree.make(partition, parent, rng.normal(size=(size, 2)), edges)
    blocks = BlockModel([partition] * 2, [np.zeros(size)] * 2, np.zeros(2))
    blocks.tables = Tables.layout(blocks.partitions, rng.normal(size=2 * size))
    own = FittedBlock(np.array([4, 1, 5, 0]), Runs(4), rng.normal(size=(4, 2)))
    few = Partition.from_labels(np.zeros(2, np.int32))
    rest = BlockModel([few] * 2, [np.zeros(3)] * 2, np.zeros(2))
    rest.tables = Tables.layout(rest.partitions, rng.normal(size=6))
    statistics = MixedBlocksModel([own], rest, np.array([2, 3]))
    for model in (HiddenModel([tree]), blocks, statistics):
        assert np.abs(model.log_totals()).min() > 0.01
        every = model.score(Observed.from_symbols(all_states(model.n_variables)))
        np.testing.assert_allclose(model.log_totals(), np.logaddexp.reduce(every), atol=1e-12)


def test_edges_of_hidden_trees_add_up_one_by_one():
    """Those of two blocks may make up for each other in the probability of all rows."""
    edges = np.full((3, 2, 2), 0.5)
    edges[1], edges[2] = 0.5 * 1.25, 0.5 / 1.25
    singles = Partition.from_labels(np.arange(3, dtype=np.int32))
    tree = HiddenTree.make(
        singles, np.array([3, 0, 0], np.int32), np.full((6, 2), -np.log(2)), edges
    )
    np.testing.assert_allclose(HiddenModel([tree]).log_totals(), 0, atol=1e-12)
    with pytest.raises(ModelFileError, match="edges hold probabilities that do not add up"):
        HiddenModel.read(HiddenModel([tree]).encode())


def test_trees_over_counts_have_few_bins():
    n = 2000
    partition = one_block(n)
    forest = CountForest.of(partition, np.arange(n + 1), [1])
    model = CountTreeModel([forest], [np.log(np.full(n + 1, 1 / (n + 1)))], [np.empty(0)])
    with pytest.raises(ModelFileError, match="at most 8 bins"):
        CountTreeModel.read(model.encode())


def test_tables_with_more_columns_than_the_model(tmp_path):
    model = EVM.from_weights(Count(2), [0.25, 0.5, 0.25])
    for n_columns in (10**10, 10**400, 1e300, True, "2", -1):
        path = tmp_path / "model"
        sparse = {"kind": "sparse", "n_columns": n_columns, "target": None}
        exchangeable.save(model, path, preprocessing=sparse)
        with pytest.raises(ValueError, match=r"variables|n_columns must be"):
            open_model(str(path))
    column = {"name": "x" * 10_000, "kind": "category", "levels": [str(i) for i in range(10_000)]}
    exchangeable.save(model, path, preprocessing={"kind": "columns", "columns": [column]})
    with pytest.raises(ValueError, match="more than 100"):
        open_model(str(path))


def test_a_plain_tree_must_add_up_to_one(tmp_path):
    tree = path_tree(6, -1, 0.5, weighted=False)
    intact = TreeModel.make(-tree.log_totals(), tree.slope, tree.parent, tree.pair)
    assert exchangeable.load(write_model(tmp_path / "model", intact))
    for base in (intact.base + np.log(20), intact.base - 1e-5, intact.base + 1e300):
        broken = TreeModel.make(base, tree.slope, tree.parent, tree.pair)
        with pytest.raises(ModelFileError, match="do not add up to one"):
            exchangeable.load(write_model(tmp_path / "model", broken))


def test_independent_variables_of_networks_must_add_up_to_one(tmp_path):
    slope = rng.normal(size=(6, 2))
    none = np.empty((0, 0))
    base = -np.logaddexp(0, slope).sum(axis=0)
    intact = TreeModel.make(base, slope, none.astype(np.int32), none)
    assert exchangeable.load(write_model(tmp_path / "model", intact))
    for wrong in (base * 0, base + 1e-5, base - 300):
        broken = TreeModel.make(wrong, slope, none.astype(np.int32), none)
        with pytest.raises(ModelFileError, match="do not add up to one"):
            exchangeable.load(write_model(tmp_path / "model", broken))


def test_the_base_of_a_weighted_tree_is_zero(tmp_path):
    tree = path_tree(6, -1, 0.5, weighted=True)
    broken = TreeModel.make(tree.base + 3, tree.slope, tree.parent, tree.pair, tree.log_q)
    with pytest.raises(ModelFileError, match="base holds"):
        exchangeable.load(write_model(tmp_path / "model", broken))


@pytest.mark.parametrize("weights", ["apart", "heavy", "light", "mixed"])
@pytest.mark.parametrize("n", [5, 20, 300])
def test_urns_at_the_limits_are_refused_or_add_up(n, weights, tmp_path):
    log_weights = {
        "apart": np.repeat([-700.0, 700.0], [n // 2, n - n // 2]),
        "heavy": np.full(n, 700.0),
        "light": np.full(n, -700.0),
        "mixed": np.clip(rng.normal(size=n) * 300, -700, 700),
    }[weights]
    made = uniform_urn(log_weights)
    path = write_model(tmp_path / "model", made)
    if not np.isfinite(made.log_totals()).all():
        with pytest.raises(ModelFileError, match="do not add up"):
            exchangeable.load(path)
        return
    model = exchangeable.load(path)
    X = rng.integers(0, 2, size=(50, n)).astype(float)
    assert not np.isnan(model.score_samples(X)).any()
    X[rng.random(X.shape) < 0.5] = np.nan
    assert not np.isnan(model.score_samples(X)).any()
    assert ((model.marginals() >= 0) & (model.marginals() <= 1)).all()
    assert set(np.unique(model.sample(20, random_state=0)[0])) <= {0, 1}


def test_kernels_clamp_indices_made_of_nan():
    model = uniform_urn(np.full(40, np.nan))
    assert set(np.unique(model.draw(_nothing(40), 0, rng))) <= {0, 1}


def _nothing(n):
    return Observed.from_symbols(np.full((3, n), -1, dtype=np.int8))


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '<f8', 'fortran_order': False, 'shape': (10,",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (10L,), }",
        "{'descr': ('<f8', ()), 'fortran_order': False, 'shape': (10,), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (" + "9" * 400 + ",), }",
        "[" * 5000,
        "\x00\x00",
        "((((((",
        "'''",
    ],
)
def test_array_headers_raise_nothing_else(header, tmp_path):
    exchangeable.save(EVM.from_weights(Count(9), np.full(10, 0.1)), tmp_path / "model")
    text = header.encode().ljust(117) + b"\n"
    body = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + b"\0" * 80
    members = {**unpack((tmp_path / "model").read_bytes()), "arrays/weights_.npy": body}
    (tmp_path / "model").write_bytes(pack(members))
    with pytest.raises(ModelFileError):
        exchangeable.load(tmp_path / "model")


@pytest.mark.parametrize(
    "statistic",
    [
        {"class": "Pooled", "n": 0, "k": 0, "tau": 0},
        {"class": "Pooled", "n": 10**400, "k": 10**400, "tau": 0},
        {"class": "BlockCounts", "blocks": [[10**30]]},
        {"class": "BlockCounts", "blocks": [[[]]]},
        {"class": "BlockCounts", "blocks": {"0": 1}},
        {"class": "BlockCounts", "blocks": [[0, 1], 5]},
        {"class": "CategoricalCounts", "n_variables": 10**9, "n_symbols": 10**9},
        {"class": "Nested", "outer": 3, "inner": 4, "groups": 5},
        {"class": "Nested", "outer": {"class": ["Transitions"]}, "inner": [], "groups": []},
        {"class": ["Count"], "n_variables": 9},
        {"class": "Count", "n_variables": 9, "extra": 1},
        {"class": "Count"},
    ],
)
def test_statistics_raise_nothing_else(statistic, tmp_path):
    write_evm(tmp_path / "model", 10, 9, statistic)
    with pytest.raises(ModelFileError):
        exchangeable.load(tmp_path / "model")


def test_mistakes_in_the_code_are_not_hidden(tmp_path, monkeypatch):
    exchangeable.save(EVM.from_weights(Count(2), [0.25, 0.5, 0.25]), tmp_path / "model")
    for error in (AttributeError, NameError, AssertionError, KeyboardInterrupt):

        def fail(*args, error=error):
            raise error("not the file's fault")

        monkeypatch.setattr("exchangeable.persistence.decode_estimator", fail)
        with pytest.raises(error):
            exchangeable.load(tmp_path / "model")


def test_numbers_that_overflow_in_the_header(tmp_path):
    exchangeable.save(EVM.from_weights(Count(2), [0.25, 0.5, 0.25]), tmp_path / "model")
    header, arrays = archive.read(tmp_path / "model")
    text = json.dumps(header).replace('"n_features_in_": 2', '"n_features_in_": 1e999')
    assert "1e999" in text
    with pytest.raises(ModelFileError):
        _write_text(tmp_path / "model", text, arrays)


def _write_text(path, text, arrays):
    members = {f"arrays/{name}.npy": npy(array) for name, array in arrays.items()}
    path.write_bytes(pack({"header.json": text, **members}))
    return exchangeable.load(path)
