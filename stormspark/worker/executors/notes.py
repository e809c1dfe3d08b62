"""The notes that an executor's own thread makes for the worker's thread.

User code runs on the executor's thread. Queues, lanes and the ledger belong to the worker's thread, so the tuple path takes no
locks. When user code emits or acks, or when a call ends, the executor's thread *notes* a function. The worker's thread calls
the function later. It calls the functions of one instance in the order in which they were noted.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["InstanceEnded", "Mark", "Notes", "Question"]

_T = TypeVar("_T")
#: How many notes of one instance may wait. When this many wait, the instance's thread waits for room, as an executor of Storm
#: waits for room in a queue.
_MOST = 4096
#: How many notes of one instance are taken before another instance gets its turn.
_TURN = 1024


class InstanceEnded(BaseException):
    """Raised in code of an instance that has ended, to end that code. User code should let it through.

    This is no `Exception`, so that a handler for errors (``except Exception``) does not keep such code alive.
    """


class Question:
    """A function that an executor's thread wants the worker's thread to call. The executor's thread waits for the result."""

    __slots__ = ("_answered", "_call", "_error", "_result")

    def __init__(self, call: Callable[[], Any]) -> None:
        self._call = call
        self._answered = threading.Event()
        self._result: Any = None
        self._error: BaseException | None = None

    def __call__(self) -> None:
        """Call the function, on the worker's thread, unless it was called already."""
        if self._answered.is_set():
            return
        try:
            self._result = self._call()
        except Exception as error:
            self._error = error
        self._answered.set()

    def refuse(self, error: BaseException) -> None:
        """Make the thread that asks raise ``error``, unless its question was answered already."""
        if not self._answered.is_set():
            self._error = error
            self._answered.set()

    def answer(self) -> Any:
        """Wait for the result, and return it. Raises any error of the function."""
        self._answered.wait()
        if self._error is not None:
            raise self._error
        return self._result


class Mark:
    """A place among the notes of an instance. ``is_passed`` says whether all earlier notes were taken."""

    __slots__ = ("is_passed",)

    def __init__(self) -> None:
        self.is_passed = False

    def __call__(self) -> None:
        """Remember that the place was passed, on the worker's thread."""
        self.is_passed = True


class Notes:
    """The notes of one instance of a component, from its start to its end. ``name`` is the name of its task.

    ``announce`` is called with these notes when the first of them begins to wait. It has to make the worker's thread call
    `take`.
    """

    def __init__(self, name: str, announce: Callable[[Notes], None]) -> None:
        self._name, self._announce = name, announce
        self._notes: deque[Callable[[], object]] = deque()
        self._announced = False
        self._room = threading.Event()
        #: How many calls of the instance's timers are due and have not ended. Only the worker's thread uses this.
        self.calls_due = 0
        #: Whether the instance has ended. Its code may still run, but nothing that this code does has an effect.
        self.ended = False

    def __len__(self) -> int:
        return len(self._notes)

    # -- on the executor's thread, and on threads of user code ---------------------------------------------------

    def add(self, note: Callable[[], object]) -> None:
        """Note a function for the worker's thread. If too many notes wait, wait for room first.

        Raises `InstanceEnded` if the instance has ended.
        """
        while len(self._notes) >= _MOST and not self.ended:
            self._room.clear()
            if len(self._notes) >= _MOST and not self.ended:  # else `take` has made room meanwhile
                self._room.wait()
        if self.ended:
            raise self._ended_error()
        self._notes.append(note)
        if not self._announced:
            self._announced = True
            self._announce(self)
        if self.ended:  # `end` may have looked for questions before this note was added
            self._refuse_questions()

    def add_mark(self) -> Mark | None:
        """Mark this place in the order of the notes, without waiting for room. Return None if no note waits.

        Threads of user code call this. The worker's thread calls the mark like a note.
        """
        if not self._notes:
            return None
        mark = Mark()
        self._notes.append(mark)
        if not self._announced:
            self._announced = True
            self._announce(self)
        return mark

    def ask(self, call: Callable[[], _T]) -> _T:
        """Have the worker's thread call a function. Wait for the call, and return its result or raise its error."""
        question = Question(call)
        self.add(question)
        return question.answer()  # type: ignore[no-any-return]

    def _ended_error(self) -> InstanceEnded:
        return InstanceEnded(f"{self._name}: this instance has ended, and what it does has no effect")

    # -- on the worker's thread ----------------------------------------------------------------------------------

    def take(self) -> int:
        """Call the noted functions in order, but not too many at once. Return how many were called.

        If a function raises, its error is raised, and the later notes stay.
        """
        self._announced = False  # before reading, so that a note from now on is announced
        notes, taken = self._notes, 0
        try:
            while notes and taken < _TURN:
                note = notes.popleft()
                taken += 1
                note()
        finally:
            if not self._room.is_set():
                self._room.set()
            if notes and not self._announced:
                self._announced = True
                self._announce(self)
        return taken

    def answer_questions(self) -> None:
        """Answer the questions among the notes, and leave all other notes where they are.

        The worker's thread calls this if it waits for a call that may ask, and may not take the notes yet.
        """
        for note in self._notes.copy():
            if isinstance(note, Question):
                note()

    def end(self) -> None:
        """Drop all notes, because the instance ends. A thread that waits in `add` or `ask` gets an `InstanceEnded`."""
        self.ended = True
        self._refuse_questions()
        self._room.set()

    def _refuse_questions(self) -> None:
        while self._notes:
            try:
                note = self._notes.popleft()
            except IndexError:  # another thread has taken the last note
                return
            if isinstance(note, Question):
                note.refuse(self._ended_error())
