"""Fits go on without a cache of compiled kernels, and say so once."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import exchangeable

SCRIPT = """
import warnings
warnings.simplefilter("always")
from exchangeable.partitions import Partition
import numpy as np
for _ in range(2):
    lines = Partition.from_lines(np.array([[0, 1, 0], [0, 0, 1]], dtype=np.int32))
    assert [line.sizes.tolist() for line in lines] == [[2, 1], [2, 1]]
from exchangeable.families.common import forest_kernels
order, rank = np.empty(2, dtype=np.int64), np.empty(3, dtype=np.int64)
forest_kernels.order_nodes(np.array([2, 0]), order, rank)
assert order.tolist() == [0, 1]
"""
SOURCE = Path(exchangeable.__file__).parents[1]


def run(folder):
    return subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env={**os.environ, "NUMBA_CACHE_DIR": str(folder), "PYTHONPATH": str(SOURCE)},
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


@pytest.mark.parametrize("content", [b"", b"garbage", None])
def test_a_damaged_index(content, cache):
    for path in indices(cache):
        path.write_bytes(path.read_bytes()[:-20] if content is None else content)
    done = run(cache)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("compiled kernels cannot be kept") == 1


def test_a_damaged_kernel(cache):
    for path in cache.rglob("*.nbc"):
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    done = run(cache)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("compiled kernels cannot be kept") == 1


def test_a_folder_that_cannot_be_written(tmp_path):
    nowhere = tmp_path / "file"
    nowhere.write_text("not a folder")  # permissions would not stop root
    done = run(nowhere / "cache")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("compiled kernels cannot be kept") == 1


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
