"""What Numba is asked once is what it would answer again; unknown versions are left alone."""

import operator
import subprocess
import sys

import pytest
from numba.core import types
from numba.core.registry import cpu_target

from exchangeable.runtime.kernels.bits import COMPILED
from exchangeable.runtime.kernels.compiling import is_known

pytestmark = pytest.mark.skipif(not COMPILED or not is_known(), reason="Numba's own compiler")

NUMBERS = (types.int32, types.int64, types.uint64, types.float64, types.boolean)
LINE = types.Array(types.float64, 1, "C")


def typings():
    from exchangeable.runtime.kernels.contexts import KernelTyping

    origin = cpu_target.typing_context
    origin.refresh()
    return origin, KernelTyping.of(origin)


@pytest.mark.parametrize("function", [operator.add, operator.mul, operator.lt, operator.floordiv])
@pytest.mark.parametrize("one", NUMBERS, ids=str)
@pytest.mark.parametrize("other", [*NUMBERS, types.literal(1)], ids=str)
def test_operations_are_typed_as_by_numba_the_first_time_and_the_second(function, one, other):
    origin, typing = typings()
    expected = origin.resolve_function_type(function, (one, other), {})
    for _ in range(2):
        found = typing.resolve_function_type(function, (one, other), {})
        assert (found.return_type, found.args) == (expected.return_type, expected.args)


def test_items_of_arrays_are_typed_as_by_numba():
    origin, typing = typings()
    for index in (types.int64, types.uint32, types.slice2_type):
        expected = origin.resolve_function_type(operator.getitem, (LINE, index), {})
        for _ in range(2):
            found = typing.resolve_function_type(operator.getitem, (LINE, index), {})
            assert found.return_type == expected.return_type


def test_what_is_compiled_for_its_caller_is_not_remembered():
    _, typing = typings()
    typing.resolve_function_type(max, (types.float64, types.float64), {})
    assert not any(getattr(asked[0], "typing_key", None) is max for asked in typing._known)


def test_there_is_one_typing_and_it_equals_numbas():
    origin, typing = typings()
    assert typings()[1] is typing
    assert origin == typing
    assert hash(origin) == hash(typing)


UNKNOWN = """
import sys
import numba
numba.__version__ = "99.0.1"
import numpy as np
from exchangeable.runtime.kernels.cache import compiled, for_kernels
double = for_kernels()(lambda x: x + x)
kernel = compiled()(lambda x: double(x[0]))
kernel._cache.disable()
print(kernel(np.arange(3.0) + 2.0), "exchangeable.runtime.kernels.compiler" in sys.modules)
"""


def test_versions_of_numba_that_are_not_known_compile_by_themselves():
    done = subprocess.run(
        [sys.executable, "-c", UNKNOWN], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["4.0", "False"]
