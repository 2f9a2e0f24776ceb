"""Mutation testing: put small bugs into a copy of the sources, one at a time, and run tests.

The bugs are listed in mutations.toml. A bug is *killed* if one of the tests named beside it fails,
and has *survived* if all of them pass; an entry is *broken* if its text does not occur exactly once
in its file, or its tests cannot be run. Run by hand (`make mutate`), not by the test suite.

    python tests/mutation/run.py [NAME OR NUMBER ...] [--jobs N] [--list]
"""

import argparse
import multiprocessing
import os
import shlex
import shutil
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any

# Loaded once: every run of tests is a fork, which finds them there, unlike the library itself.
import numba
import pytest
import scipy.stats  # noqa: F401
import sklearn.mixture  # noqa: F401

ROOT = Path(__file__).parents[2]
SECONDS = 300
"""A bug that makes tests run longer than this, which take some seconds, is killed too."""
PASSED, FAILED = 0, 1
COMPILED = ("njit", "runtime.kernels.cache", "runtime.kernels.loops")
"""What a file with kernels, or with functions that kernels call, mentions."""


@dataclass(frozen=True)
class Mutation:
    """One small bug.

    Attributes
    ----------
    name : str
        What it is called on the command line.
    file : str
        The file it is in, below src/exchangeable.
    old, new : str
        The text that is replaced, which occurs once in the file, and what it is replaced by.
    breaks : str
        What is wrong then.
    tests : str
        Arguments of pytest: the tests that ought to fail.
    """

    name: str
    file: str
    old: str
    new: str
    breaks: str
    tests: str

    @property
    def source(self) -> Path:
        """The file it is in."""
        return ROOT / "src" / "exchangeable" / self.file

    @property
    def fits(self) -> bool:
        """Whether its text occurs exactly once in its file, and changes."""
        return (
            self.source.is_file()
            and self.source.read_text().count(self.old) == 1
            and self.old != self.new
        )

    @property
    def compiled(self) -> bool:
        """Whether tests may use compiled kernels: not if the bug is in a file that has some."""
        text = self.source.read_text()
        return not any(word in text for word in COMPILED)


def load() -> list[Mutation]:
    """Return all mutations."""
    with (Path(__file__).parent / "mutations.toml").open("rb") as file:
        return [Mutation(**entry) for entry in tomllib.load(file)["mutation"]]


