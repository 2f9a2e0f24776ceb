"""Fits go on without a cache of compiled kernels, and say so once; a damaged one is mended."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import exchangeable

SCRIPT = """
import sys
import warnings
warnings.simplefilter("always")
from exchangeable.families.common import forest_kernels
import numpy as np
print("imported", file=sys.stderr, flush=True)
order, rank = np.empty(2, dtype=np.int64), np.empty(3, dtype=np.int64)
forest_kernels.order_nodes(np.array([2, 0]), order, rank)
assert order.tolist() == [0, 1]
gains = np.empty((2, 2))
forest_kernels.pair_gains(4.0, np.array([2.0, 2.0]), np.full((2, 2), 2.0), 0.0, gains)
assert abs(gains[0, 1] - 4 * np.log(2)) < 1e-12
"""
IMPORT = """
import os
import sys
FORBIDDEN = {"os.mkdir", "os.remove", "os.rename", "os.rmdir", "tempfile.mkdtemp",
             "tempfile.mkstemp", "os.truncate"}
written = []
def watch(event, arguments):
    writes = event == "open" and (arguments[2] or 0) & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
    if event in FORBIDDEN or writes:
        written.append((event, arguments))
sys.addaudithook(watch)
from exchangeable import *
from exchangeable import __version__, cli, datasets
assert not written, written
"""
SOURCE = Path(exchangeable.__file__).parents[1]


def run(folder, script=SCRIPT):
    kept = {**os.environ, "NUMBA_CACHE_DIR": str(folder), "PYTHONPATH": str(SOURCE)}
    return subprocess.run(
        [sys.executable, "-B", "-c", script],
        env=kept,
        capture_output=True,
        text=True,
        check=False,
    )


def indices(folder):
    return sorted(folder.rglob("*.nbi"))


@pytest.fixture(scope="module")
def intact(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cache")
    done = run(folder)
    assert done.returncode == 0, done.stderr
    assert "cannot be kept" not in done.stderr
    assert indices(folder)
    return folder


@pytest.fixture
def cache(intact, tmp_path):
    return Path(shutil.copytree(intact, tmp_path / "cache"))


def is_written_anew(cache):
    """Whether a process that finds a damaged cache mends it, and the next one only reads it."""
    done = run(cache)
    assert done.returncode == 0, done.stderr
    assert "compiled kernels cannot be kept" not in done.stderr
    before = {path: path.stat().st_mtime_ns for path in cache.rglob("*.nb?")}
    assert run(cache).returncode == 0
    return before == {path: path.stat().st_mtime_ns for path in cache.rglob("*.nb?")}


@pytest.mark.parametrize("content", [b"", b"garbage", None])
def test_a_damaged_index(content, cache):
    for path in indices(cache):
        path.write_bytes(path.read_bytes()[:-20] if content is None else content)
    assert is_written_anew(cache)


def test_a_damaged_kernel(cache):
    for path in cache.rglob("*.nbc"):
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    assert is_written_anew(cache)


def test_a_folder_that_cannot_be_written(tmp_path):
    nowhere = tmp_path / "file"
    nowhere.write_text("not a folder")  # permissions would not stop root
    done = run(nowhere / "cache")
    assert done.returncode == 0, done.stderr
    before, after = done.stderr.split("imported")
    assert "compiled kernels cannot be kept" not in before
    assert after.count("compiled kernels cannot be kept") == 1
    assert "set NUMBA_CACHE_DIR to a folder" in after


def test_an_import_writes_nothing(tmp_path):
    done = run(tmp_path / "cache", IMPORT)
    assert done.returncode == 0, done.stderr
    assert not list(tmp_path.iterdir())


def test_a_folder_that_becomes_full(cache):
    for path in list(cache.rglob("*.nb?")):
        path.unlink()
        path.mkdir()  # neither an index nor a kernel can be written
    done = run(cache)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("compiled kernels cannot be kept") == 1


@pytest.mark.skipif(os.getuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission(tmp_path):
    folder = tmp_path / "cache"
    folder.mkdir(mode=0o500)
    done = run(folder)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("compiled kernels cannot be kept") == 1
