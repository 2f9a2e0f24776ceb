"""The registry of data files: their hashes, and the addresses they are downloaded from."""

from dataclasses import dataclass
from importlib.resources import files
from os import environ

DENSITY_ADDRESS = (
    "https://raw.githubusercontent.com/nicoladimauro/dcsn/"
    "dd0f7a43f5fededeeaf37905f48f918a25b8c2c7/data/generative/"
)
PAPER_ARCHIVE = (
    "https://github.com/mniepert/exchangeable-variable-models/archive/"
    "dbd58855b652afb44b3fba23d0ac992f7d20caa4.tar.gz"
)
POLARITY_ARCHIVE = (
    "https://raw.githubusercontent.com/jbrownlee/Datasets/"
    "d20fcb6402ae34e653d4513b00f39257bb37ed7f/review_polarity.tar.gz"
)
POLARITY_ARCHIVE_SHA256 = "fc0dccc2671af5db3c5d8f81f77a1ebfec953ecdd422334062df61ede36b2179"
ENRON_ARCHIVE = "https://www2.aueb.gr/users/ion/data/enron-spam/preprocessed/enron1.tar.gz"
NEWSGROUPS_ADDRESS = (
    "https://ndownloader.figshare.com/files/5975967 through sklearn.datasets.fetch_20newsgroups"
)
MNIST_ADDRESS = 'https://www.openml.org/d/554 through sklearn.datasets.fetch_openml("mnist_784")'


@dataclass(frozen=True)
class RegisteredFile:
    """A file of the data folder: its path there, its hash and, if known, its size in bytes."""

    path: str
    sha256: str
    size: int | None


def _read_registry() -> dict[str, RegisteredFile]:
    text = files("exchangeable.datasets").joinpath("registry.txt").read_text(encoding="utf-8")
    registry = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            sha256, size, path = line.split()
            registry[path] = RegisteredFile(path, sha256, None if size == "-" else int(size))
    return registry


REGISTRY = _read_registry()


def mirror_address(path: str) -> str | None:
    """Return the address of a file on the mirror named by ``EXCHANGEABLE_DATA_URL``, if any.

    A mirror is a web server that serves a data folder as it is laid out on disk.
    """
    mirror = environ.get("EXCHANGEABLE_DATA_URL")
    return f"{mirror.rstrip('/')}/{path}" if mirror else None
