"""A process that user code forks takes no connection along, and does not go on as a second worker."""

from __future__ import annotations

import os
import socket
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from stormspark import TopologyBuilder
from stormspark.worker.host.connection import Connection
from stormspark.worker.host.key import Key
from stormspark.worker.host.link import Door, dial
from tests.unit.worker.executors.runs import Numbers, Repeat, Told, running, until

pytestmark = pytest.mark.skipif(
    not os.path.isdir("/proc/self/fd"), reason="reads descriptors as Linux shows them"
)


def fork() -> int:
    """Fork, as user code does that knows nothing of the other threads."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def exit_code_of(check: Callable[[], bool]) -> int:
    """Run a check in a process that is forked: 0 if it is true."""
    child = fork()
    if not child:
        code = 2
        try:
            code = not check()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def open_sockets() -> set[str]:
    """The sockets that this process has."""
    found = set()
    for descriptor in os.listdir("/proc/self/fd"):
        try:
            found.add(os.readlink(f"/proc/self/fd/{descriptor}"))
        except FileNotFoundError:  # the one by which the folder was read
            continue
    return {name for name in found if name.startswith("socket:")}


def test_no_connection_and_no_door_is_open_in_a_child(tmp_path: Path) -> None:
    """Otherwise nobody would notice that a worker was killed, as long as its child lives."""
    before = open_sockets()
    key = Key(b"k" * 32)

    def echo(connection: Connection) -> None:
        while True:
            connection.send(connection.recv())

    door = Door(str(tmp_path / "door"), None, key, echo, "echo")
    with dial(door.endpoint, key) as connection:
        connection.send("before")
        assert connection.recv() == "before"
        here = open_sockets() - before
        assert len(here) == 3
        assert exit_code_of(lambda: not open_sockets() & here) == 0
        connection.send("after")
        assert connection.recv() == "after"
    door.close()


def test_a_child_that_holds_a_lock_of_nobody_still_closes(tmp_path: Path) -> None:
    """A thread that does not exist in the child may have held the lock of a connection."""
    near, far = socket.socketpair()
    connection = Connection(near)
    here = open_sockets()
    with connection._lock:
        assert exit_code_of(lambda: len(here - open_sockets()) >= 1) == 0
    connection.close()
    far.close()


class ForksAndReturns(Repeat):
    """Forks in ``execute`` and forgets to end the new process."""

    waits = True

    def __init__(self, told: Told, folder: Path) -> None:
        self.told, self.folder = told, folder

    def execute(self, tup: object) -> None:
        """Fork, once, and note the processes that execute a tuple."""
        (self.folder / f"{tup[0]}-{os.getpid()}").touch()  # type: ignore[index]
        if tup[0] == 1:  # type: ignore[index]
            child = fork()
            if child:
                self.told("child", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        super().execute(tup)


def test_a_child_that_returns_from_execute_executes_no_more_tuples(tmp_path: Path) -> None:
    """It ends by itself, and each tuple is acked once."""
    told = Told("forks")
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers([1, 2, 3], told))
    builder.set_bolt("forks", ForksAndReturns(told, tmp_path)).shuffle_grouping("numbers")
    with running(builder.create_topology("forks")) as topology:
        until(lambda: len([what for what, *_ in told.all if what == "ack"]) == 3)
        topology.run_until_idle()
    assert ("child", 0) in told.all
    assert sorted(file.name for file in tmp_path.iterdir()) == [f"{n}-{os.getpid()}" for n in (1, 2, 3)]
