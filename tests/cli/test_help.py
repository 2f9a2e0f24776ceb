"""The list of commands needs none of them."""

import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from exchangeable.cli import COMMANDS, main

SCRIPT = """
import sys
from exchangeable.cli import main
try:
    main(["--help"])
finally:
    heavy = {"numpy", "scipy", "sklearn", "numba", "pandas", "rich"} & set(sys.modules)
    assert not heavy, heavy
"""


def test_help_imports_nothing_heavy():
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    for name, (_, text) in COMMANDS.items():
        assert f"  {name} " in done.stdout
        assert text in done.stdout, "the list breaks no line"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_where_the_list_says(name):
    command = main.get_command(click.Context(main), name)
    assert isinstance(command, click.Command)
    assert command.name == name
    assert command.help


def test_an_unknown_command():
    result = CliRunner().invoke(main, ["fits"])
    assert result.exit_code == 2
    assert "No such command 'fits'" in result.output
