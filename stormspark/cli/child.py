"""Runs a program to its end, and passes on the signals that should end it, so that the program can end in good order."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Self

__all__ = ["BY_SIGNAL", "DRIVER_FILE", "ChildProgram"]

#: The variable with the name of a file for the pid of the driver that a program starts.
DRIVER_FILE = "STORMSPARK_DRIVER_FILE"
#: Shells add this to the number of the signal that ended a program.
BY_SIGNAL = 128


class ChildProgram:
    """Runs one program, within a ``with`` block in which signals do not end this process without its ``finally`` clauses.

    Before the program runs, a signal raises `SystemExit`. While it runs, this process waits for its end:

    - Signals are passed on. The program has a session of its own, so a signal for the terminal or for this process's group comes
      to it by this way alone.
    - If the program has started another one, whose pid is in the file ``inner``, that one gets them. spark-submit is such a
      program: its JVM would end Spark at once, while the topology's driver could still end its batch.

    Afterwards, until the block ends, signals have no effect. Signals that this process was told to ignore stay ignored. Only the
    main thread gets signals; in any other thread, the handlers stay as they are.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._inner: Path | None = None
        self._started = False
        #: The last signal that has come; None if none has.
        self.received: int | None = None
        #: What has come before the process was known.
        self._early: list[int] = []
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                # Another program may have set a handler of its own, in C: that one can't be set again.
                if signal.getsignal(number) not in (signal.SIG_IGN, None):
                    self._before[number] = signal.signal(number, self._received)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        while self._before:
            signal.signal(*self._before.popitem())

    def run(
        self, command: Sequence[str], inner: Path | None = None, environment: Mapping[str, str] | None = None
    ) -> int:
        """Run the program and return its exit code. If a signal has ended it, that is the one by which shells tell so.

        A driver that the program starts writes its pid into the file ``inner``. The program has the variables of this process,
        and those of ``environment``.

        Raises OSError if it can't be started.
        """
        self._started = True
        self._inner = inner
        variables = {**os.environ, **(environment or {})}
        if inner is not None:
            variables[DRIVER_FILE] = str(inner)
        self._process = subprocess.Popen(command, env=variables, start_new_session=True)
        while self._early:
            self._pass_on(self._process, self._early.pop())
        code = self._process.wait()
        return code if code >= 0 else BY_SIGNAL - code

    def leave(self) -> None:
        """From now on, signals have no effect: what is left to do takes no time."""
        self._started = True

    def _received(self, number: int, frame: FrameType | None) -> None:
        self.received = number
        if not self._started:
            self._started = True  # the `finally` clauses run undisturbed
            raise SystemExit(BY_SIGNAL + number)
        if self._process is None:
            self._early.append(number)
        elif self._process.returncode is None:
            self._pass_on(self._process, number)

    def _pass_on(self, process: subprocess.Popen[bytes], number: int) -> None:
        """Tell the inner program; if there is none yet, or none any longer, tell the program."""
        if self._inner is not None:
            with contextlib.suppress(OSError, ValueError):
                os.kill(int(self._inner.read_text(encoding="ascii")), number)
                return
        process.send_signal(number)
