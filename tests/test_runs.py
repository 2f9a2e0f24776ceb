"""Runs of the tests themselves: what is skipped is said, and folders do not clash."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SKIPPING = """
from missing_data import skip_without_data


def test_that_needs_data():
    skip_without_data("nltcs.train.data")


def test_that_needs_none():
    pass
"""


def run(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_skipping.py").write_text(SKIPPING)
    kept = {key: value for key, value in os.environ.items() if key not in ("CI", "PYTEST_ADDOPTS")}
    path = os.pathsep.join([str(ROOT / "tests" / "support"), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "missing_data", "-p", "no:cacheprovider", "."],
        cwd=folder,
        env=kept | {"PYTHONPATH": path} | environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("ci", ["", "true"])
def test_a_run_without_data_says_what_was_not_checked(tmp_path: Path, ci: str) -> None:
    done = run(tmp_path, CI=ci, EXCHANGEABLE_DATA=str(tmp_path / "nowhere"))
    assert done.returncode == 0, done.stdout
    assert "The paper's figures were not checked: 1 tests need data" in done.stdout
    assert "1 passed, 1 skipped" in done.stdout


def test_with_data_a_skip_fails_in_ci(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "other.data").touch()
    done = run(tmp_path, CI="true", EXCHANGEABLE_DATA=str(tmp_path / "data"))
    assert done.returncode == 1, done.stdout
    assert "no test may be skipped for want of data" in done.stdout
    assert "1 failed, 1 passed" in done.stdout
    elsewhere = run(tmp_path, EXCHANGEABLE_DATA=str(tmp_path / "data"))
    assert elsewhere.returncode == 0, elsewhere.stdout


def test_folders_with_files_of_the_same_name_are_collected_together() -> None:
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"),
            *(str(ROOT / "tests" / folder) for folder in ("report", "datasets")),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
