"""A switchboard: serves any number of connections with few threads.

One thread waits for all connections at once. When a message comes, another thread receives it and handles it; meanwhile nobody
waits for this connection, so the messages of a connection are handled one after another, in their order. A thread that has
nothing to do takes the next message of any connection, and ends after a while. So there are as many threads as messages are
handled at the same time: one or two, except while workers start, when a question may have to wait for minutes.

A thread for each connection would be simpler, and costs no time either. But a driver with hundreds of workers would have hundreds
of threads, each with memory of its own, and everybody who looks at the driver's threads would have to look past them.
"""

from __future__ import annotations

import contextlib
import logging
import os
import selectors
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from stormspark.worker.host.connection import SILENCE_SECS, Connection

__all__ = ["Switchboard"]

_log = logging.getLogger(__name__)

#: How long a thread without work waits for some before it ends.
_IDLE_SECS = 5.0
#: How soon to try again if the system allows no further thread.
_AGAIN_SECS = 0.2


@dataclass(eq=False)
class _Line:
    """A connection, and what to do with its messages and at its end."""

    connection: Connection
    receive: Callable[[Any], None]
    ended: Callable[[BaseException], None]
    #: Why nothing can come any more, or None.
    silent: OSError | None = None


class Switchboard:
    """Calls ``receive`` with each message of a connection, and ``ended`` once, with the error that ended the connection.

    Messages of one connection never overlap, but those of different connections may. An error of ``receive`` ends the connection,
    too. The switchboard closes connections that have ended. Threads have the name ``name``.
    """

    def __init__(self, name: str, silence_secs: float = SILENCE_SECS) -> None:
        self._name, self._look_secs = name, silence_secs / 4
        self._changed = threading.Condition()
        self._lines: dict[
            int, _Line
        ] = {}  # those that nobody handles now, by descriptor, as the waiting thread knows them
        self._free: deque[_Line] = deque()  # those that the waiting thread has to wait for again
        self._waiting: deque[_Line] = deque()  # those with a message that no thread handles yet
        self._open = 0
        self._idle = 0
        self._closed = False
        self._thread: threading.Thread | None = None
        self._alarm: int | None = None

    def add(
        self, connection: Connection, receive: Callable[[Any], None], ended: Callable[[BaseException], None]
    ) -> None:
        """Serve a connection from now on, until it ends. After `close` it ends at once.

        Raises `OSError`, and leaves the connection to the caller, if the system allows no thread or descriptor to wait for it.
        """
        line = _Line(connection, receive, ended)
        with self._changed:
            closed = self._closed
            if not closed:
                if self._thread is None:
                    self._begin()
                self._free.append(line)
                self._ring()
            self._open += 1
        if closed:
            self._end(line, EOFError())

    def close(self) -> None:
        """End all threads once all connections have ended."""
        with self._changed:
            self._closed = True
            self._ring()

    # -- the thread that waits for all connections -----------------------------------------------------------

    def _begin(self) -> None:
        """Start the thread. If that fails, nothing is left of it, and the next connection tries again."""
        with contextlib.ExitStack() as undone:
            near, alarm = os.pipe()
            for end in (near, alarm):
                undone.callback(os.close, end)
                os.set_blocking(end, False)
            selector = undone.enter_context(selectors.DefaultSelector())
            selector.register(near, selectors.EVENT_READ)
            thread = threading.Thread(target=self._wait, args=(near, selector), name=self._name, daemon=True)
            try:
                thread.start()
            except RuntimeError as error:
                msg = f"the system allows no further thread: {error}"
                raise OSError(msg) from error
            undone.pop_all()
        self._thread, self._alarm = thread, alarm

    def _ring(self) -> None:
        """Make the waiting thread look around. The caller holds the lock."""
        if self._alarm is not None:
            with contextlib.suppress(BlockingIOError):  # it rings already
                os.write(self._alarm, b"!")

    def _wait(self, alarm: int, selector: selectors.BaseSelector) -> None:
        with selector:
            looked_at = time.monotonic()
            lacks = False
            while True:
                ready = selector.select(_AGAIN_SECS if lacks else self._look_secs)
                lacks = lacks and self._lacks_threads()
                for key, _ in ready:
                    if key.fd == alarm:
                        with contextlib.suppress(BlockingIOError):
                            os.read(alarm, 4096)
                    else:
                        selector.unregister(key.fd)
                        lacks |= self._hand_out(self._lines.pop(key.fd))
                if time.monotonic() - looked_at >= self._look_secs:
                    looked_at = time.monotonic()
                    for descriptor in self._silent():
                        selector.unregister(descriptor)
                        lacks |= self._hand_out(self._lines.pop(descriptor))
                with self._changed:
                    free, self._free = self._free, deque()
                    if self._closed and not self._open:
                        os.close(alarm)
                        assert self._alarm is not None
                        os.close(self._alarm)
                        self._alarm = None
                        return
                for line in free:
                    descriptor = line.connection.fileno()
                    self._lines[descriptor] = line
                    selector.register(descriptor, selectors.EVENT_READ)

    def _silent(self) -> list[int]:
        """Return the connections over which nothing came back for too long, each with its error."""
        silent = []
        for descriptor, line in self._lines.items():
            try:
                line.connection.look_for_silence()
            except OSError as error:
                line.silent = error
                silent.append(descriptor)
        return silent

    # -- the threads that handle messages --------------------------------------------------------------------

    def _hand_out(self, line: _Line) -> bool:
        with self._changed:
            self._waiting.append(line)
        return self._lacks_threads()

    def _lacks_threads(self) -> bool:
        """Find a thread for a message that waits, or start one. Return whether the system allows no further thread just now."""
        with self._changed:
            if self._idle >= len(self._waiting):
                self._changed.notify(len(self._waiting))
                return False
        try:
            threading.Thread(target=self._work, name=self._name, daemon=True).start()
        except RuntimeError:
            return True
        return False

    def _work(self) -> None:
        while True:
            with self._changed:
                self._idle += 1
                there = self._changed.wait_for(lambda: self._waiting, _IDLE_SECS)
                self._idle -= 1
                if not there:
                    return
                line = self._waiting.popleft()
            try:
                if line.silent is not None:
                    raise line.silent
                # Data may have come that is TLS's own, and no message. Then the connection goes back to the waiting thread at
                # once, and so it does after the last message: TLS keeps nothing of the next one (`Connection.fileno`).
                while line.connection.poll(0):
                    line.receive(line.connection.recv())
            except BaseException as error:
                self._end(line, error)
            else:
                self._give_back(line)
            del line

    def _give_back(self, line: _Line) -> None:
        with self._changed:
            self._free.append(line)
            self._ring()

    def _end(self, line: _Line, error: BaseException) -> None:
        if not isinstance(error, OSError | EOFError):
            _log.error(
                "the connection to a worker or a Spark task ends: its message can't be handled",
                exc_info=error,
            )
        try:
            try:
                line.ended(error)
            finally:  # and not before: until then, others may still use the connection
                line.connection.close()
        finally:
            with self._changed:
                self._open -= 1
                self._ring()
