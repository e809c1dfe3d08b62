"""The way of the notes of an `AsyncBolt`, from the event loop to the worker's thread.

The notes go into a queue. A pipe wakes the worker's thread up, and this thread takes the notes out. If too many notes wait, the
calls of ``execute`` have to wait for room.
"""

from __future__ import annotations

import asyncio
import os
import types
from collections import deque
from collections.abc import Coroutine, Generator
from typing import Any

from stormspark.spi import WorksOutside
from stormspark.worker.asynchronous.bolt_collector import Call, Note
from stormspark.worker.asynchronous.life import AsyncExecutor

__all__ = ["MOST_NOTES", "PassesNotes"]

#: How many notes are taken in at once. After so many notes, the other bolts get their turn. While so many wait, a call that
#: awaits something does not go on.
MOST_NOTES = 4096


class PassesNotes(AsyncExecutor, WorksOutside):
    """The part of a `stormspark.worker.asynchronous.bolt_executor.AsyncBoltExecutor` that passes notes to the worker's thread."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        #: The notes that the worker's thread has to carry out. Any thread adds notes, and the worker's thread takes them.
        self._notes: deque[Note] = deque()
        #: Whether the pipe has, or is about to have, a signal that the worker's thread has not read.
        self._signalled = False
        #: Loop: set when calls that wait for room for their notes may look again. `_lacks_room`: whether the worker's thread
        #: has to set it.
        self._room = asyncio.Event()
        self._lacks_room = False
        #: The ends of the pipe; -1 before it is open, and after it is closed.
        self._read = self._write = -1

    # -- on the worker's thread ------------------------------------------------------------------------------------

    def _begin_to_signal(self) -> None:
        """Open the pipe."""
        self._read, self._write = os.pipe()
        os.set_blocking(self._read, False)
        os.set_blocking(self._write, False)

    def fileno(self) -> int:
        """See `WorksOutside.fileno`."""
        return self._read

    def _take_signal(self) -> None:
        """Read the signal. Call this before the notes are taken, so that whoever adds a note from now on signals again."""
        try:
            os.read(self._read, 64)
            self._signalled = False
        except BlockingIOError:
            pass  # another thread is about to write the signal, and a later call reads it

    def _let_go_on(self) -> None:
        """Let the calls go on that wait for room, if there is room now."""
        if len(self._notes) < MOST_NOTES:
            self._lacks_room = False
            self._loop.call(self._room.set)

    def _end_reading(self) -> None:
        """Close the end of the pipe from which the worker's thread reads."""
        os.close(self._read)
        self._read = -1

    # -- on the loop ---------------------------------------------------------------------------------------------

    @types.coroutine
    def _paced(self, call: Call, execute: Coroutine[Any, Any, None]) -> Generator[Any, None, None]:
        """Run the coroutine of a call. Whenever it has awaited something, first wait for room for its notes.

        The emits themselves can't wait, because they are no coroutines.
        """
        error: BaseException | None = None
        while True:
            try:
                awaited = execute.send(None) if error is None else execute.throw(error)
            except StopIteration:
                return
            error = None
            try:
                yield awaited
                if self._is_full(call):
                    yield from self._has_room(call).__await__()
            except GeneratorExit:
                execute.close()
                raise
            except BaseException as raised:  # a cancellation, for the coroutine
                error = raised

    def _is_full(self, call: Call) -> bool:
        return not call.is_over and len(self._notes) + len(call.notes) >= MOST_NOTES

    async def _has_room(self, call: Call) -> None:
        while self._is_full(call) and not self._closed:
            self._room.clear()
            self._lacks_room = True
            if self._is_full(call):  # else the worker's thread has made room meanwhile
                await self._room.wait()

    def _pass_on(self, note: Note) -> None:
        """Put a note into the queue."""
        self._notes.append(note)
        if not self._signalled:
            self._signal()

    def _signal(self) -> None:
        """Wake the worker's thread up."""
        self._signalled = True
        try:
            os.write(self._write, b"!")
        except BlockingIOError:
            pass  # the pipe is full of signals
        except OSError:
            if not self._closed:
                raise

    def _end_writing(self) -> None:
        """Close the end of the pipe to which the loop writes."""
        if self._write >= 0:
            os.close(self._write)
            self._write = -1
