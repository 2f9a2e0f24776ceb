"""Eight numbers at a time, kept in registers of the processor inside compiled loops.

The compiler turns a loop over an array into vector instructions, but loads and stores accumulators
in every step, because it cannot know that arrays do not overlap. Lanes are values, like numbers: a
loop may add to them without touching memory. Each operation rounds like that on single numbers. If
NUMBA_DISABLE_JIT is set, lanes are NumPy arrays.

All arrays are contiguous and one-dimensional; positions count numbers.
"""

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped,unused-ignore]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, register_model

from exchangeable.runtime.kernels.bits import COMPILED
from exchangeable.runtime.kernels.loops import inlined

N_LANES = 8
"""Number of values per lane."""
_DOUBLES = ir.VectorType(ir.DoubleType(), N_LANES)


class _Lanes(types.Type):
    """Numba's type of eight doubles."""

    def __init__(self) -> None:
        super().__init__(name="lanes")


_LANES = _Lanes()


@register_model(_Lanes)  # type: ignore[no-untyped-call,untyped-decorator,unused-ignore]
class _LanesModel(models.PrimitiveModel):  # type: ignore[misc,unused-ignore]
    """One vector of the compiler."""

    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _DOUBLES)  # type: ignore[no-untyped-call]


def _place(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Return the pointer to eight numbers of a contiguous array, from a position on."""
    array = cgutils.create_struct_proxy(signature.args[0])(context, builder, value=arguments[0])  # type: ignore[no-untyped-call]
    return builder.bitcast(builder.gep(array.data, [arguments[1]]), _DOUBLES.as_pointer())


@intrinsic  # type: ignore[untyped-decorator,unused-ignore]
def _load(typing_context: Any, array: Any, position: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        loaded = builder.load(_place(context, builder, signature, arguments))
        loaded.align = 8
        return loaded

    return _LANES(array, types.intp), generate


@intrinsic  # type: ignore[untyped-decorator,unused-ignore]
def _load_at(typing_context: Any, array: Any, places: Any, position: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kinds = signature.args
        values, listed = (
            cgutils.create_struct_proxy(kind)(context, builder, value=given).data  # type: ignore[no-untyped-call]
            for kind, given in zip(kinds[:2], arguments[:2], strict=True)
        )
        lanes = ir.Constant(_DOUBLES, ir.Undefined)
        for number in range(N_LANES):
            where = builder.add(arguments[2], ir.Constant(arguments[2].type, number))
            place = builder.zext(builder.load(builder.gep(listed, [where])), ir.IntType(64))
            value = builder.load(builder.gep(values, [place]))
            lanes = builder.insert_element(lanes, value, ir.Constant(ir.IntType(32), number))
        return lanes

    return _LANES(array, places, types.intp), generate


@intrinsic  # type: ignore[untyped-decorator,unused-ignore]
def _store(typing_context: Any, array: Any, position: Any, lanes: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = _place(context, builder, signature, arguments)
        builder.store(arguments[2], place).align = 8
        return context.get_dummy_value()

    return types.void(array, types.intp, _LANES), generate


@intrinsic  # type: ignore[untyped-decorator,unused-ignore]
def _plus(typing_context: Any, one: Any, other: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fadd(*arguments)

    return _LANES(_LANES, _LANES), generate


@intrinsic  # type: ignore[untyped-decorator,unused-ignore]
def _times(typing_context: Any, one: Any, other: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fmul(*arguments)

    return _LANES(_LANES, _LANES), generate


@intrinsic  # type: ignore[untyped-decorator,unused-ignore]
def _alike(typing_context: Any, number: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        zero = ir.Constant(ir.IntType(32), 0)
        lanes = builder.insert_element(ir.Constant(_DOUBLES, ir.Undefined), arguments[0], zero)
        mask = ir.Constant(ir.VectorType(ir.IntType(32), N_LANES), [0] * N_LANES)
        return builder.shuffle_vector(lanes, lanes, mask)

    return _LANES(types.float64), generate


@intrinsic  # type: ignore[untyped-decorator,unused-ignore]
def _plus_product(typing_context: Any, total: Any, one: Any, other: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        total, one, other = arguments
        fused = ("contract",)
        return builder.fadd(builder.fmul(one, other, flags=fused), total, flags=fused)

    return _LANES(_LANES, _LANES, _LANES), generate


@intrinsic  # type: ignore[untyped-decorator,unused-ignore]
def _moved_up(typing_context: Any, before: Any, lanes: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        numbers = list(range(N_LANES - 1, 2 * N_LANES - 1))
        mask = ir.Constant(ir.VectorType(ir.IntType(32), N_LANES), numbers)
        return builder.shuffle_vector(*arguments, mask)

    return _LANES(_LANES, _LANES), generate


@intrinsic  # type: ignore[untyped-decorator,unused-ignore]
def _moved_down(typing_context: Any, lanes: Any, after: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        mask = ir.Constant(ir.VectorType(ir.IntType(32), N_LANES), list(range(1, N_LANES + 1)))
        return builder.shuffle_vector(*arguments, mask)

    return _LANES(_LANES, _LANES), generate


@intrinsic  # type: ignore[untyped-decorator,unused-ignore]
def _two(typing_context: Any, one: Any, other: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        lanes = ir.Constant(_DOUBLES, [0.0] * N_LANES)
        for place, number in enumerate(arguments):
            lanes = builder.insert_element(lanes, number, ir.Constant(ir.IntType(32), place))
        return lanes

    return _LANES(types.float64, types.float64), generate


@intrinsic  # type: ignore[untyped-decorator,unused-ignore]
def _sum_of(typing_context: Any, lanes: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        lanes = arguments[0]
        for half in (4, 2, 1):
            mask = [(i + half) % N_LANES for i in range(N_LANES)]
            moved = ir.Constant(ir.VectorType(ir.IntType(32), N_LANES), mask)
            lanes = builder.fadd(lanes, builder.shuffle_vector(lanes, lanes, moved))
        return builder.extract_element(lanes, ir.Constant(ir.IntType(32), 0))

    return types.float64(_LANES), generate


def _zipped(builder: Any, one: Any, other: Any, run: int) -> list[Any]:
    """Return two vectors whose runs take turns: the even runs of both, and the odd ones."""
    mask = ir.VectorType(ir.IntType(32), N_LANES)
    made = []
    for odd in (0, run):
        taken = [(i & ~run) + odd + (N_LANES if i & run else 0) for i in range(N_LANES)]
        made.append(builder.shuffle_vector(one, other, ir.Constant(mask, taken)))
    return made


@intrinsic  # type: ignore[untyped-decorator,unused-ignore]
def _transpose(
    typing_context: Any, source: Any, first: Any, step: Any, target: Any, place: Any, stride: Any
) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        source, first, step, target, place, stride = arguments
        kinds = signature.args

        def at(kind: Any, array: Any, begin: Any, length: Any, number: int) -> Any:
            offset = builder.mul(length, ir.Constant(length.type, number))
            position = builder.add(begin, offset)
            part = types.void(kind, types.intp)
            return _place(context, builder, part, (array, position))

        lines = []
        for number in range(N_LANES):
            line = builder.load(at(kinds[0], source, first, step, number))
            line.align = 8
            lines.append(line)
        for run in (1, 2, 4):
            for i in range(N_LANES):
                if not i & run:
                    lines[i], lines[i + run] = _zipped(builder, lines[i], lines[i + run], run)
        for number, line in enumerate(lines):
            builder.store(line, at(kinds[3], target, place, stride, number)).align = 8
        return context.get_dummy_value()

    whole = types.intp
    return types.void(source, whole, whole, target, whole, whole), generate


def plain_load(array: Any, position: int) -> Any:
    """Return eight numbers of an array, from a position on."""
    return array[position : position + N_LANES].copy()


def plain_load_at(array: Any, places: Any, position: int) -> Any:
    """Return the numbers of an array at eight listed places, the list read from a position on."""
    return array[places[position : position + N_LANES]]


def plain_store(array: Any, position: int, lanes: Any) -> None:
    """Write eight numbers into an array, from a position on."""
    array[position : position + N_LANES] = lanes


def plain_plus(one: Any, other: Any) -> Any:
    """Return the sums of two times eight numbers."""
    return one + other


def plain_times(one: Any, other: Any) -> Any:
    """Return the products of two times eight numbers."""
    return one * other


def plain_alike(number: float) -> Any:
    """Return a number eight times."""
    return np.full(N_LANES, number)


def plain_plus_product(total: Any, one: Any, other: Any) -> Any:
    """Return eight numbers plus the products of two times eight."""
    return total + one * other


def plain_moved_up(before: Any, lanes: Any) -> Any:
    """Return eight numbers moved up by one place, the first from the last of those before."""
    return np.concatenate([before[-1:], lanes[:-1]])


def plain_moved_down(lanes: Any, after: Any) -> Any:
    """Return eight numbers moved down by one place, the last from the first of those after."""
    return np.concatenate([lanes[1:], after[:1]])


def plain_two(one: float, other: float) -> Any:
    """Return two numbers, and six zeros."""
    return np.array([one, other] + [0.0] * (N_LANES - 2))


def plain_sum_of(lanes: Any) -> Any:
    """Return the sum of eight numbers."""
    four = lanes[:4] + lanes[4:]
    two = four[:2] + four[2:]
    return two[0] + two[1]


def plain_transpose(
    source: Any, first: int, step: int, target: Any, place: int, stride: int
) -> None:
    """Write eight lines, `step` apart, as columns: as lines that are `stride` apart."""
    lines = np.stack([plain_load(source, first + i * step) for i in range(N_LANES)])
    for i in range(N_LANES):
        plain_store(target, place + i * stride, lines[:, i])


load: Any = _load if COMPILED else plain_load
"""Eight numbers of an array, from a position on."""
load_at: Any = _load_at if COMPILED else plain_load_at
"""The numbers of an array at eight places, which are listed from a position on: not negative."""
store: Any = _store if COMPILED else plain_store
"""Writes eight numbers into an array, from a position on."""
plus: Any = _plus if COMPILED else plain_plus
"""The sums of two times eight numbers."""
times: Any = _times if COMPILED else plain_times
"""The products of two times eight numbers."""
alike: Any = _alike if COMPILED else plain_alike
"""A number eight times."""
plus_product: Any = _plus_product if COMPILED else plain_plus_product
"""Eight numbers plus the products of two times eight, rounded once where the processor can."""
moved_up: Any = _moved_up if COMPILED else plain_moved_up
"""Eight numbers moved up by one place, the first from the last of the eight before."""
moved_down: Any = _moved_down if COMPILED else plain_moved_down
"""Eight numbers moved down by one place, the last from the first of the eight after."""
two: Any = _two if COMPILED else plain_two
"""Two numbers, and six zeros."""
sum_of: Any = _sum_of if COMPILED else plain_sum_of
"""The sum of eight numbers."""
transpose: Any = _transpose if COMPILED else plain_transpose
"""Writes eight lines of eight numbers of an array as columns into another."""


@inlined
def aligned(size):  # type: ignore[no-untyped-def]
    """Return room for numbers that begins with a cache line."""
    numbers = np.empty(size + N_LANES)
    first = -(numbers.ctypes.data // 8) % N_LANES
    return numbers[first : first + size]
