"""The fast form is made once, and never used when it is stale or damaged."""

import numpy as np
import pytest

from exchangeable.datasets._fast import fast_form

TABLE = np.arange(1000, dtype=np.int64)


class Maker:
    def __init__(self, table=TABLE):
        self.table = table
        self.calls = 0

    def __call__(self):
        self.calls += 1
        return {"table": self.table}


@pytest.fixture
def kept(tmp_path):
    fast_form("set", ("hash",), tmp_path, Maker())
    (path,) = (tmp_path / "fast").iterdir()
    return path


def test_made_once(kept, tmp_path):
    maker = Maker()
    np.testing.assert_array_equal(fast_form("set", ("hash",), tmp_path, maker)["table"], TABLE)
    assert maker.calls == 0


def test_other_source_is_made_anew(kept, tmp_path):
    maker = Maker(TABLE + 1)
    arrays = fast_form("set", ("another hash",), tmp_path, maker)
    np.testing.assert_array_equal(arrays["table"], TABLE + 1)
    assert maker.calls == 1


@pytest.mark.parametrize("place", [0.0, 0.5, 1.0])
def test_damaged_one_is_made_anew(kept, tmp_path, place):
    data = bytearray(kept.read_bytes())
    data[int(place * (len(data) - 1))] ^= 0xFF
    kept.write_bytes(data)
    maker = Maker()
    np.testing.assert_array_equal(fast_form("set", ("hash",), tmp_path, maker)["table"], TABLE)


def test_one_with_other_arrays_is_made_anew(kept, tmp_path):
    """Intact as an archive, but not what was cached."""
    np.savez(kept, table=TABLE + 1)
    maker = Maker()
    np.testing.assert_array_equal(fast_form("set", ("hash",), tmp_path, maker)["table"], TABLE)
    assert maker.calls == 1


@pytest.mark.parametrize("share", [0.0, 0.3, 0.99])
def test_truncated_one_is_made_anew(kept, tmp_path, share):
    data = kept.read_bytes()
    kept.write_bytes(data[: int(share * len(data))])
    maker = Maker()
    np.testing.assert_array_equal(fast_form("set", ("hash",), tmp_path, maker)["table"], TABLE)
    assert maker.calls == 1


def test_read_only_folder_uses_the_cache(tmp_path, private_cache):
    tmp_path.chmod(0o555)
    try:
        fast_form("locked", ("hash",), tmp_path, Maker())
        maker = Maker()
        fast_form("locked", ("hash",), tmp_path, maker)
    finally:
        tmp_path.chmod(0o755)
    assert maker.calls == 0
    assert list(tmp_path.iterdir()) == []
    assert list((private_cache / "fast").glob("locked-*.npz"))
