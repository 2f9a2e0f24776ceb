"""Model files taken apart and put together again, and the many ways in which they are damaged."""

import io
import json
import zipfile

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
