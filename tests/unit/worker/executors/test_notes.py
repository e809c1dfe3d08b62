"""What an executor's thread notes for the worker's thread."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from stormspark.worker.executors.notes import InstanceEnded, Notes
from tests.waiting import wait_for


class Taken:
    """Notes whose announcements are counted."""

    def __init__(self) -> None:
        self.announced = 0
        self.done: list[int] = []
        self.notes = Notes("bolt[0]", self._announce)

    def _announce(self, notes: Notes) -> None:
        self.announced += 1

    def note(self, number: int) -> Callable[[], object]:
        return lambda: self.done.append(number)


def test_notes_are_carried_out_in_order_and_announced_once() -> None:
    """A16: a note after the last one was taken is announced again."""
    taken = Taken()
    for number in range(3):
        taken.notes.add(taken.note(number))
    assert (taken.announced, len(taken.notes), taken.done) == (1, 3, [])
    assert taken.notes.take() == 3
    taken.notes.add(taken.note(3))
    assert (taken.announced, taken.done) == (2, [0, 1, 2])
    taken.notes.take()
    assert taken.done == [0, 1, 2, 3]


def test_an_error_in_a_note_leaves_the_later_ones_and_announces_them() -> None:
    """W22: the worker's thread handles the error, and goes on."""
    taken = Taken()
    taken.notes.add(lambda: 1 // 0)
    taken.notes.add(taken.note(1))
    with pytest.raises(ZeroDivisionError):
        taken.notes.take()
    assert taken.announced == 2
    taken.notes.take()
    assert taken.done == [1]


@pytest.mark.slow
def test_a_thread_that_has_noted_much_waits_until_notes_are_taken() -> None:
    """W26: as an emit waits in Storm for room in a queue."""
    taken, ended = Taken(), threading.Event()

    def flood() -> None:
        for number in range(5000):
            taken.notes.add(taken.note(number))
        ended.set()

    thread = threading.Thread(target=flood, daemon=True)
    thread.start()
    wait_for(lambda: len(taken.notes) == 4096, message="notes up to the limit")
    assert not ended.wait(0.05) and len(taken.notes) == 4096
    while not ended.is_set():
        taken.notes.take()
    taken.notes.take()
    thread.join()
    while len(taken.notes):
        taken.notes.take()
    assert taken.done == list(range(5000))


def test_an_instance_that_has_ended_notes_nothing() -> None:
    """B14: and what it noted before is dropped."""
    taken = Taken()
    taken.notes.add(taken.note(0))
    taken.notes.end()
    with pytest.raises(InstanceEnded):
        taken.notes.add(taken.note(1))
    taken.notes.take()
    assert taken.done == []


def test_a_question_is_answered_by_the_thread_that_takes_notes() -> None:
    """A28: it returns what the function returns, and raises what it raises."""
    taken = Taken()
    answers: list[object] = []

    def ask() -> None:
        answers.append(taken.notes.ask(threading.get_ident))
        try:
            taken.notes.ask(lambda: 1 // 0)
        except ZeroDivisionError as error:
            answers.append(type(error))

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    for _ in range(2):
        wait_for(lambda: len(taken.notes) == 1, message="the question")
        taken.notes.take()
    thread.join()
    assert answers == [threading.get_ident(), ZeroDivisionError]


def test_a_question_of_an_instance_that_ends_is_refused() -> None:
    """B14: nobody waits for ever."""
    taken = Taken()
    raised: list[BaseException] = []

    def ask() -> None:
        try:
            taken.notes.ask(lambda: None)
        except InstanceEnded as error:
            raised.append(error)

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    wait_for(lambda: len(taken.notes) == 1, message="the question")
    taken.notes.end()
    thread.join()
    assert "bolt[0]" in str(raised[0])
