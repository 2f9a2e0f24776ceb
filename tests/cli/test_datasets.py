"""`exchangeable datasets` as a user runs it."""

import os
import subprocess
import sys

import pytest

from exchangeable.datasets import list_datasets


@pytest.fixture
def run(tmp_path):
    def command(*arguments, **environment):
        settings = {
            "EXCHANGEABLE_DATA": str(tmp_path / "data"),
            "XDG_CACHE_HOME": str(tmp_path / "cache"),
            **environment,
        }
        return subprocess.run(
            [sys.executable, "-c", "from exchangeable.cli import main; main()", *arguments],
            env={**os.environ, **settings},
            capture_output=True,
            text=True,
            check=False,
        )

    return command


def test_list_is_what_the_bare_command_shows(run):
    result = run("datasets", "list")
    assert result.returncode == 0, result.stderr
    for entry in list_datasets():
        assert entry.name in result.stdout
    assert "16,181 / 2,157 / 3,236" in result.stdout
    assert run("datasets").stdout == result.stdout


def test_path(run, tmp_path):
    assert run("datasets", "path").stdout.strip() == str(tmp_path / "data")


def test_fetch_with_progress(run, real_data, loopback, tmp_path):
    names = [f"density/nltcs.{split}.data.gz" for split in ("ts", "valid", "test")]
    folder = real_data(*names)
    for name in names:
        loopback.files[f"/{name}"] = (folder / name).read_bytes()
    result = run("datasets", "fetch", "nltcs", EXCHANGEABLE_DATA_URL=loopback.address)
    assert result.returncode == 0, result.stderr
    assert str(tmp_path / "data" / "density" / "nltcs.ts.data.gz") in result.stdout
    assert "nltcs.test.data.gz" in result.stderr
    assert "9.4/9.4 kB" in result.stderr
    listed = run("datasets", "list").stdout
    assert [line for line in listed.splitlines() if "nltcs" in line and "yes" in line]


def test_fetch_altered_file(run, loopback):
    loopback.files["/density/nltcs.ts.data.gz"] = b"something else"
    result = run("datasets", "fetch", "nltcs", EXCHANGEABLE_DATA_URL=loopback.address)
    assert result.returncode == 1
    message = result.stderr.splitlines()[-1]
    assert message.startswith("Error: ")
    assert "should be da721d2666af894485a4ffe10fedf651953209399cba5e4a94e072ad767c236a" in message
    assert "Traceback" not in result.stderr


def test_fetch_without_network(run, tmp_path):
    result = run("datasets", "fetch", "nltcs", EXCHANGEABLE_DATA_URL="http://127.0.0.1:1")
    assert result.returncode == 1
    message = result.stderr.splitlines()[-1]
    assert "http://127.0.0.1:1/density/nltcs.ts.data.gz" in message
    assert str(tmp_path / "data" / "density" / "nltcs.ts.data.gz") in message


@pytest.mark.parametrize("arguments", [["nltc"], ["mnist", "--variant", "as_published"], []])
def test_fetch_what_does_not_exist(run, arguments):
    result = run("datasets", "fetch", *arguments)
    assert result.returncode != 0
    assert "Traceback" not in result.stderr
