"""Public names are imported when they are first used."""

import subprocess
import sys

import pytest

import exchangeable

SCRIPT = """
import sys
import exchangeable
heavy = {"numpy", "scipy", "sklearn", "numba"}
assert not heavy & set(sys.modules), heavy & set(sys.modules)
exchangeable.Count
assert exchangeable.__dict__["Count"] is exchangeable.Count
"""


def test_importing_the_package_imports_nothing_heavy():
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", exchangeable.__all__)
def test_every_public_name_is_there(name):
    assert name in dir(exchangeable)
    value = getattr(exchangeable, name)
    if isinstance(value, type):
        assert value.__name__ == name


def test_another_name_is_an_error():
    with pytest.raises(AttributeError, match="has no attribute 'ExchangeableRegressor'"):
        _ = exchangeable.ExchangeableRegressor
    with pytest.raises(ImportError):
        from exchangeable import ExchangeableRegressor  # noqa: F401
