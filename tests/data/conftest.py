from typing import Any

import pytest

from scaling_rows import make_rows


@pytest.fixture(scope="session")
def rows() -> tuple[Any, Any]:
    return make_rows()
