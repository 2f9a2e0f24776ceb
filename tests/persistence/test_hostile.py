"""Files that lie: each is refused by a clear error, and none is ever executed."""

import fnmatch
import io
import pickle
import random
import struct
import zipfile
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import exchangeable
from damaged_files import npy, pack, unpack, with_header
from exchangeable import ModelFileError
from saved_models import MODELS, TABLE_MODELS, answers

KINDS = (
    "classifier words",
    "mixture urns in blocks",
    "mixture trees over counts",
    "mixture weighted trees",
    "mixture hidden in blocks",
    "density joined",
    "imputer",
    "Rasch",
    "mixed Rasch",
    "count",
)


@pytest.fixture(scope="module")
def intact(tmp_path_factory):
    folder = tmp_path_factory.mktemp("intact")
    contents = {}
    for name in (*KINDS, "mixture with statistics", "table"):
        exchangeable.save({**MODELS, **TABLE_MODELS}[name](), folder / "model")
        contents[name] = (folder / "model").read_bytes()
    return contents


def load(data, folder):
    path = folder / "hostile"
    path.write_bytes(data)
    return exchangeable.load(path)


def refused(data, folder, match):
    with pytest.raises(ModelFileError, match=match):
        load(data, folder)


def changed(data, member, content):
    return pack({**unpack(data), member: content})


def without_first_block(labels):
    """Return labels whose first block has become part of the last."""
    return np.where(labels == 0, labels.max(axis=1, keepdims=True), labels)


class Bomb:
    """What an attacker would like to have unpickled."""

    def __reduce__(self):
        return pytest.fail, ("the file was executed",)


@pytest.mark.parametrize("name", KINDS)
def test_truncated_anywhere(name, intact, tmp_path):
    data = intact[name]
    cuts = sorted({0, 1, 4, 30, len(data) - 1, *random.Random(0).sample(range(len(data)), 60)})
    for cut in cuts:
        refused(data[:cut], tmp_path, "hostile")


def test_other_files(tmp_path):
    refused(b"", tmp_path, "not a model file")
    refused(b"a,b\n1,0\n", tmp_path, "not a model file")
    refused(pickle.dumps(Bomb()), tmp_path, "not a model file")
    refused(pack({"header.json": "{}"}), tmp_path, "not a model file of exchangeable")
    refused(pack({"data.txt": "x"}), tmp_path, r"without header\.json")
    refused(pack({"header.json": "[" * 100_000}), tmp_path, "cannot be read")
    refused(pack({"header.json": '{"version": NaN}'}), tmp_path, "NaN is not JSON")
    refused(pack({"header.json": "9" * 10_000}), tmp_path, "cannot be read")
    refused(pack({"header.json": b"\xff\xfe"}), tmp_path, "cannot be read")
    with pytest.raises(FileNotFoundError):
        exchangeable.load(tmp_path / "none")


def test_zip_bombs(intact, tmp_path):
    members = unpack(intact["count"])
    refused(pack(members, zipfile.ZIP_DEFLATED), tmp_path, "compressed")
    huge = {**members, "arrays/weights_.npy": npy(np.zeros(10**7))}
    refused(pack(huge, zipfile.ZIP_DEFLATED), tmp_path, "compressed")
    many = {**members, **{f"arrays/x{i}.npy": b"" for i in range(10_001)}}
    refused(pack(many), tmp_path, "more than a model has")
    # Members that overlap: the directory lists the same bytes many times over.
    data = bytearray(intact["classifier words"])
    at = data.find(b"PK\x01\x02")
    while at >= 0:
        size = struct.unpack_from("<I", data, at + 20)[0]
        struct.pack_into("<II", data, at + 20, size + 10**6, size + 10**6)
        at = data.find(b"PK\x01\x02", at + 4)
    refused(bytes(data), tmp_path, "hostile")


@pytest.mark.parametrize("name", ["../../evil.npy", "/etc/passwd", "arrays/../x.npy", "code.py"])
def test_path_traversal(name, intact, tmp_path):
    refused(pack({**unpack(intact["count"]), name: b"x"}), tmp_path, "no part of a model")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["hostile"]


