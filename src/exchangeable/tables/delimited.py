"""CSV in its usual variants: separators, encodings, decimal commas and byte order marks."""

import codecs
import csv
import io
import re
import warnings
from collections.abc import Sequence
from typing import IO, Any, NamedTuple

SEPARATORS = (",", ";", "\t", "|")
NAMED = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "space": " ", "pipe": "|"}
"""Separators by names that need no quoting in a shell."""
HEAD = 1 << 18
"""Number of bytes from which separators are guessed."""
MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
OLDER = "cp1252"
"""The encoding of files that are not UTF-8: that of Windows for Western Europe."""
COMMAS = re.compile(r"[+-]?(\d+|\d{1,3}(\.\d{3})+),\d+")
WHOLE = re.compile(r"[+-]?(\d+|\d{1,3}(\.\d{3})+)")
THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d+)?")
PLAIN = re.compile(r"[+-]?\d+(\.\d+)?")


class Dialect(NamedTuple):
    """The format of a file; attributes that are None are guessed.

    Attributes
    ----------
    form : str, optional
        One of the formats of tables.
    separator : str, optional
        The separator of cells: one character, or its name.
    encoding : str, optional
        Such as ``latin-1``.
    decimal : str, optional
        ``.`` or ``,``.
    empty : tuple of str
        Texts that mean "missing", besides the usual ones.
    """

    form: str | None = None
    separator: str | None = None
    encoding: str | None = None
    decimal: str | None = None
    empty: tuple[str, ...] = ()


class Delimited(NamedTuple):
    """A frame, messages for the user about how it was read, and its problems."""

    frame: Any
    notes: list[str]
    problems: list[str]


def read_delimited(source: IO[bytes] | str, usual: str, dialect: Dialect, pandas: Any) -> Delimited:
    """Read a table with separators.

    Parameters
    ----------
    source : path or file
        The file.
    usual : str
        The separator that the file's name suggests.
    dialect : Dialect
        The known parts of the format.
    pandas : module
        pandas.
    """
    head = _head(source, pandas)
    if not head.strip():
        raise ValueError("the file is empty")
    encoding = dialect.encoding or _encoding(head)
    older = None if dialect.encoding or encoding != "utf-8" else OLDER
    try:
        return _read(source, head, encoding, usual, dialect, pandas)
    except LookupError:
        raise ValueError(
            f"encoding {encoding!r} is unknown; expected one such as latin-1"
        ) from None
    except UnicodeError as error:
        if older is None:
            raise ValueError(f"the file is not {encoding}: {error}") from None
    if not isinstance(source, str):
        source.seek(0)
    found = _read(source, head, older, usual, dialect, pandas)
    note = f"not UTF-8: read as {older} (--encoding says otherwise)"
    return found._replace(notes=[note, *found.notes])


def _head(source: IO[bytes] | str, pandas: Any) -> bytes:
    if not isinstance(source, str):
        head = source.read(HEAD)
        source.seek(0)
        return head
    with pandas.io.common.get_handle(source, "rb", compression="infer", is_text=False) as handles:
        return bytes(handles.handle.read(HEAD))


def _encoding(head: bytes) -> str:
    found = next((name for mark, name in MARKS.items() if head.startswith(mark)), None)
    if found is None and b"\0" in head:
        raise ValueError("the file holds null bytes; if it is UTF-16, give --encoding utf-16")
    return found or "utf-8"


def repeated(names: Sequence[Any]) -> list[str]:
    """Return which names occur twice, each in a sentence.

    >>> repeated(["a", "b", "a"])
    ["columns 1 and 3 are named 'a'; rename all but one of them"]
    """
    listed = [str(name) for name in names]
    told = []
    for name in dict.fromkeys(name for name in listed if name and listed.count(name) > 1):
        places = [str(at) for at, other in enumerate(listed, 1) if other == name]
        many = f"columns {', '.join(places[:-1])} and {places[-1]}"
        told.append(f"{many} are named {name!r}; rename all but one of them")
    return told


