"""Run the Python blocks of README.md and the pages in docs as tests."""

import gc
import os
import signal

import pytest
from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser

# Tests compile much and compute little with JAX.
os.environ.setdefault(
    "XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
)
# Workers of pytest have one core each; idle threads of BLAS would take part of the others'.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# A shell that runs the tests in the background makes them ignore Ctrl-C, which some press.
signal.signal(signal.SIGINT, signal.default_int_handler)

collect_ignore = ["docs/figures.py", "docs/conf.py"]  # scripts
collect_ignore_glob = ["docs/_build/*", "docs/auto_examples/*"]  # what `make docs` has made

pytest_collect_file = Sybil(
    parsers=[PythonCodeBlockParser(), SkipParser()],
    patterns=["README.md", "docs/*.md", "docs/guide/*.md"],
).pytest()


def pytest_collection_finish(session: pytest.Session) -> None:
    """Leave what has been imported and collected to no later collection of garbage."""
    gc.collect()
    gc.freeze()