def test_embedded_pickle(intact, tmp_path):
    objects = np.array([Bomb()], dtype=object)
    data = changed(intact["count"], "arrays/weights_.npy", npy(objects, allow_pickle=True))
    refused(data, tmp_path, "never objects")
    refused(changed(intact["count"], "arrays/weights_.npy", pickle.dumps(Bomb())), tmp_path, "read")
    structured = np.zeros(3, dtype=[("a", "f8"), ("b", "O")])
    data = changed(intact["count"], "arrays/weights_.npy", npy(structured, allow_pickle=True))
    refused(data, tmp_path, "never objects")


@pytest.mark.parametrize("kind", ["<U4", "S4", "<c16", "<M8[s]", ">f8"])
def test_arrays_of_anything_but_plain_numbers(kind, intact, tmp_path):
    data = changed(intact["count"], "arrays/weights_.npy", npy(np.zeros(3, dtype=kind)))
    refused(data, tmp_path, "plain numbers only")


def test_shape_that_does_not_fit_the_bytes(intact, tmp_path):
    for shape in ("(99999999999,)", "(10, 10)", "(-1,)", "(True,)", "()"):
        header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
        body = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + b"\0" * 80
        data = changed(intact["count"], "arrays/weights_.npy", body)
        refused(data, tmp_path, "weights_")


@pytest.mark.parametrize(
    ("name", "member", "change", "match"),
    [
        ("classifier words", "model.labels", lambda a: a + 100, "out of range"),
        ("classifier words", "model.labels", lambda a: a - 1, "out of range"),
        ("classifier words", "model.labels", lambda a: np.full_like(a, 8), "do not go with tables"),
        ("classifier words", "model.labels", without_first_block, "without variables"),
        ("classifier words", "model.labels", lambda a: a.astype(np.int64), "labels are int64"),
        ("classifier words", "model.labels", lambda a: a[:, :-1], "."),
        ("classifier words", "model.labels", lambda a: a[:0], "labels are"),
        ("classifier words", "model.tables", lambda a: a * np.nan, "which cannot be"),
        ("classifier words", "model.tables", lambda a: a + 1, "."),
        ("classifier words", "model.tables", lambda a: a - 1, "do not add up"),
        ("classifier words", "model.tables", lambda a: a[1:], "do not go with tables"),
        ("classifier words", "model.histograms", lambda a: -a - 1, "which cannot be"),
        ("classifier words", "model.totals", lambda a: a * np.inf, "which cannot be"),
        ("classifier words", "class_log_prior_", lambda a: a * 2, "add up to"),
        ("classifier words", "class_count_", lambda a: a[1:], "shape"),
        ("Rasch", "items.thresholds", lambda a: a + 1e4, "which cannot be"),
        ("Rasch", "items.thresholds", lambda a: a[1:], "shape"),
        ("Rasch", "items.highest", lambda a: a - 1, "which cannot be"),
        ("Rasch", "items.highest", lambda a: a[1:], "highest is"),
        ("Rasch", "items.covariance", lambda a: a[1:], "shape"),
        ("Rasch", "items.patterns0", lambda a: a[:, 1:], "patterns0 is"),
        ("Rasch", "items.begins0", lambda a: a[::-1].copy(), "where the scores"),
        ("Rasch", "items.begins0", lambda a: np.roll(a, 1) * (a > 0) + a[-1] * (a == a[-1]), "."),
        ("Rasch", "items.scores0", lambda a: a + 100, "out of range"),
        ("Rasch", "items.scores0", lambda a: a * 0, "do not rise"),
        ("Rasch", "items.weights0", lambda a: -a - 1, "which cannot be"),
        ("mixed Rasch", "items.in_mixture", lambda a: ~a, "not one of its items"),
        ("mixed Rasch", "items.in_mixture", lambda a: a[1:], "in_mixture is"),
        ("mixture urns in blocks", "model.log_weights", lambda a: a + np.inf, "which cannot be"),
        ("mixture urns in blocks", "model.log_weights", lambda a: a.T, "shape"),
        ("mixture urns in blocks", "model.log_q", lambda a: a * 1.1, "do not add up"),
        ("mixture urns in blocks", "weights_", lambda a: -a, "which cannot be"),
        ("mixture weighted trees", "model.parent", lambda a: a * 0, "cycle"),
        ("mixture weighted trees", "model.parent", lambda a: a + 100, "out of range"),
        ("mixture weighted trees", "model.parent", lambda a: a[:, :1], "parent is"),
        ("mixture trees over counts", "model.bins", lambda a: a + 1, "numbered from 0"),
        ("mixture trees over counts", "model.bins", lambda a: 2 * a, "stretches of counts"),
        ("mixture trees over counts", "model.bins", lambda a: a[1:], "bins is int64 of shape"),
        ("mixture trees over counts", "model.parent", lambda a: 1 - a, "out of range"),
        ("mixture trees over counts", "model.parent", lambda a: (a > 0).astype(int), "a cycle"),
        ("mixture trees over counts", "model.log_ratio", lambda a: a * 1.1, "do not add up"),
        ("mixture trees over counts", "model.log_ratio", lambda a: a * np.nan, "which cannot be"),
        ("mixture trees over counts", "model.log_ratio", lambda a: a[1:], "shape"),
        ("mixture weighted trees", "model.slope", lambda a: a * np.nan, "which cannot be"),
        ("mixture weighted trees", "model.slope", lambda a: a[0], "slope has shape"),
        ("mixture weighted trees", "model.log_q", lambda a: a[:-1], "shape"),
        ("mixture hidden in blocks", "model.0.labels", lambda a: a + 1, "."),
        ("mixture hidden in blocks", "model.0.labels", lambda a: a[:, 1:], "."),
        ("mixture hidden in blocks", "model.0.parent", lambda a: a * 0, "cycle"),
        ("mixture hidden in blocks", "model.0.parent", lambda a: a * 0 + 3, "one root"),
        ("mixture hidden in blocks", "model.0.parent", lambda a: a + 100, "out of range"),
        ("mixture hidden in blocks", "model.0.parent", lambda a: a[:1], "parent is"),
        ("mixture hidden in blocks", "model.1.log_q", lambda a: a * 1.1, "do not add up"),
        ("mixture hidden in blocks", "model.1.log_q", lambda a: a[:, 1:], "."),
        ("mixture hidden in blocks", "model.1.edges", lambda a: a * 0.9, "do not add up"),
        ("mixture hidden in blocks", "model.1.edges", lambda a: a * np.nan, "which cannot be"),
        ("mixture hidden in blocks", "model.1.states", lambda a: a + 9, "states of the root"),
        ("mixture hidden in blocks", "model.1.states", lambda a: a[::-1], "states of the root"),
        ("mixture hidden in blocks", "model.1.states", lambda a: a[1:], "."),
        ("mixture with statistics", "model.log_q_0", lambda a: a * 1.1, "do not add up"),
        ("table", "model.part0.log_shares", lambda a: a * 1.1, "do not add up"),
        ("density joined", "model.*.slope", lambda a: a[:-1], "."),
        ("count", "weights_", lambda a: a[:-1], "."),
        ("count", "weights_", lambda a: a.astype(np.float32), "float32"),
    ],
)
def test_arrays_that_do_not_make_sense(name, member, change, match, intact, tmp_path):
    members = unpack(intact[name])
    key = fnmatch.filter(members, f"arrays/{member}.npy")[0]
    with np.errstate(invalid="ignore"):
        array = change(np.load(io.BytesIO(members[key])))
    refused(changed(intact[name], key, npy(array)), tmp_path, match)


