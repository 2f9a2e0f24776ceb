"""Files that replace others: whole or not at all, whatever happens while they are written."""

import errno
import fcntl
import os
import resource
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

import exchangeable
from exchangeable import EVM, Count, write_packed
from exchangeable.storage.files import STALE_SECONDS, replacing
from killed_writers import JOBS

KILLS = 30
SUPPORT = Path(__file__).parents[1] / "support"
SETTING = """
import sys
import numpy as np
from pathlib import Path
folder = Path(sys.argv[1])
"""
FULL = {
    "save": """
        from exchangeable import EVM, Count, save
        n = 200_000
        save(EVM.from_weights(Count(n), np.full(n + 1, 1 / (n + 1))), folder / "file")
    """,
    "write_packed": """
        from exchangeable import write_packed
        write_packed([np.ones((4000, 400))] * 4, folder / "file")
    """,
}


def parts_of(folder):
    return sorted(path.name for path in folder.iterdir() if path.name.endswith(".part"))


def make_old(path):
    os.utime(path, (time.time() - 2 * STALE_SECONDS,) * 2)


@pytest.mark.parametrize("job", JOBS)
def test_killed_at_any_moment(job, tmp_path):
    """SIGKILL: the old file or the new one is there, and both can be read."""
    command = [sys.executable, str(SUPPORT / "killed_writers.py"), job, str(tmp_path)]
    done = subprocess.run(
        [*command, str(KILLS), "0"], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert " 0 while writing" not in done.stdout  # else nothing was tested


def test_what_killed_processes_left_is_swept(tmp_path):
    path, other = tmp_path / "model", tmp_path / "model.other"
    stale = tmp_path / ".model.abcd1234.part"
    fresh = tmp_path / ".model.abcd5678.part"
    foreign = [
        tmp_path / name
        for name in (".model.other.abcd1234.part", ".model.abc.part", "model.abcd1234.part")
    ]
    for left in (stale, fresh, *foreign):
        left.write_bytes(b"half")
    for left in (stale, *foreign):
        make_old(left)
    exchangeable.save(EVM.from_weights(Count(1), [0.5, 0.5]), path)
    assert not stale.exists()
    assert fresh.exists()
    assert all(left.exists() for left in foreign)
    exchangeable.save(EVM.from_weights(Count(1), [0.5, 0.5]), other)
    assert not foreign[0].exists()


def test_what_a_living_process_holds_is_not_swept(tmp_path):
    script = SETTING + textwrap.dedent(
        """
        from exchangeable.storage.files import replacing
        with replacing(folder / "model") as file:
            file.write(b"slowly")
            file.flush()
            print("writing", flush=True)
            sys.stdin.readline()
        """
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        process.stdout.readline()
        [part] = parts_of(tmp_path)
        make_old(tmp_path / part)
        with replacing(tmp_path / "model") as file:
            file.write(b"meanwhile")
        assert parts_of(tmp_path) == [part]
        assert (tmp_path / "model").read_bytes() == b"meanwhile"
        process.communicate(b"\n")
    assert process.returncode == 0
    assert (tmp_path / "model").read_bytes() == b"slowly"
    assert not parts_of(tmp_path)


def test_a_file_is_held_while_it_is_written(tmp_path):
    with replacing(tmp_path / "model") as file:
        file.write(b"x")
        [part] = parts_of(tmp_path)
        with (tmp_path / part).open("rb") as another, pytest.raises(BlockingIOError):
            fcntl.flock(another, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _limited(job, folder):
    """Run a job that may not write more than 64 KiB to a file."""
    script = SETTING + textwrap.dedent(FULL[job])
    limit = 1 << 16
    return subprocess.run(
        [sys.executable, "-c", script, str(folder)],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("job", FULL)
def test_a_full_disk_is_an_error_that_names_the_file(job, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"before")
    done = _limited(job, tmp_path)
    assert done.returncode == 1, done.stderr
    assert f"OSError: [Errno {errno.EFBIG}]" in done.stderr
    assert str(path) in done.stderr.splitlines()[-1]
    assert path.read_bytes() == b"before"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_rows_are_not_written_onto_the_file_being_read(tmp_path):
    path = tmp_path / "rows.npy"
    rows = np.random.default_rng(0).integers(0, 2, size=(50, 20))
    held = write_packed([rows], path)
    before = path.read_bytes()
    link = tmp_path / "link.npy"
    link.symlink_to(path)
    os.link(path, tmp_path / "hard.npy")
    for name in (path, link, tmp_path / "hard.npy"):
        with pytest.raises(ValueError, match="the file being read"):
            write_packed(held, name)
        with pytest.raises(ValueError, match="the file being read"):
            write_packed([held, held], name)
    assert path.read_bytes() == before
    assert sorted(entry.name for entry in tmp_path.iterdir()) == [
        "hard.npy",
        "link.npy",
        "rows.npy",
    ]


def test_rows_whose_source_fails_leave_the_old_file(tmp_path):
    path = tmp_path / "rows.npy"
    write_packed([np.eye(8)], path)
    before = path.read_bytes()

    class Failing:
        passes = 0

        def chunks(self):
            self.passes += 1
            yield np.ones((3, 8))
            if self.passes > 1:
                raise OSError("the disk is gone")
            yield np.ones((3, 8))

    with pytest.raises(OSError, match="the disk is gone"):
        write_packed(Failing(), path)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["rows.npy"]
