"""Labelled documents, one JSON object per line, and what is cut off postings before counting words.

A collection is a file ``NAME.jsonl.xz``; a line holds "split" ("train", "test" or null), "label",
"id" and "text".
"""

import json
import lzma
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from exchangeable.datasets._files import AlteredFileError


class Document(NamedTuple):
    """A text with its label, its name and the split it belongs to, if there is one."""

    split: str | None
    label: str
    id: str
    text: str


def from_json_lines(content: bytes) -> list[Document]:
    """Read documents from JSON lines."""
    return [Document(**json.loads(line)) for line in content.decode().split("\n") if line]


def to_json_lines(documents: Iterable[Document]) -> bytes:
    """Write documents as JSON lines."""
    return "".join(json.dumps(document._asdict()) + "\n" for document in documents).encode()


def read_packed(path: Path, packed_sha256: str, content_sha256: str) -> bytes:
    """Unpack a collection, refusing one that is neither the registered file nor the same text.

    The same text packed by another version of the compressor may be another file, so the text
    counts.
    """
    packed = path.read_bytes()
    actual = sha256(packed).hexdigest()
    try:
        content = lzma.decompress(packed)
    except lzma.LZMAError:
        content = b""
    if actual != packed_sha256 and sha256(content).hexdigest() != content_sha256:
        raise AlteredFileError(
            f"{path} is truncated or altered and is not used: its sha256 should be "
            f"{packed_sha256} but is {actual}; delete it to fetch it again"
        )
    return content


_QUOTE_SIGNS = ("In article", "Quoted from", "|", ">")
_QUOTE_PHRASES = ("writes in", "writes:", "wrote:", "says:", "said:")


def strip_posting(text: str) -> str:
    r"""Remove the header, the footer and the quotations of a posting, as scikit-learn does.

    The header ends at the first empty line. The footer is what follows the last line that is
    blank or only dashes, unless that would be everything. A line is a quotation, or announces
    one, if it begins with one of the signs or contains one of the phrases that do so.

    Examples
    --------
    >>> from exchangeable.datasets._documents import strip_posting
    >>> strip_posting("From: a\n\nB wrote:\n> why?\nwhy not\n\n--\nmy name")
    'why not\n'
    """
    body = text.partition("\n\n")[2]
    lines = body.strip().split("\n")
    breaks = [number for number, line in enumerate(lines) if not line.strip().strip("-")]
    footer = max(breaks, default=0)
    kept = lines[:footer] if footer else body.split("\n")
    return "\n".join(line for line in kept if not _is_quotation(line))


def _is_quotation(line: str) -> bool:
    return line.startswith(_QUOTE_SIGNS) or any(phrase in line for phrase in _QUOTE_PHRASES)
