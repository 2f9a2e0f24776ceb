"""Model files taken apart and put together again, and the many ways in which they are damaged."""

import io
import json
import zipfile
import zlib
from tokenize import TokenError

import numpy as np


def unpack(data):
    """Return the members of a file by name."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def pack(members, compression=zipfile.ZIP_STORED):
    """Return the file with given members."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return stream.getvalue()


def npy(array, **options):
    """Return an array as a member."""
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.asarray(array, order="C"), **options)
    return stream.getvalue()


def with_header(data, change):
    """Return a file whose header a function has changed."""
    members = unpack(data)
    header = json.loads(members["header.json"])
    change(header)
    return pack({**members, "header.json": json.dumps(header)})


UNREADABLE = (
    EOFError,
    LookupError,
    MemoryError,
    OSError,
    RuntimeError,
    SyntaxError,
    TokenError,
    TypeError,
    ValueError,
    zipfile.BadZipFile,
    zlib.error,
)
"""What taking a damaged file apart may raise: it cannot be damaged further that way."""
HUGE = (
    0,
    -1,
    1,
    2,
    3,
    255,
    2**31 - 1,
    2**31,
    2**63 - 1,
    2**64,
    10**18,
    10**400,
    -(10**18),
    0.5,
    1e308,
    -1e308,
    5e-324,
)
REFERENCES = ({"array": "weights_"}, {"array": "model.labels"}, {"number": "nan"}, {"tuple": []})
TEXTS = ("", "x", "\ud800", "x" * 5000, "urns", "tree", "blocks", "joined", "EVM", "U999", "object")
SHAPES = ("(0,)", "()", "(1, 1)", "(-1,)", "(99999999999,)", "(1e3,)", "(10L,)", "('a',)", "(" * 40)
DTYPES = ("<f4", "<f8", ">f8", "<i4", "<i8", "|b1", "|O", "<c16", "<U3", "|V8", "[('a', '<f8')]")
NUMBERS = (
    np.nan,
    np.inf,
    -np.inf,
    0.0,
    -0.0,
    1.0,
    -1.0,
    1e308,
    -1e308,
    5e-324,
    700.0,
    -700.0,
    20.0,
)


def damage(data, dice):
    """Return a file damaged in one of many ways."""
    spoiled = data
    while spoiled == data:
        try:
            spoiled = dice.choice(WAYS)(data, dice)
        except UNREADABLE:
            continue  # this way is not open to this file
    return damage(spoiled, dice) if dice.random() < 0.15 and _opens(spoiled) else spoiled


def _opens(data):
    try:
        json.loads(unpack(data)["header.json"])
    except UNREADABLE:
        return False
    return True