class FirstFailure:
    """Tells a runner which test fails first."""

    def __init__(self) -> None:
        self.name = ""

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Keep the name of the first test that fails."""
        if report.failed and not self.name:
            self.name = report.nodeid


def _run_tests(package: Path, arguments: list[str], compiled: bool, answer: Any) -> None:
    """Run tests with a copy of the sources, in a process of their own."""
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    os.chdir(ROOT)
    sys.path.insert(0, str(package))
    sys.dont_write_bytecode = True  # two bugs may be as long as each other, and a moment apart
    numba.config.DISABLE_JIT = not compiled
    os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = str(package / ".hypothesis")
    failure = FirstFailure()
    options = ["-x", "-q", "-p", "no:cacheprovider", "--hypothesis-seed=0", *arguments]
    answer.send((int(pytest.main(options, plugins=[failure])), failure.name))


def run_tests(
    package: Path, tests: str, compiled: bool, seconds: float = SECONDS
) -> tuple[int, str]:
    """Return the exit status of pytest, and the first test that failed."""
    fork = multiprocessing.get_context("fork")
    ours, theirs = fork.Pipe(duplex=False)
    arguments = (package, shlex.split(tests), compiled, theirs)
    process = fork.Process(target=_run_tests, args=arguments)
    process.start()
    theirs.close()
    try:
        return ours.recv() if ours.poll(seconds) else (FAILED, "timeout")
    except EOFError:
        return FAILED, "crash"
    finally:
        process.kill()
        process.join()


@contextmanager
def applied(mutation: Mutation, package: Path) -> Iterator[None]:
    """Put a bug into a copy of the sources, and take it out again."""
    path = package / "exchangeable" / mutation.file
    before = path.stat()
    text = path.read_text()
    path.write_text(text.replace(mutation.old, mutation.new))
    try:
        yield
    finally:
        path.write_text(text)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))  # compiled kernels stay valid


def outcome(mutation: Mutation, package: Path) -> tuple[str, str]:
    """Return whether a mutation is killed, has survived or is broken, and by which test."""
    if not mutation.fits:
        return "broken", "its text does not occur exactly once in its file"
    with applied(mutation, package):
        status, test = run_tests(package, mutation.tests, mutation.compiled)
    if status == PASSED:
        return "survived", mutation.tests
    if status == FAILED and test:
        return "killed", test
    return "broken", f"no test fails, and pytest ends with status {status}"


def chosen(mutations: list[Mutation], wanted: list[str]) -> list[tuple[int, Mutation]]:
    """Return the mutations with given names, parts of names or numbers, and their numbers."""
    numbered = list(enumerate(mutations, start=1))
    if not wanted:
        return numbered
    return [
        (number, mutation)
        for number, mutation in numbered
        if any(
            want == str(number)
            if want.isdecimal()
            else want in mutation.name or want in mutation.file
            for want in wanted
        )
    ]


def failing_anyway(kills: set[tuple[str, bool]], package: Path) -> list[str]:
    """Return which of the tests that failed under a bug, compiled or not, fail without one too."""
    failing = []
    for compiled in (False, True):
        tests = sorted(test for test, with_compiler in kills if with_compiler is compiled)
        if tests:
            seconds = SECONDS * len(tests)
            status, test = run_tests(package, shlex.join(tests), compiled, seconds)
            if status != PASSED:
                failing.append(test or f"status {status} of pytest")
    return failing


def run(mutations: list[tuple[int, Mutation]], n_jobs: int) -> Counter[str]:
    """Run mutations, print what becomes of each, and return how many became what."""
    began = time.perf_counter()
    found: Counter[str] = Counter()
    by_file: Counter[str] = Counter()
    kills: set[tuple[str, bool]] = set()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(n_jobs) as executor:
        free: SimpleQueue[Path] = SimpleQueue()
        for job in range(n_jobs):
            free.put(Path(shutil.copytree(ROOT / "src", Path(folder, str(job)))))

        def one(numbered: tuple[int, Mutation]) -> tuple[int, Mutation, str, str, float]:
            package, start = free.get(), time.perf_counter()
            try:
                result = outcome(numbered[1], package)
            finally:
                free.put(package)
            return *numbered, *result, time.perf_counter() - start

        for number, mutation, what, test, seconds in executor.map(one, mutations):
            print(f"{number:4} {what:8} {seconds:5.1f} s  {mutation.name}: {test}", flush=True)
            found[what] += 1
            if what == "killed":
                by_file[test.partition("::")[0]] += 1
                if "::" in test:
                    kills.add((test, mutation.compiled))
        failing = failing_anyway(kills, free.get())
    for test in failing:
        found["broken"] += 1
        print(f"{test} fails without any bug, and kills whatever there is")
    print("\nkilled by")
    for file, count in by_file.most_common():
        print(f"{count:6} {file}")
    print(
        "in all:", ", ".join(f"{found[what]} {what}" for what in ("killed", "survived", "broken"))
    )
    print(f"{time.perf_counter() - began:.0f} seconds")
    return found


def main() -> int:
    """Run the mutations that the command line names; 1 if one has survived or is broken."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("wanted", nargs="*", help="numbers, parts of names or of files; else all")
    parser.add_argument("--jobs", type=int, default=1, help="mutations tried at a time")
    parser.add_argument("--list", action="store_true", help="print the mutations, run nothing")
    options = parser.parse_args()
    mutations = chosen(load(), options.wanted)
    if options.list:
        for number, mutation in mutations:
            print(f"{number:4} {mutation.file}: {mutation.name}: {mutation.breaks}")
        return 0
    found = run(mutations, options.jobs)
    return 0 if found["killed"] == found.total() > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
