"""Documents: written and read alike, and postings stripped."""

import lzma
from hashlib import sha256

import pytest

from exchangeable.datasets import AlteredFileError
from exchangeable.datasets._documents import (
    Document,
    from_json_lines,
    read_packed,
    strip_posting,
    to_json_lines,
)

DOCUMENTS = [
    Document("train", "a", "1", "caf\xe9\r\nline\x85two\u2028"),
    Document("test", "b", "2", ""),
    Document(None, "b", "3", 'quoted "words"'),
]


def test_round_trip():
    assert from_json_lines(to_json_lines(DOCUMENTS)) == DOCUMENTS


@pytest.mark.parametrize("preset", [1, 9])
def test_the_same_text_packed_otherwise_is_accepted(tmp_path, preset):
    content = to_json_lines(DOCUMENTS)
    path = tmp_path / "x.jsonl.xz"
    path.write_bytes(lzma.compress(content, preset=preset))
    registered = sha256(lzma.compress(content, preset=9)).hexdigest()
    assert read_packed(path, registered, sha256(content).hexdigest()) == content


@pytest.mark.parametrize("damage", ["truncated", "altered", "another text"])
def test_another_text_is_refused_with_both_hashes(tmp_path, damage):
    content = to_json_lines(DOCUMENTS)
    packed = lzma.compress(content)
    damaged = {
        "truncated": packed[:-10],
        "altered": packed[:40] + bytes([packed[40] ^ 1]) + packed[41:],
        "another text": lzma.compress(content[:-1]),
    }[damage]
    path = tmp_path / "x.jsonl.xz"
    path.write_bytes(damaged)
    registered = sha256(packed).hexdigest()
    with pytest.raises(AlteredFileError) as refusal:
        read_packed(path, registered, sha256(content).hexdigest())
    assert registered in str(refusal.value)
    assert sha256(damaged).hexdigest() in str(refusal.value)


@pytest.mark.parametrize(
    ("posting", "body"),
    [
        ("From: x\nSubject: y\n\nhello\nthere", "hello\nthere"),
        ("no empty line, so all header", ""),
        ("H: h\n\nhello\n\nJohn\nof London\n", "hello"),
        ("H: h\n\nhello\n-----\nJohn", "hello"),
        ("H: h\n\none\n\ntwo\n\nJohn", "one\n\ntwo"),
        ("H: h\n\n\nhello\nthere\n", "\nhello\nthere\n"),
        ("H: h\n\nIn article <1> a writes:\n>old\n|older\nnew\nb said: c", "new"),
        ("H: h\n\n --> kept, as is what is > in a line", " --> kept, as is what is > in a line"),
    ],
)
def test_postings_lose_header_footer_and_quotations(posting, body):
    assert strip_posting(posting) == body
