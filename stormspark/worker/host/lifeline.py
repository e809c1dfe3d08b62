"""The lifeline of a worker process. It ends the process when nobody needs the process any more, so no orphans remain, whatever
is killed.

A worker must outlive the Spark task that started it, so the worker does not end with its parent. It ends in each of these
cases:

- The JVM of the Spark executor beside the worker is gone. If the system has pidfds, one shows this at once. A pidfd never refers
  to a later process with the same pid.
- The link to nimbus is cut, because the driver is gone or has given this worker up. Each side treats a cut link as the death of
  the other side. So the two sides disagree only until both have noticed the cut.
- Nothing came from nimbus for the length of the lease (`Welcome.lease_secs`), because the network is cut or a host froze.

In the same way, Storm's workers depend on their supervisor's heartbeat directory, and Heron's workers on the scheduler's
container. A parent-death signal would not work. The kernel sends that signal at the end of the *thread* that has forked the
process, and PySpark ends its Python processes when they are idle.
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
from stormspark.worker.host.messages import Adopt, Beat, Orders, ProcessId

__all__ = ["Lifeline", "executor_jvm", "is_alive", "this_machine", "this_process"]

#: At most this many seconds pass between two calls of ``look`` by `Lifeline`.
_LOOK_SECS = 0.25
#: While the topology stops, at most this many seconds pass between two beats, so that nimbus knows which calls are left.
_STOPPING_BEAT_SECS = 1.0


class Lifeline:
    """A watch over nimbus and the JVM of the Spark executor. It runs in a thread of its own, so that long supersteps don't stop
    heartbeats.

    ``obey`` is called with every `Orders` and `Adopt`. ``end`` is called with the reason once the process must end, and does
    not return. ``beat`` returns the next heartbeat. ``look`` is called several times per second.
    """

    def __init__(
        self,
        link: Connection,
        jvm: ProcessId | None,
        lease_secs: float,
        obey: Callable[[Orders | Adopt], None],
        end: Callable[[str], None],
        beat: Callable[[], Beat] = Beat,
        look: Callable[[], None] = lambda: None,
    ) -> None:
        self._link, self._jvm, self._lease = link, jvm, lease_secs
        self._obey, self._end, self._beat, self._look = obey, end, beat, look
        self._sending = threading.Lock()

    def send(self, message: object) -> None:
        """Send nimbus a message. If the link is cut, the message is lost, and `watch` ends the process soon."""
        with self._sending, contextlib.suppress(OSError):
            self._link.send(message)

    def watch(self) -> None:
        """Watch until the process has to end."""
        jvm = _pidfd(self._jvm)
        if self._jvm is not None and not is_alive(self._jvm):
            self._end("the Spark executor's JVM is gone")
        link = self._link.fileno()
        beat_secs = self._lease / 6
        pause = beat_secs
        next_beat = time.monotonic() + pause
        unanswered: float | None = None  # when the oldest beat without an answer was sent
        while True:
            timeout = min(_LOOK_SECS, beat_secs)
            ready = wait([link] if jvm is None else [link, jvm], timeout=timeout)
            self._look()
            now = time.monotonic()
            if jvm in ready or (self._jvm is not None and jvm is None and not is_alive(self._jvm)):
                self._end("the Spark executor's JVM is gone")
            try:
                if link in ready:
                    message = self._link.recv()
                    unanswered = None
                    if isinstance(message, Orders | Adopt):
                        self._obey(message)
                    if isinstance(message, Orders) and (message.stops or message.close):
                        pause = min(beat_secs, _STOPPING_BEAT_SECS)
                        next_beat = min(next_beat, now + pause)
                elif now >= next_beat:
                    next_beat = now + pause
                    # The silence counts from the oldest beat without an answer, and not from nimbus's last message. User code
                    # that held the interpreter's lock, or a host that froze, may have kept this thread from sending beats.
                    unanswered = now if unanswered is None else unanswered
                    with self._sending:
                        self._link.send(self._beat())
            except (OSError, EOFError):
                self._end("the link to the driver is cut")
            if unanswered is not None and now - unanswered > self._lease - beat_secs:
                self._end(f"nothing was heard from the driver for {self._lease} s")


def this_process() -> ProcessId:
    """Return the identity of the calling process."""
    return ProcessId(socket.gethostname(), os.getpid(), _started(os.getpid()) or 0)


def is_alive(process: ProcessId) -> bool:
    """Return whether exactly this process still runs on this host. A zombie does not count as running."""
    return _started(process.pid) == process.started


def executor_jvm() -> ProcessId | None:
    """Return the JVM that the calling Python process works for. It is the nearest ancestor with the name ``java``; None if
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
    """Read ``/proc/<pid>/stat``. Return the command's name, and the fields after the name (state, parent, ...); None if the
    read fails.
    """
    with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
        # The name stands in parentheses and may itself contain parentheses.
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
        return None  # the process is gone, or the kernel has no pidfds; then `watch` calls `is_alive` instead


def this_machine() -> str:
    """Name what can see the processes that this process can see: a boot of a machine, and a container."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return f"{file.read().strip()} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""