def _read(
    source: IO[bytes] | str, head: bytes, encoding: str, usual: str, dialect: Dialect, pandas: Any
) -> Delimited:
    text = codecs.getincrementaldecoder(encoding)().decode(head)
    whole_lines = text if len(head) < HEAD else text[: text.rfind("\n") + 1] or text
    separator = _separator(dialect.separator) or guess_separator(whole_lines, usual)
    header = next(csv.reader(io.StringIO(whole_lines), delimiter=separator), [])
    options: dict[str, Any] = {"sep": separator, "encoding": encoding, "index_col": False}
    if dialect.decimal == ",":
        options |= {"decimal": ",", "thousands": "."}
    if dialect.empty:
        options["na_values"] = list(dialect.empty)
    with warnings.catch_warnings():
        warnings.simplefilter("error", pandas.errors.ParserWarning)
        warnings.simplefilter("ignore", pandas.errors.DtypeWarning)
        try:
            frame = pandas.read_csv(source, low_memory=False, **options)
        except pandas.errors.EmptyDataError:
            raise ValueError("the file is empty") from None
        except (pandas.errors.ParserError, pandas.errors.ParserWarning) as error:
            raise ValueError(f"the file is not a valid table: {_told(str(error))}") from None
    frame, notes = _tidy(frame, header, dialect, separator, pandas)
    return Delimited(frame, notes, repeated(header))


def _told(message: str) -> str:
    """Return pandas's error about a line that is too long, in words.

    >>> _told("Error tokenizing data. C error: Expected 2 fields in line 4, saw 3")
    'line 4 has 3 cells, those before it have 2; put cells that hold a separator in quotes'
    """
    found = re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", message)
    if found is None:
        return message.strip()
    usual, line, here = found.groups()
    return (
        f"line {line} has {here} cells, those before it have {usual}; put cells that hold a "
        "separator in quotes"
    )


def _separator(given: str | None) -> str | None:
    """Return a separator as one character."""
    separator = NAMED.get(given, given) if given is not None else None
    if separator is not None and len(separator) != 1:
        raise ValueError(
            f"separator {given!r}: expected one character, or one of {', '.join(NAMED)}"
        )
    return separator


def guess_separator(text: str, usual: str = ",") -> str:
    r"""Return the separator of a table, guessed from its first lines.

    It is the separator with which most lines have as many cells as the header, and among these the
    one that gives the most cells.

    >>> guess_separator("name;weight\nOslo;1,5\nRome, Italy;2,5\n")
    ';'
    """
    best, highest = usual, (0.0, 0)
    for separator in (usual, *SEPARATORS):
        lines = csv.reader(io.StringIO(text), delimiter=separator)
        try:
            counts = [len(cells) for cells, _ in zip(lines, range(200), strict=False) if cells]
        except csv.Error:
            continue
        if len(counts) and counts[0] > 1:
            found = (sum(n == counts[0] for n in counts) / len(counts), counts[0])
            if found > highest:
                best, highest = separator, found
    return best


def _tidy(
    frame: Any, header: Sequence[str], dialect: Dialect, separator: str, pandas: Any
) -> tuple[Any, list[str]]:
    """Return a frame with numbers read as such and without a column that numbers the rows."""
    notes = []
    if header and not header[0].strip() and frame.shape[1] > 1:
        first = frame.iloc[:, 0]
        steps = first.diff().iloc[1:] if first.dtype.kind in "iu" else None
        if steps is not None and len(first) and first.iloc[0] in (0, 1) and (steps == 1).all():
            frame = frame.iloc[:, 1:]
            notes.append("the first column has no name and numbers the rows: left out")
    if dialect.decimal is None:
        changed, how = [], "decimal commas"
        for name in frame.columns:
            numbers = _with_commas(frame[name], separator, pandas)
            if numbers is not None:
                frame[name], how = numbers
                changed.append(str(name))
        if changed:
            listed = ", ".join(map(repr, changed[:12])) + (", …" if len(changed) > 12 else "")
            notes.append(f"numbers with {how} in {listed} (--decimal says otherwise)")
    return frame, notes


def _with_commas(column: Any, separator: str, pandas: Any) -> tuple[Any, str] | None:
    """Return a column of text as numbers if only commas make it text, and which commas."""
    if column.dtype.kind not in "OUT":
        return None
    known = column.dropna()
    first = known.iloc[0] if len(known) else None
    if not isinstance(first, str) or not first[-1:].isdigit():
        return None
    cells = known.astype(str).str.strip()
    if not cells.str.contains(",").any():
        return None
    between = cells.map(lambda cell: bool(THOUSANDS.fullmatch(cell) or PLAIN.fullmatch(cell)))
    if separator == "," and between.all():
        plain, how = cells.str.replace(",", ""), "commas between thousands"
    elif cells.map(lambda cell: bool(COMMAS.fullmatch(cell) or WHOLE.fullmatch(cell))).all():
        plain, how = cells.str.replace(".", "").str.replace(",", "."), "decimal commas"
    else:
        return None
    return pandas.to_numeric(plain).reindex(column.index), how
