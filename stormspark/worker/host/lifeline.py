"""How a worker process notices that it has outlived its purpose. No orphans, whatever is killed.

A worker must outlive the Spark task that started it, so it is nobody's child. Three things end it instead:

- the JVM of the Spark executor beside which it was started is gone (a pidfd tells at once, and can't mean
  another process);
- the link to nimbus is cut: the driver is gone, or has given this worker up (both sides hold a cut link for
  the other's death,
  so they never disagree for longer than that takes to notice);
- silence: nothing was heard from nimbus for the lease (a cut network, a host that froze).

Storm's workers hang on their supervisor's heartbeat directory in the same way, and Heron's on the scheduler's
container. A parent-death signal would not do: it fires when the *thread* that forked ends, and PySpark ends
its Python processes when they idle.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import wait

from stormspark.worker.host.connection import Connection
from stormspark.worker.host.messages import Adopt, Beat, Busy, Orders, ProcessId

__all__ = ["Lifeline", "executor_jvm", "is_alive", "this_process"]

#: How often `Lifeline` looks at what the worker is at.
_LOOK_SECS = 0.25


class Lifeline:
    """Watches the executor's JVM and nimbus; runs in a thread of its own so that long supersteps don't
    silence it.

    ``obey`` is called with every `Orders` and `Adopt`; ``end`` with the reason once the process must go, and must not
    return. ``busy`` says what the worker is at, for the heartbeat. ``look`` is called some times a second.
    """

    def __init__(
        self,
        link: Connection,
        jvm: ProcessId | None,
        lease_secs: float,
        obey: Callable[[Orders | Adopt], None],
        end: Callable[[str], None],
        busy: Callable[[], Busy | None] = lambda: None,
        look: Callable[[], None] = lambda: None,
    ) -> None:
        self._link, self._jvm, self._lease = link, jvm, lease_secs
        self._obey, self._end, self._busy, self._look = obey, end, busy, look
        self._sending = threading.Lock()

    def send(self, message: object) -> None:
        """Tell nimbus something; where the link is cut, `watch` is about to end the process."""
        with self._sending, contextlib.suppress(OSError):
            self._link.send(message)

    def watch(self) -> None:
        """Watch until the process has to end."""
        jvm = _pidfd(self._jvm)
        if self._jvm is not None and not is_alive(self._jvm):
            self._end("the Spark executor's JVM is gone")
        link = self._link.fileno()
        beat_secs = self._lease / 6
        next_beat = time.monotonic() + beat_secs
        asked: float | None = None  # since when a beat waits for its answer
        while True:
            timeout = min(_LOOK_SECS, beat_secs)
            ready = wait([link] if jvm is None else [link, jvm], timeout=timeout)
            self._look()
            now = time.monotonic()
            if jvm in ready or (self._jvm is not None and jvm is None and not is_alive(self._jvm)):
                self._end("the Spark executor's JVM is gone")
            try:
                if link in ready:
                    said = self._link.recv()
                    asked = None
                    if isinstance(said, Orders | Adopt):
                        self._obey(said)
                elif now >= next_beat:
                    next_beat = now + beat_secs
                    # Not since the last word: this thread may have been kept from asking, by user code that kept the interpreter
                    # or by a host that froze.
                    asked = now if asked is None else asked
                    with self._sending:
                        self._link.send(Beat(self._busy()))
            except (OSError, EOFError):
                self._end("the link to the driver is cut")
            if asked is not None and now - asked > self._lease - beat_secs:
                self._end(f"nothing was heard from the driver for {self._lease} s")


def this_process() -> ProcessId:
    """The identity of the calling process."""
    return ProcessId(socket.gethostname(), os.getpid(), _started(os.getpid()) or 0)


def is_alive(process: ProcessId) -> bool:
    """Whether exactly this process still runs on this host; a zombie does not."""
    return _started(process.pid) == process.started


def executor_jvm() -> ProcessId | None:
    """The JVM that the calling Python process works for: the nearest ancestor that is a ``java``; None if
    there is none.
    """
    pid = os.getpid()
    while pid > 1:
        fields = _stat(pid)
        if fields is None:
            return None
        name, rest = fields
        if name == "java":
            return ProcessId(socket.gethostname(), pid, int(rest[19]))
        pid = int(rest[1])
    return None


def _stat(pid: int) -> tuple[str, list[str]] | None:
    """The command's name and the fields after it of ``/proc/<pid>/stat`` (state, parent, ...), or None."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
        # The name stands in parentheses and may itself contain some.
        head, _, tail = file.read().rpartition(")")
        return head.partition("(")[2], tail.split()
    return None


def _started(pid: int) -> int | None:
    fields = _stat(pid)
    return None if fields is None or fields[1][0] in "ZX" else int(fields[1][19])


def _pidfd(process: ProcessId | None) -> int | None:
    if process is None or not hasattr(os, "pidfd_open"):
        return None
    try:
        return os.pidfd_open(process.pid)
    except OSError:
        return None  # gone already, or a kernel without it: then `is_alive` is asked at every beat