def _nested(depth):
    model = {"kind": "joined", "parts": []}
    for _ in range(depth):
        model = {"kind": "joined", "parts": [model]}
    return model


def _set(*path):
    *way, last, value = path

    def change(header):
        place = header
        for key in way:
            place = place[key]
        place[last] = value

    return change


@pytest.mark.parametrize(
    ("name", "change", "match"),
    [
        ("count", _set("version", 3), "upgrade exchangeable"),
        ("count", _set("version", 1), "from before parameters were renamed; fit the model again"),
        ("count", _set("version", True), "not a model file"),
        ("count", _set("version", 0), "fit the model again"),
        ("count", _set("estimator", "class", "Popen"), "not an estimator"),
        ("count", _set("estimator", "class", ["EVM"]), "."),
        ("count", _set("estimator", "parameters", {"nonsense": 1}), "written by another version"),
        ("count", _set("estimator", "attributes", "__class__", "x"), "not one of a fitted"),
        ("count", _set("estimator", "attributes", "fit", 1), "not one of a fitted"),
        ("count", _set("estimator", "attributes", "n_features_in_", 10**9), "variables"),
        ("count", _set("preprocessing", [1]), "not an object"),
        ("density joined", _set("estimator", "model", "parts", []), "has no parts"),
        (
            "density joined",
            lambda header: header["estimator"].update(
                model={"kind": "joined", "parts": [header["estimator"]["model"]]}
            ),
            "cannot be joined",
        ),
        (
            "density joined",
            lambda header: header["estimator"].update(model=_nested(300)),
            "cannot be joined",
        ),
        (
            "count",
            _set("estimator", "parameters", "statistic", "statistic", "n_variables", 10**9),
            "do not go with",
        ),
        (
            "count",
            _set("estimator", "parameters", "statistic", {"statistic": {"class": "FiniteState"}}),
            "unknown here",
        ),
        (
            "count",
            _set(
                "estimator",
                "parameters",
                "statistic",
                {"statistic": {"class": "Pooled", "n": 10**6, "k": 10**6, "tau": 0}},
            ),
            "do not go with",
        ),
        (
            "count",
            _set("estimator", "parameters", "statistic", {"run": "rm"}),
            "stands for nothing",
        ),
        ("count", _set("estimator", "attributes", "weights_", {"array": "../x"}), "lacks"),
        ("classifier words", _set("estimator", "attributes", "classes_", "objects", []), "shape"),
        (
            "classifier words",
            _set("estimator", "attributes", "classes_", "dtype", "U999999999"),
            "unknown type",
        ),
        ("classifier words", _set("estimator", "model", "kind", "pickle"), "not a model"),
        ("classifier words", lambda h: h["estimator"].pop("model"), "lacks the model"),
        ("classifier words", lambda h: h["estimator"]["attributes"].pop("classes_"), "lacks"),
        ("count", _set("estimator", "parameters", "statistic", 3), "no statistic"),
        ("imputer", _set("estimator", "attributes", "model_", 3), "cannot fill holes"),
        (
            "imputer",
            lambda h: h["estimator"]["attributes"]["model_"]["estimator"].update(
                attributes={}, model={}
            ),
            "not a model",
        ),
        (
            "imputer",
            lambda h: [
                h["estimator"]["attributes"]["model_"]["estimator"].update(attributes={}),
                h["estimator"]["attributes"]["model_"]["estimator"].pop("model"),
            ],
            "cannot fill holes",
        ),
    ],
)
def test_headers_that_do_not_make_sense(name, change, match, intact, tmp_path):
    refused(with_header(intact[name], change), tmp_path, match)


