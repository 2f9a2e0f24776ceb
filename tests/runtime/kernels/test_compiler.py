"""Kernels are optimised once, and linked with the functions that only they call."""

import numpy as np
import pytest
from numba.core.compiler import Flags

from exchangeable.runtime.kernels.bits import COMPILED
from exchangeable.runtime.kernels.cache import compiled, for_kernels
from exchangeable.runtime.kernels.compiler import KernelFlags

pytestmark = pytest.mark.skipif(not COMPILED, reason="nothing is compiled")


@for_kernels()
def cube(x):
    return x * x * x


@for_kernels()
def quartic(x):
    return x * cube(x)


@compiled()
def add_quartics(values):
    total = 0.0
    for i in range(values.size):
        total += quartic(values[i])
    return total


def test_helpers_are_linked_with_kernels_and_are_not_made_code_of_their_own():
    add_quartics._cache.disable()  # a kernel from the cache does not need them
    values = np.arange(5.0)
    assert add_quartics(values) == (values**4).sum()
    assert len(quartic.overloads) == len(cube.overloads) == 1
    (of_helper,), (of_kernel,) = quartic.overloads.values(), add_quartics.overloads.values()
    assert of_helper.library._final_module.get_function(of_helper.fndesc.llvm_func_name)
    with pytest.raises(RuntimeError, match="no compiled object"):
        of_helper.library._get_compiled_object()
    assert of_kernel.library._get_compiled_object()


def test_helpers_can_be_called_from_python():
    assert quartic(3.0) == 81.0
    assert quartic.alone.overloads
    assert quartic.py_func(3.0) == 81.0


def made(kind, **values):
    flags = kind()
    for name, value in values.items():
        setattr(flags, name, value)
    return flags


OPTIONS = [{}, {"nrt": True}, {"nrt": False}, {"error_model": "numpy"}, {"forceinline": True}]


@pytest.mark.parametrize("one", OPTIONS, ids=str)
@pytest.mark.parametrize("other", OPTIONS, ids=str)
def test_flags_are_equal_where_numba_finds_them_equal(one, other):
    equal = made(Flags, **one) == made(Flags, **other)
    for kind in (Flags, KernelFlags):
        assert (made(KernelFlags, **one) == made(kind, **other)) == equal
    assert hash(made(KernelFlags, **one)) == hash(made(Flags, **one))


def test_how_a_caller_is_called_makes_no_difference_to_what_it_calls():
    plain = made(KernelFlags, error_model="numpy")
    helper = made(KernelFlags, error_model="numpy", forceinline=True, no_compile=True)
    assert plain != helper
    assert plain.copy() == helper.copy()
    assert helper.copy() != made(KernelFlags).copy()
