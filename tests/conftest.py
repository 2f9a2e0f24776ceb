"""What several tests of the data sets share: a real web server, and the real data if present."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from missing_data import (
    data_folder,
    pytest_runtest_makereport,
    pytest_terminal_summary,
    skip_without_data,
)

__all__ = ["pytest_runtest_makereport", "pytest_terminal_summary"]
DATA = data_folder()


@dataclass
class Loopback:
    """Files served by path on 127.0.0.1.

    A path in `cut` ends half-way; a function in `halfway` is called there, and may wait.
    """

    address: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    cut: set[str] = field(default_factory=set)
    halfway: dict[str, Callable[[], object]] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    started: threading.Event = field(default_factory=threading.Event)


@pytest.fixture
def loopback() -> Iterator[Loopback]:
    site = Loopback()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            site.requests.append(self.path)
            if self.path not in site.files:
                self.send_error(404)
                return
            body = site.files[self.path]
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            half = len(body) // 2
            self.wfile.write(body[:half])
            self.wfile.flush()
            site.started.set()
            if self.path in site.cut:
                self.close_connection = True
                return
            if self.path in site.halfway:
                site.halfway[self.path]()
            try:
                self.wfile.write(body[half:])
            except OSError:
                self.close_connection = True

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    site.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield site
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="session")
def real_data() -> Callable[..., Path]:
    """Return a function that gives the folder with the named real files, or skips the test."""

    def folder_with(*names: str) -> Path:
        missing = [name for name in names if not (DATA / name).is_file()]
        if missing:
            skip_without_data(missing[0])
        return DATA

    return folder_with
