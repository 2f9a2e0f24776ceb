"""The commands in README and documentation run as they stand there."""

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from exchangeable.cli import main

ROOT = Path(__file__).parents[2]
PAGES = ("README.md", "docs/command_line.md", "docs/guide/text.md")
COMMAND = re.compile(
    r"^ *exchangeable ((?:classes|rasch|fit|predict|score|query|inspect|info|impute|sample) .*)$",
    re.M,
)


@pytest.mark.parametrize("page", PAGES)
def test_commands_run_literally(page, tmp_path, monkeypatch):
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    commands = COMMAND.findall((ROOT / page).read_text(encoding="utf-8"))
    assert commands
    for line in commands:
        result = CliRunner().invoke(main, shlex.split(line, comments=True))
        assert result.exit_code == 0, f"{line}\n{result.output}"


def test_without_pandas_there_is_a_hint(monkeypatch, tmp_path):
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    path = tmp_path / "t.csv"
    path.write_text("a\n1\n")
    result = CliRunner().invoke(main, ["fit", str(path), "-o", "m"])
    assert result.exit_code == 1
    assert "pip install 'exchangeable[table]'" in result.stderr
