"""Many connections, few threads: real sockets, without nimbus."""

from __future__ import annotations

import os
import selectors
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("pyspark")

from stormspark.spark import switchboard
from stormspark.spark.switchboard import Switchboard
from stormspark.worker.host.connection import Connection
from tests.waiting import PATIENCE_SECS, wait_for

NAME = "switchboard-of-a-test"


def threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == NAME]


class Rig:
    """A switchboard, and what it has said of each connection."""

    def __init__(self) -> None:
        self.board = Switchboard(NAME)
        self.ends: list[Connection] = []
        self.heard: list[list[Any]] = []
        self.errors: dict[int, BaseException] = {}
        self.ended = threading.Event()

    def connect(self, receive: Any = None) -> int:
        near, far = (Connection(one) for one in socket.socketpair())
        number = len(self.ends)
        self.ends.append(far)
        self.heard.append([])

        def end(error: BaseException) -> None:
            assert near.fileno() >= 0, "others may still use it"
            self.errors[number] = error
            self.ended.set()

        self.board.add(near, receive or self.heard[number].append, end)
        return number


@pytest.fixture
def rig(monkeypatch: pytest.MonkeyPatch) -> Iterator[Rig]:
    monkeypatch.setattr(switchboard, "_IDLE_SECS", 0.05)
    rig = Rig()
    yield rig
    for end in rig.ends:
        end.close()
    rig.board.close()
    wait_for(lambda: not threads())


def test_the_messages_of_a_connection_are_handled_in_their_order(rig: Rig) -> None:
    for _ in range(50):
        rig.connect()
    for number in range(20):
        for end in rig.ends:
            end.send(number)
    wait_for(lambda: all(len(heard) == 20 for heard in rig.heard))
    assert all(heard == list(range(20)) for heard in rig.heard)
    assert not rig.errors


def test_a_handler_that_waits_holds_up_no_other_connection_and_is_not_called_twice_at_once(rig: Rig) -> None:
    go_on, inside = threading.Event(), []

    def waits(message: int) -> None:
        inside.append(message)
        assert go_on.wait(PATIENCE_SECS)

    held = [rig.connect(waits) for _ in range(5)]
    for number in held:
        rig.ends[number].send(number)
        rig.ends[number].send(number)
    quick = rig.connect()
    rig.ends[quick].send("first")
    wait_for(lambda: rig.heard[quick] == ["first"] and len(inside) == 5)
    assert sorted(inside) == held
    go_on.set()
    wait_for(lambda: len(inside) == 10)


def test_there_are_few_threads_for_many_connections(rig: Rig) -> None:
    for _ in range(100):
        rig.connect()
    for end in rig.ends:
        end.send("hello")
        number = rig.ends.index(end)
        wait_for(lambda number=number: rig.heard[number] == ["hello"])  # type: ignore[misc]
    wait_for(lambda: len(threads()) < 10)  # a thread that is not back yet is not used again


def test_the_end_of_a_connection_is_told_once_with_its_error(rig: Rig) -> None:
    gone, fails = rig.connect(), rig.connect(lambda message: 1 / message)
    rig.ends[gone].send("last")
    rig.ends[gone].close()
    wait_for(lambda: gone in rig.errors)
    assert isinstance(rig.errors[gone], EOFError)
    assert rig.heard[gone] == ["last"]
    rig.ends[fails].send(0)
    wait_for(lambda: fails in rig.errors)
    assert isinstance(rig.errors[fails], ZeroDivisionError)
    with pytest.raises(EOFError):
        rig.ends[fails].recv()


def test_a_message_waits_for_a_thread_if_the_system_allows_none(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = rig.connect()  # starts the thread that waits
    refused, begin = threading.Event(), threading.Thread.start

    def start(thread: threading.Thread) -> None:
        if thread.name == NAME and not refused.is_set():
            refused.set()
            msg = "can't start new thread"
            raise RuntimeError(msg)
        begin(thread)

    monkeypatch.setattr(threading.Thread, "start", start)
    rig.ends[first].send("waits")
    wait_for(lambda: rig.heard[first] == ["waits"])
    assert refused.is_set()


@pytest.mark.parametrize("lacks", ["thread", "pipe", "selector"])
def test_if_the_first_thread_can_not_start_the_next_connection_is_served(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, lacks: str
) -> None:
    opened: list[int] = []
    pipe = os.pipe

    def opens() -> tuple[int, int]:
        opened.extend(ends := pipe())
        return ends

    def refuses(*_: object) -> None:
        raise (RuntimeError if lacks == "thread" else OSError)("no room")

    with monkeypatch.context() as patched:
        patched.setattr(os, "pipe", opens)
        where, what = {
            "thread": (threading.Thread, "start"),
            "pipe": (os, "pipe"),
            "selector": (selectors, "DefaultSelector"),
        }[lacks]
        patched.setattr(where, what, refuses)
        with pytest.raises(OSError, match="no room"):
            rig.connect()
    assert len(opened) == (0 if lacks == "pipe" else 2)
    for descriptor in opened:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(descriptor)
    second = rig.connect()
    rig.ends[second].send("served")
    wait_for(lambda: rig.heard[second] == ["served"])


def test_a_silent_path_ends_its_connection(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    cut = TimeoutError("the path to it is cut")

    def look(connection: Connection) -> None:
        raise cut

    monkeypatch.setattr(Connection, "look_for_silence", look)
    monkeypatch.setattr(rig.board, "_look_secs", 0.01)
    number = rig.connect()
    wait_for(lambda: rig.errors.get(number) is cut)


def test_after_the_close_connections_go_on_until_they_end_but_no_new_one_begins(rig: Rig) -> None:
    open_before = rig.connect()
    rig.board.close()
    rig.ends[open_before].send("still")
    wait_for(lambda: rig.heard[open_before] == ["still"])
    late = rig.connect()
    assert isinstance(rig.errors[late], EOFError)
    rig.ends[open_before].close()
    wait_for(lambda: not threads())
