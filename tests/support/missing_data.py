"""Tests that need real data: said at the end of a run if they were skipped, refused in CI.

The paper's figures are checked on real data sets. A run without them must not look like one that
has checked everything.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pooch
import pytest

MARK = "(EXCHANGEABLE_DATA names the folder)"
"""Part of the reason of every test that is skipped for want of data."""


def data_folder() -> Path:
    return Path(os.environ.get("EXCHANGEABLE_DATA") or pooch.os_cache("exchangeable"))


def skip_without_data(what: str) -> None:
    """Skip a test that needs real data, in the way that the summary of a run counts."""
    pytest.skip(f"{what} is not in {data_folder()} {MARK}")


def _must_not_skip() -> bool:
    """Whether this is CI, with a folder of data."""
    folder = os.environ.get("EXCHANGEABLE_DATA")
    return os.environ.get("CI") == "true" and bool(folder) and any(Path(folder or "").glob("*"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: Any, call: Any) -> Iterator[None]:
    report: Any = yield
    if report.skipped and MARK in str(report.longrepr) and _must_not_skip():
        report.outcome = "failed"
        report.longrepr = f"with CI=true no test may be skipped for want of data: {report.longrepr}"
    return report


def pytest_terminal_summary(terminalreporter: Any) -> None:
    skipped = terminalreporter.stats.get("skipped", [])
    count = sum(MARK in str(report.longrepr) for report in skipped)
    if count:
        terminalreporter.write_line(
            f"The paper's figures were not checked: {count} tests need data that is not in "
            f"{data_folder()}; set EXCHANGEABLE_DATA to the folder that holds it.",
            yellow=True,
        )
