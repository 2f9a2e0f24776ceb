"""The `exchangeable` command, and ``python -m exchangeable``.

Everything is imported in `main`, after Ctrl-C has a meaning: one line, and the exit status that
shells give to interrupted commands. Until then there are only modules that Python itself has loaded
or are built into it: `signal` would import a dozen others first.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from types import FrameType
else:
    import _signal as signal

INTERRUPTED = 130


def main() -> None:
    """Run a command."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)
    from exchangeable.cli import main as commands

    try:
        commands(prog_name="exchangeable")
    except SystemExit as end:
        if end.code == INTERRUPTED:  # to take all modules down again takes half a second
            _leave_at_once()
        raise
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the command has said how it ended


def _leave_at_once() -> None:
    from contextlib import suppress

    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):
            stream.flush()
    os._exit(INTERRUPTED)


def _leave(number: int, frame: "FrameType | None") -> None:
    """End at once: what is only being imported has nothing to clean up."""
    os.write(2, b"Interrupted: the command has not finished\n")
    os._exit(INTERRUPTED)


_leave.among_imports = True  # type: ignore[attr-defined]


if __name__ == "__main__":
    main()
