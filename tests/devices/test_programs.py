"""Programs are compiled with options that suit a device, as far as the installed JAX knows them."""

import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("jax")
from exchangeable.devices import programs


def test_options_that_jax_does_not_know_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"xla_gpu_no_such_option": 3, "xla_gpu_autotune_level": 0}
    monkeypatch.setattr(programs, "QUICK", options)
    assert programs.quick_options.__wrapped__() == {"xla_gpu_autotune_level": 0}


def test_a_program_is_compiled_with_the_options(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "quick_options", lambda: {"xla_gpu_no_such_option": 3})

    @programs.program()
    def doubled(x: float) -> float:
        return 2 * x

    with pytest.raises(RuntimeError, match="xla_gpu_no_such_option"):
        doubled(np.float32(1.0))


ENDING = """
import sys, threading
import jax
from exchangeable.devices.programs import compile_ahead
from exchangeable.runtime import apart

begun = threading.Event()

class Program:
    def __init__(self, name):
        self.name = name

    def lower(self):
        return self

    def compile(self):
        begun.set()
        threading.main_thread().join()
        print("compiled", self.name)

compile_ahead([(Program("first"),), (Program("second"),)], jax.devices()[0], apart.begin)
begun.wait()
"""


def test_a_process_that_ends_waits_for_the_program_that_is_being_compiled() -> None:
    ended = subprocess.run([sys.executable, "-c", ENDING], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.split("\n") == ["compiled first", ""]
