"""Run the Python blocks of README.md and the pages in docs as tests."""

import os

from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser

# Tests compile much and compute little with JAX.
os.environ.setdefault(
    "XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
)

collect_ignore = ["docs/figures.py", "docs/conf.py"]  # scripts
collect_ignore_glob = ["docs/_build/*", "docs/auto_examples/*"]  # what `make docs` has made

pytest_collect_file = Sybil(
    parsers=[PythonCodeBlockParser(), SkipParser()],
    patterns=["README.md", "docs/*.md", "docs/guide/*.md"],
).pytest()
