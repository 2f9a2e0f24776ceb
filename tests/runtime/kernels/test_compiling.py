"""While kernels are compiled the user is told, and the garbage collector waits."""

import gc
import io
import logging
from types import SimpleNamespace

import pytest

from exchangeable.runtime.kernels import compiling


def event(module="exchangeable.families.urns.kernels", name="cover"):
    function = SimpleNamespace(__module__=module, __name__=name)
    dispatcher = SimpleNamespace(py_func=function, _compiler=SimpleNamespace())
    return SimpleNamespace(data={"dispatcher": dispatcher})


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def listener():
    return compiling.CompilationListener()


def test_the_log_is_told_once(listener, caplog):
    with caplog.at_level(logging.INFO, "exchangeable"):
        for _ in range(2):
            listener.on_start(event())
            listener.on_end(event())
    assert [record.message for record in caplog.records] == [
        "compiling, first use only; `exchangeable warmup` compiles everything ahead"
    ]


def test_a_terminal_sees_each_outermost_kernel_and_an_empty_line_at_the_end(listener, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    listener.on_start(event())
    listener.on_start(event(name="inner"))
    listener.on_end(event(name="inner"))
    listener.on_end(event())
    listener.on_start(event(name="next"))
    listener.on_end(event(name="next"))
    shown = terminal.getvalue().split(compiling.CLEAR)
    assert shown == [
        "",
        "compiling, first use only: 1 (families.urns.kernels.cover)",
        "",
        "compiling, first use only: 2 (families.urns.kernels.next)",
        "",
    ]


def test_nothing_is_written_where_nobody_watches(listener, monkeypatch):
    file = io.StringIO()
    monkeypatch.setattr("sys.stderr", file)
    listener.on_start(event())
    listener.on_end(event())
    assert file.getvalue() == ""


@pytest.mark.parametrize("enabled", [True, False])
def test_the_collector_waits_and_is_then_as_before(listener, enabled):
    before = gc.isenabled()
    try:
        (gc.enable if enabled else gc.disable)()
        listener.on_start(event())
        listener.on_start(event("numba.np.arrayobj"))
        listener.on_end(event("numba.np.arrayobj"))
        assert not gc.isenabled()
        listener.on_end(event())
        assert gc.isenabled() == enabled
    finally:
        (gc.enable if before else gc.disable)()


@pytest.mark.parametrize("module", ["somebody.else", None])
def test_functions_of_others_are_left_alone(listener, caplog, module):
    with caplog.at_level(logging.INFO):
        listener.on_start(event(module))
        assert gc.isenabled()
        listener.on_end(event(module))
    assert not caplog.records
