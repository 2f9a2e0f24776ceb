"""Short loops over arrays that are inlined where they are used.

Numba would compile ``target[:] = source`` with its checks of shapes, whose messages pull in all its
handling of strings: three seconds the first time. Functions that are compiled by themselves also
cost more than their code: they are optimised once alone and once more in each caller. So these are
inlined before anything is compiled.
"""

from exchangeable.runtime.kernels.cache import compiled, for_kernels

inlined = compiled(inline="always")
"""For loops of a few lines, which are inlined before anything is compiled."""
helper = for_kernels(forceinline=True)
"""For functions that several kernels call, which are linked with each of them."""


@inlined
def copy(source, target):  # type: ignore[no-untyped-def]
    """Write an array over another of the same length."""
    for i in range(source.size):
        target[i] = source[i]


@inlined
def fill(target, value):  # type: ignore[no-untyped-def]
    """Write one value everywhere."""
    for i in range(target.size):
        target[i] = value


@inlined
def divide(target, divisor):  # type: ignore[no-untyped-def]
    """Divide all entries."""
    for i in range(target.size):
        target[i] /= divisor


@inlined
def total(values):  # type: ignore[no-untyped-def]
    """Return the sum of floating-point numbers, added one after the other."""
    result = 0.0
    for i in range(values.size):
        result += values[i]
    return result


@inlined
def largest(values):  # type: ignore[no-untyped-def]
    """Return the largest of at least one value, none of them NaN."""
    result = values[0]
    for i in range(1, values.size):
        result = max(result, values[i])
    return result


@inlined
def where_largest(values):  # type: ignore[no-untyped-def]
    """Return the first position of the largest of at least one value, none of them NaN."""
    position = 0
    for i in range(1, values.size):
        if values[i] > values[position]:
            position = i
    return position