def flip_bits(data, dice):
    """Flip a few bits anywhere."""
    spoiled = bytearray(data)
    for _ in range(dice.randint(1, 6)):
        spoiled[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
    return bytes(spoiled)


def set_bytes(data, dice):
    """Overwrite a stretch with zeros, ones or noise."""
    spoiled, begin = bytearray(data), dice.randrange(len(data))
    for at in range(begin, min(begin + dice.randint(1, 40), len(data))):
        spoiled[at] = dice.choice((0, 255, dice.randrange(256)))
    return bytes(spoiled)


def cut(data, dice):
    """Cut off the end, take out the middle, or double a stretch."""
    begin, end = sorted(dice.randrange(len(data)) for _ in range(2))
    return dice.choice((data[:begin], data[:begin] + data[end:], data[:end] + data[begin:]))


def _arrays(data):
    members = unpack(data)
    names = [name for name in members if name.endswith(".npy")]
    return members, names


def change_numbers(data, dice):
    """Set entries of an array to unusual numbers, or scale and shift all of them."""
    members, names = _arrays(data)
    name = dice.choice(names)
    array = np.load(io.BytesIO(members[name]))
    if not array.size:
        return data
    flat = array.reshape(-1)
    with np.errstate(all="ignore"):
        if flat.dtype.kind == "f":
            way = dice.randrange(4)
            if way == 0:
                for _ in range(dice.randint(1, 3)):
                    flat[dice.randrange(flat.size)] = dice.choice(NUMBERS)
            elif way == 1:
                flat[:] = dice.choice(NUMBERS)
            elif way == 2:
                flat *= dice.choice((-1, 0, 0.5, 1.1, 10, 1e3, 1e300, np.nan))
            else:
                flat += dice.choice((-1, 1e-7, 1e-3, 1, 3, 700, np.inf))
        else:
            for _ in range(dice.randint(1, 3)):
                flat[dice.randrange(flat.size)] = dice.choice((0, 1, 2, 5, 9, 10, 100, -1, 127)) % (
                    2 if flat.dtype.kind == "b" else 128
                )
    return pack({**members, name: npy(array)})


def shuffle_numbers(data, dice):
    """Permute, reverse or sort the entries of an array."""
    members, names = _arrays(data)
    name = dice.choice(names)
    array = np.load(io.BytesIO(members[name]))
    flat = array.reshape(-1)
    flat[:] = dice.choice((flat[::-1].copy(), np.sort(flat), np.roll(flat, 1)))
    return pack({**members, name: npy(array)})


def change_shape(data, dice):
    """Reshape, cut, repeat or retype an array."""
    members, names = _arrays(data)
    name = dice.choice(names)
    array = np.load(io.BytesIO(members[name]))
    with np.errstate(all="ignore"):
        changed = dice.choice(
            (
                lambda: array.reshape(-1),
                lambda: array[None],
                lambda: array.T.copy(),
                lambda: array[:0],
                lambda: array[1:],
                lambda: array[..., :-1],
                lambda: np.concatenate([array, array]),
                lambda: np.repeat(array, 2, axis=-1),
                lambda: array.astype(np.float32),
                lambda: np.nan_to_num(array).astype(np.int64),
                lambda: np.nan_to_num(array).astype(np.int32),
                lambda: array.astype(np.float64),
                lambda: array.astype(bool),
                lambda: np.zeros(dice.choice((0, 1, 10, 10**5))),
            )
        )()
    return pack({**members, name: npy(changed)})


def change_array_header(data, dice):
    """Write another shape or type into the header of an array."""
    members, names = _arrays(data)
    name = dice.choice(names)
    body, size = members[name], int.from_bytes(members[name][8:10], "little")
    shape, dtype = dice.choice(SHAPES), dice.choice(DTYPES)
    fortran = dice.choice((True, False))
    text = f"{{'descr': {dtype!r}, 'fortran_order': {fortran}, 'shape': {shape}}}"
    if dice.random() < 0.2:
        text = text[: dice.randrange(len(text))]
    header = text.encode().ljust(63) + b"\n"
    start = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little")
    return pack({**members, name: start + header + body[10 + size :]})


def swap_arrays(data, dice):
    """Exchange two arrays, or give one the content of another, or take one away."""
    members, names = _arrays(data)
    one, other = dice.choice(names), dice.choice(names)
    way = dice.randrange(3)
    if way == 0:
        members[one], members[other] = members[other], members[one]
    elif way == 1:
        members[one] = members[other]
    else:
        del members[one]
    return pack(members)


def change_header(data, dice):
    """Change, remove, double or nest values in the header."""

    def change(header):
        for _ in range(dice.randint(1, 3)):
            places = list(_places(header))
            node, key = dice.choice(places)
            other, its_key = dice.choice(places)
            way = dice.randrange(7)
            if way == 0:
                node[key] = dice.choice((None, True, False, [], {}, [[]], {"": 0}))
            elif way == 1:
                node[key] = dice.choice(HUGE)
            elif way == 2:
                node[key] = dice.choice(TEXTS)
            elif way == 3:
                node[key] = dice.choice(REFERENCES)
            elif way == 4:
                node[key] = json.loads(json.dumps(other[its_key]))
            elif way == 5:
                node.pop(key)
            else:
                for _ in range(dice.choice((1, 5, 200))):
                    node[key] = {dice.choice(("tuple", "mapping", "estimator")): [node[key]]}

    return with_header(data, change)


def _places(node):
    for key in list(node) if isinstance(node, dict) else range(len(node)):
        yield node, key
        if isinstance(node[key], dict | list):
            yield from _places(node[key])


WAYS = (
    flip_bits,
    set_bytes,
    cut,
    change_numbers,
    change_numbers,
    change_numbers,
    shuffle_numbers,
    change_shape,
    change_array_header,
    swap_arrays,
    change_header,
    change_header,
    change_header,
)
