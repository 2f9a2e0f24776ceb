"""The tour runs as a user would start it."""

import subprocess
import sys
from pathlib import Path

from exchangeable import __version__

COMMAND = str(Path(sys.executable).with_name("exchangeable"))


def test_demo_runs_and_ends_with_a_page(tmp_path):
    done = subprocess.run(
        [COMMAND, "demo"], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert "exchangeable block" in done.stdout
    path = done.stdout.splitlines()[-1]
    assert path == str(tmp_path / "demo-report.html")
    assert "Handwritten digits" in Path(path).read_text(encoding="utf-8")


def test_version_and_unknown_commands():
    done = subprocess.run([COMMAND, "--version"], capture_output=True, text=True, check=True)
    assert __version__ in done.stdout
    done = subprocess.run([COMMAND, "nonsense"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "No such command 'nonsense'" in done.stderr
