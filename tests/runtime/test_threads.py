"""Tasks that several threads do: their order, their errors, and tasks inside tasks."""

import multiprocessing
import os
import sys
import threading
import time

import pytest

from exchangeable.runtime import pool
from exchangeable.runtime.threads import Job, run, run_together


@pytest.mark.parametrize("n_jobs", [1, 2, 5])
def test_results_come_in_the_order_of_the_tasks(n_jobs):
    def slow_at_first(task):
        time.sleep(0.002 if task < 3 else 0)
        return task * task

    assert run(slow_at_first, range(20), n_jobs) == [task * task for task in range(20)]
    assert run(slow_at_first, [], n_jobs) == []


def test_several_threads_take_part():
    run(abs, range(2), 2)  # there is a helper now, idle as soon as its code is compiled
    deadline = time.monotonic() + 60
    while not pool._idle and time.monotonic() < deadline:
        time.sleep(0.05)
    both = threading.Barrier(2, timeout=30)

    def meet(task):
        both.wait()
        return threading.get_ident()

    assert len(set(run(meet, range(2), 2))) == 2


@pytest.mark.parametrize("bad", [0, 19])
def test_an_error_reaches_the_caller_and_threads_go_on_being_used(bad):
    def fail(task):
        if task == bad:
            raise ZeroDivisionError(f"task {task}")
        return task

    for _ in range(5):
        with pytest.raises(ZeroDivisionError, match=f"task {bad}"):
            run(fail, range(20), 3)
        assert run(abs, range(-9, 0), 3) == list(range(9, 0, -1))


def test_tasks_may_have_tasks_of_their_own():
    def outer(task):
        return sum(run(lambda inner: run(abs, [task, -inner], 2)[1], range(5), 3))

    assert run(outer, range(8), 4) == [10] * 8


def test_callers_in_many_threads_at_once():
    found = {}

    def call(name):
        found[name] = [run(lambda task: task + name, range(30), 2) for _ in range(20)]

    callers = [threading.Thread(target=call, args=(name,)) for name in range(6)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(60)
    assert found == {name: [list(range(name, name + 30))] * 20 for name in range(6)}


def test_small_tasks_do_not_make_more_and_more_threads():
    before = pool._n_helpers
    for _ in range(300):
        run(abs, [1, 2], 2)
    assert pool._n_helpers <= max(before, pool.CORES)


def test_a_helper_that_sleeps_wakes_up():
    for _ in range(3):
        test_several_threads_take_part()


def test_jobs_together_keep_their_results_apart():
    jobs = [Job(abs, [-1, -2], sum), Job(str, [3], lambda found: found[0])]
    assert run_together(jobs, 2) == [3, "3"]


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork on Windows")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_has_threads_of_its_own():
    run(abs, range(4), 2)

    def child():
        both = threading.Barrier(2, timeout=30)
        run(lambda task: both.wait(), range(2), 2)
        os._exit(7)

    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    process.join(60)
    assert process.exitcode == 7


def test_what_helpers_wait_with_is_loaded_before_the_first_of_them(monkeypatch):
    """Numba imports parts of itself then, which two threads must not do at the same time."""
    begun, spin = [], pool._spin

    def spinning(*arguments):
        begun.append(threading.current_thread())
        return spin(*arguments)

    monkeypatch.setattr(pool, "_idle", [])
    monkeypatch.setattr(pool, "_n_helpers", 0)
    monkeypatch.setattr(pool, "_spin", spinning)
    pool.ask(lambda: None, 2).end()
    assert begun[0] is threading.current_thread()
