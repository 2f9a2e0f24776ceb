"""Eight numbers at a time: the compiled operations against their plain twins."""

import numpy as np
from numba import njit

from exchangeable.runtime.kernels import lanes


@njit
def combine(one, other, out):
    first, second = lanes.load(one, 1), lanes.load(other, 2)
    lanes.store(out, 3, lanes.plus(lanes.times(first, second), second))


@njit
def add_products(number, array, out):
    total = lanes.plus_product(lanes.load(array, 0), lanes.alike(number), lanes.load(array, 1))
    lanes.store(out, 0, total)


@njit
def turn(source, target):
    lanes.transpose(source, 1, 10, target, 2, 9)


@njit
def move(one, other, up, down):
    first, second = lanes.load(one, 0), lanes.load(other, 0)
    lanes.store(up, 0, lanes.moved_up(first, second))
    lanes.store(down, 0, lanes.moved_down(first, second))


@njit
def collect(array, places, out):
    lanes.store(out, 0, lanes.load_at(array, places, 2))
    lanes.store(out, 8, lanes.two(array[0], array[1]))
    return lanes.sum_of(lanes.load(array, 1))


@njit
def place(size):
    return lanes.aligned(size).ctypes.data % 64


def test_operations_round_as_those_of_numpy():
    rng = np.random.default_rng(0)
    one, other = rng.normal(size=(2, 12)) * 10.0 ** rng.integers(-100, 100, (2, 12))
    compiled, plain = np.zeros((2, 12))
    combine(one, other, compiled)
    first, second = lanes.plain_load(one, 1), lanes.plain_load(other, 2)
    product = lanes.plain_times(first, second)
    lanes.plain_store(plain, 3, lanes.plain_plus(product, second))
    np.testing.assert_array_equal(compiled, plain)
    assert compiled[3:11].all()


def test_products_are_added():
    array = np.random.default_rng(2).normal(size=9)
    compiled = np.zeros(8)
    add_products(0.3, array, compiled)
    plain = lanes.plain_plus_product(array[:8], lanes.plain_alike(0.3), array[1:])
    np.testing.assert_allclose(compiled, plain, rtol=1e-12)


def test_lines_become_columns():
    source = np.random.default_rng(1).random(90)
    compiled, plain = np.zeros((2, 80))
    turn(source, compiled)
    lanes.plain_transpose(source, 1, 10, plain, 2, 9)
    np.testing.assert_array_equal(compiled, plain)
    lines = source[1:81].reshape(8, 10)[:, :8]
    np.testing.assert_array_equal(compiled[2:74].reshape(8, 9)[:, :8], lines.T)


def test_numbers_move_by_one_place():
    one, other, up, down = np.concatenate(
        [np.random.default_rng(3).random((2, 8)), np.zeros((2, 8))]
    )
    move(one, other, up, down)
    np.testing.assert_array_equal(up, [one[7], *other[:7]])
    np.testing.assert_array_equal(down, [*one[1:], other[0]])
    np.testing.assert_array_equal(up, lanes.plain_moved_up(one, other))
    np.testing.assert_array_equal(down, lanes.plain_moved_down(one, other))


def test_numbers_are_collected_and_summed():
    rng = np.random.default_rng(4)
    array, places, out = rng.random(20), rng.integers(0, 20, 12).astype(np.int32), np.ones(16)
    found = collect(array, places, out)
    np.testing.assert_array_equal(out[:8], array[places[2:10]])
    np.testing.assert_array_equal(out[:8], lanes.plain_load_at(array, places, 2))
    np.testing.assert_array_equal(out[8:], lanes.plain_two(array[0], array[1]))
    assert found == lanes.plain_sum_of(array[1:9])
    np.testing.assert_allclose(found, array[1:9].sum(), rtol=1e-14)


def test_room_begins_with_a_cache_line():
    assert [place(size) for size in (1, 100, 50_000)] == [0, 0, 0]