@pytest.mark.filterwarnings("ignore:Generating overly large repr")  # where an example fails
@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    name=st.sampled_from(KINDS),
    seed=st.integers(0, 2**32 - 1),
    kind=st.sampled_from(["bytes", "array", "json"]),
)
def test_fuzzed_files_are_refused_or_answer(name, seed, kind, intact, tmp_path):
    dice = random.Random(seed)
    data = {"bytes": _flip, "array": _spoil_array, "json": _spoil_header}[kind](intact[name], dice)
    refusals = ModelFileError
    if kind == "json":  # a parameter may be one that predicting refuses, a column may have a name
        refusals = (ValueError, TypeError, AttributeError, UserWarning)
    try:
        model = load(data, tmp_path)
    except ModelFileError as error:
        problem = str(error)
    else:
        with suppress(refusals):
            answers(model)
        return
    assert "hostile" in problem
    assert len(problem) < 500


def _flip(data, dice):
    spoiled = bytearray(data)
    for _ in range(dice.randint(1, 4)):
        spoiled[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
    return bytes(spoiled)


def _spoil_array(data, dice):
    members = unpack(data)
    arrays = {key: np.load(io.BytesIO(members[key])) for key in members if key != "header.json"}
    name = dice.choice([key for key, array in arrays.items() if array.size])
    array = arrays[name].copy()
    flat = array.view(np.uint8).reshape(-1)
    for _ in range(dice.randint(1, 4)):
        flat[dice.randrange(flat.size)] ^= 1 << dice.randrange(8)
    return pack({**members, name: npy(array)})


def _spoil_header(data, dice):
    def change(header):
        places = []

        def walk(node):
            for key in list(node) if isinstance(node, dict) else range(len(node)):
                places.append((node, key))
                if isinstance(node[key], dict | list):
                    walk(node[key])

        walk(header)
        node, key = dice.choice(places)
        values = (None, -1, 10**18, 1e308, "x", [], {}, {"array": "weights_"}, True, [[]], "\ud800")
        node[key] = dice.choice(values)

    return with_header(data, change)
