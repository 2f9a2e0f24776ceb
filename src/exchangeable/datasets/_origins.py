"""Where the text collections come from, and how they are prepared from published archives.

Archives are downloaded, their documents sorted and written as JSON lines, and the result is kept
only if its hash is the registered one. The hash of the archive itself is registered only for the
movie reviews; for the others, only the prepared text is checked.
"""

import lzma
import re
import tarfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

from exchangeable.datasets._documents import Document, to_json_lines
from exchangeable.datasets._files import (
    AlteredFileError,
    Progress,
    download,
    explained,
    replacing,
)
from exchangeable.datasets._registry import (
    ENRON_ARCHIVE,
    PAPER_ARCHIVE,
    POLARITY_ARCHIVE,
    POLARITY_ARCHIVE_SHA256,
    REGISTRY,
)


@dataclass(frozen=True)
class Origin:
    """A published archive, and a pattern for those of its members that hold documents.

    A pattern with a group "stem" matches members with one document per line, preceded by its label;
    a pattern with a group "label" matches members that are one document each.
    """

    address: str
    members: str
    sha256: str | None = None


ORIGINS = {
    "reuters8": Origin(PAPER_ARCHIVE, r"(?:^|/)(?P<stem>r8-(?P<split>train|test)-all-terms)\.\w+$"),
    "webkb4": Origin(PAPER_ARCHIVE, r"(?:^|/)(?P<stem>webkb-(?P<split>train|test)-stemmed)\.\w+$"),
    "as_published/reuters8": Origin(
        PAPER_ARCHIVE,
        r"/classification/reuters/(?P<id>(?P<split>train|test)/(?P<label>[^/]+)/[^/]+\.txt)$",
    ),
    "as_published/webkb4": Origin(
        PAPER_ARCHIVE,
        r"/classification/webkb/(?P<id>(?P<split>train|test)/(?P<label>[^/]+)/[^/]+\.txt)$",
    ),
    "polarity2": Origin(
        POLARITY_ARCHIVE,
        r"(?:^|/)txt_sentoken/(?P<label>neg|pos)/(?P<id>[^/]+\.txt)$",
        POLARITY_ARCHIVE_SHA256,
    ),
    "enron1": Origin(ENRON_ARCHIVE, r"(?:^|/)(?P<id>enron1/(?P<label>ham|spam)/[^/]+\.txt)$"),
}
_FOLDER_LABELS = {"money": "money-fx"}  # the paper's folder of the Reuters topic money-fx


def documents_in(archive: Path, members: str) -> list[Document]:
    """Read the documents of an archive: training before test, folders by label and file name."""
    try:
        with tarfile.open(archive) as tar:
            documents = list(_read_members(tar, re.compile(members)))
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise OSError("the downloaded file is not a readable archive") from error
    if "(?P<stem>" in members:
        return sorted(documents, key=lambda d: d.split == "test")
    return sorted(documents, key=lambda d: (d.split == "test", d.label, d.id))


def _read_members(tar: tarfile.TarFile, pattern: re.Pattern[str]) -> Iterator[Document]:
    for member in tar:
        match = pattern.search(member.name)
        file = tar.extractfile(member) if match else None
        if not match or not file:
            continue
        text = file.read().decode("latin-1")
        groups = match.groupdict()
        if "stem" not in groups:
            label = _FOLDER_LABELS.get(groups["label"], groups["label"])
            yield Document(groups.get("split"), label, groups["id"], text)
            continue
        for number, line in enumerate(text.removesuffix("\n").split("\n"), start=1):
            label, *rest = re.split("[\t ]", line, maxsplit=1)
            yield Document(groups["split"], label, f"{groups['stem']}:{number}", "".join(rest))


def prepare(collection: str, path: Path, progress: Progress | None = None) -> None:
    """Download a collection's archive and prepare the file at `path` from it."""
    origin = ORIGINS[collection]
    expected = REGISTRY[f"classification/{collection}.jsonl"].sha256
    name = origin.address.rpartition("/")[2]
    with (
        explained(origin.address, path, "It is the collection as JSON lines, packed with xz."),
        replacing(path) as partial,
        TemporaryDirectory() as folder,
    ):
        archive = Path(folder) / name
        download(origin.address, archive, origin.sha256, progress)
        content = to_json_lines(documents_in(archive, origin.members))
        actual = sha256(content).hexdigest()
        if actual != expected:
            raise AlteredFileError(
                f"{origin.address} does not hold the registered documents of {collection} and is "
                f"not used: the sha256 of their text should be {expected} but is {actual}. "
                f"Save the prepared file as {path}."
            )
        partial.write_bytes(lzma.compress(content, preset=9))
