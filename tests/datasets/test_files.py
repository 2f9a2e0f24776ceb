"""Files arrive whole, checked and in one step, or not at all."""

import os
import signal
import stat
import subprocess
import sys
import threading
from hashlib import sha256
from pathlib import Path

import pytest

from exchangeable.datasets import AlteredFileError, DownloadError, get_data_home
from exchangeable.datasets._files import download, obtain, replacing
from exchangeable.datasets._registry import RegisteredFile

BODY = bytes(range(256)) * 1024
SHA256 = sha256(BODY).hexdigest()
FILE = RegisteredFile("some/file.bin", SHA256, len(BODY))

DOWNLOAD = """
import sys
from pathlib import Path
from exchangeable.datasets._files import download
download(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
"""


def start_download(url: str, target: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", DOWNLOAD, url, str(target), SHA256])


def test_download_puts_the_very_bytes_in_place(loopback, tmp_path):
    loopback.files["/file.bin"] = BODY
    target = tmp_path / "folder" / "file.bin"
    download(f"{loopback.address}/file.bin", target, SHA256)
    assert target.read_bytes() == BODY
    assert list(target.parent.iterdir()) == [target]
    ordinary = tmp_path / "ordinary"
    ordinary.touch()
    assert stat.S_IMODE(target.stat().st_mode) == stat.S_IMODE(ordinary.stat().st_mode)


def test_altered_download_is_refused_with_both_hashes(loopback, tmp_path):
    altered = b"\x01" + BODY[1:]
    loopback.files["/file.bin"] = altered
    with pytest.raises(AlteredFileError) as refusal:
        obtain(FILE, f"{loopback.address}/file.bin", tmp_path)
    assert SHA256 in str(refusal.value)
    assert sha256(altered).hexdigest() in str(refusal.value)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_connection_that_breaks_leaves_nothing(loopback, tmp_path):
    loopback.files["/file.bin"] = BODY
    loopback.cut.add("/file.bin")
    with pytest.raises((DownloadError, AlteredFileError)):
        obtain(FILE, f"{loopback.address}/file.bin", tmp_path)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("damaged", [BODY[:-1], b"", BODY + b"\x00"])
def test_present_file_that_is_not_the_registered_one_is_refused(loopback, tmp_path, damaged):
    loopback.files["/file.bin"] = BODY
    path = tmp_path / FILE.path
    path.parent.mkdir()
    path.write_bytes(damaged)
    with pytest.raises(AlteredFileError) as refusal:
        obtain(FILE, f"{loopback.address}/file.bin", tmp_path)
    assert str(path) in str(refusal.value)
    assert SHA256 in str(refusal.value)
    assert sha256(damaged).hexdigest() in str(refusal.value)
    assert path.read_bytes() == damaged
    assert loopback.requests == []


def test_present_file_is_used_without_a_download(loopback, tmp_path):
    path = tmp_path / FILE.path
    path.parent.mkdir()
    path.write_bytes(BODY)
    assert obtain(FILE, f"{loopback.address}/file.bin", tmp_path) == path
    assert loopback.requests == []


@pytest.mark.parametrize("address", ["http://127.0.0.1:1/file.bin", "not an address"])
def test_no_network_says_what_was_tried_and_where_to_put_the_file(tmp_path, address):
    with pytest.raises(DownloadError) as failure:
        obtain(FILE, address, tmp_path)
    for part in (address, str(tmp_path / FILE.path), SHA256):
        assert part in str(failure.value)


def test_missing_page_is_a_failure(loopback, tmp_path):
    with pytest.raises(DownloadError, match="404"):
        obtain(FILE, f"{loopback.address}/file.bin", tmp_path)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_download_if_missing_false_asks_nobody(loopback, tmp_path):
    with pytest.raises(OSError, match="download_if_missing"):
        obtain(FILE, f"{loopback.address}/file.bin", tmp_path, download_if_missing=False)
    assert loopback.requests == []


def test_killed_download_leaves_nothing_that_looks_complete(loopback, tmp_path):
    loopback.files["/file.bin"] = BODY
    killed = threading.Event()
    loopback.halfway["/file.bin"] = lambda: killed.wait(60)
    url, target = f"{loopback.address}/file.bin", tmp_path / FILE.path
    process = start_download(url, target)
    assert loopback.started.wait(30)
    process.send_signal(signal.SIGKILL)
    assert process.wait(30) != 0
    assert not target.exists()
    killed.set()
    assert obtain(FILE, url, tmp_path).read_bytes() == BODY


def test_two_processes_at_once(loopback, tmp_path):
    loopback.files["/file.bin"] = BODY
    both = threading.Barrier(2)
    loopback.halfway["/file.bin"] = lambda: both.wait(60)
    target = tmp_path / "file.bin"
    processes = [start_download(f"{loopback.address}/file.bin", target) for _ in range(2)]
    assert [process.wait(60) for process in processes] == [0, 0]
    assert len(loopback.requests) == 2
    assert target.read_bytes() == BODY
    assert list(tmp_path.iterdir()) == [target]


def test_failure_while_writing_keeps_the_old_file(tmp_path):
    target = tmp_path / "file"
    target.write_text("old")

    def write_half() -> None:
        with replacing(target) as partial:
            partial.write_text("ne")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        write_half()
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_folder_marked_read_only_is_left_alone(loopback, tmp_path):
    loopback.files["/file.bin"] = BODY
    tmp_path.chmod(0o555)
    try:
        with pytest.raises(DownloadError, match="read-only"):
            obtain(FILE, f"{loopback.address}/file.bin", tmp_path)
        assert list(tmp_path.iterdir()) == []
    finally:
        tmp_path.chmod(0o755)


class Bar:
    """Notes what pooch tells a progress bar."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.total = 0
        self.done = 0
        self.closed = False

    def update(self, size: int) -> None:
        self.done += size

    def reset(self) -> None:
        self.done = 0

    def close(self) -> None:
        self.closed = True


def test_progress_is_reported(loopback, tmp_path):
    loopback.files["/x"] = BODY
    bars: list[Bar] = []

    def make(name: str) -> Bar:
        bars.append(Bar(name))
        return bars[-1]

    obtain(FILE, f"{loopback.address}/x", tmp_path, progress=make)
    (bar,) = bars
    assert (bar.name, bar.total, bar.done) == ("file.bin", len(BODY), len(BODY))
    assert bar.closed


def test_data_folder(monkeypatch, private_cache):
    monkeypatch.setenv("EXCHANGEABLE_DATA", "elsewhere")
    assert get_data_home("here") == Path("here")
    assert get_data_home() == Path("elsewhere")
    assert get_data_home("~/x") == Path(os.path.expanduser("~")) / "x"
    monkeypatch.delenv("EXCHANGEABLE_DATA")
    assert get_data_home() == private_cache
