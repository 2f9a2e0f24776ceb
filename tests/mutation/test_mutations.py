"""The list of mutations keeps up with the sources; `run.py` runs it, which takes minutes."""

import importlib.util
import shlex
from pathlib import Path

import pytest

SPEC = importlib.util.spec_from_file_location("mutation_run", Path(__file__).with_name("run.py"))
RUN = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(RUN)
MUTATIONS = RUN.load()


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_its_text_occurs_once_and_its_tests_exist(mutation):
    assert mutation.source.read_text().count(mutation.old) == 1
    assert mutation.new != mutation.old
    compile(mutation.source.read_text().replace(mutation.old, mutation.new), mutation.file, "exec")
    files = [word for word in shlex.split(mutation.tests) if word.startswith("tests/")]
    assert files
    for file in files:
        assert (RUN.ROOT / file.partition("::")[0]).exists()


def test_names_are_different():
    names = [mutation.name for mutation in MUTATIONS]
    assert len(set(names)) == len(names) >= 100
