"""The list of mutations keeps up with the sources; `make mutate` runs it, which takes minutes."""

import importlib.util
import shlex
from pathlib import Path

SPEC = importlib.util.spec_from_file_location("mutation_run", Path(__file__).with_name("run.py"))
RUN = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(RUN)
MUTATIONS = RUN.load()


def test_every_text_occurs_exactly_once_in_its_file_and_changes():
    assert [mutation.name for mutation in MUTATIONS if not mutation.fits] == []


def test_every_mutation_names_tests_that_exist():
    for mutation in MUTATIONS:
        files = [word for word in shlex.split(mutation.tests) if word.startswith("tests/")]
        assert files, mutation.name
        for file in files:
            assert (RUN.ROOT / file.partition("::")[0]).exists(), mutation.name


def test_there_are_many_and_their_names_differ():
    names = {mutation.name for mutation in MUTATIONS}
    assert len(names) == len(MUTATIONS) >= 100
