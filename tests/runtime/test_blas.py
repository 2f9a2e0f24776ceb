"""Threads of BLAS are few for the length of a block, in all libraries that there are."""

import threadpoolctl

from exchangeable.runtime.blas import blas_threads


def threads_of_blas() -> list[int]:
    found = threadpoolctl.threadpool_info()
    return [library["num_threads"] for library in found if library["user_api"] == "blas"]


def test_every_blas_has_one_thread_and_then_as_many_as_before() -> None:
    with blas_threads(3):
        before = threads_of_blas()
        assert before
        assert set(before) == {3}
        with blas_threads():
            assert threads_of_blas() == [1] * len(before)
        assert threads_of_blas() == before
