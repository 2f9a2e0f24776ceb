"""Run the Python blocks of README.md and the pages in docs as tests."""

from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser

collect_ignore = ["docs/figures.py", "docs/conf.py"]  # scripts
collect_ignore_glob = ["docs/_build/*", "docs/auto_examples/*"]  # what `make docs` has made

pytest_collect_file = Sybil(
    parsers=[PythonCodeBlockParser(), SkipParser()],
    patterns=["README.md", "docs/*.md", "docs/guide/*.md"],
).pytest()
