"""What nimbus does with connections: none holds it up, and what one was promised goes with it."""

from __future__ import annotations

import errno
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from queue import Queue
from typing import Any

import pytest

pytest.importorskip("pyspark")

from stormspark.errors import WorkerLostError
from stormspark.spark import forwarder as forwarder_module
from stormspark.spark import nimbus as nimbus_module
from stormspark.spark.forwarder import Attempt
from stormspark.spark.nimbus import Nimbus
from stormspark.spark.switchboard import Switchboard
from stormspark.worker.host.launch import LaunchError
from stormspark.worker.host.link import Door, Endpoint, dial
from stormspark.worker.host.messages import (
    Adopt,
    Hello,
    Locate,
    ProcessId,
    Ready,
    Request,
    StartHere,
    Welcome,
)
from tests.waiting import PATIENCE_SECS, wait_for

LARGE: list[Any] = [(None, bytes(1_000_000))] * 30  # more than a socket holds


@pytest.fixture
def make(tmp_path):
    made = []

    def new(workers, state_of=lambda worker: (), **options):
        nimbus = Nimbus(
            b"plan",
            workers,
            folder=tmp_path,
            address=None,
            lease_secs=1,
            start_timeout_secs=60,
            on_trouble=threading.Event().set,
            state_of=state_of,
            **options,
        )
        made.append(nimbus)
        return nimbus

    yield new
    for nimbus in made:
        nimbus.close()


def ask(connection, worker):
    connection.send(Locate(0, worker))
    return connection.recv()


@pytest.fixture
def frozen(make, monkeypatch):
    """Nimbus, and a worker that is ready and reads nothing any more."""
    monkeypatch.setattr(nimbus_module, "_SEND_SECS", 0.2)
    nimbus = make(1)
    with dial(nimbus.endpoint, nimbus.key) as forwarder, dial(nimbus.endpoint, nimbus.key) as worker:
        assert isinstance(ask(forwarder, 0), StartHere)
        worker.send(Hello(0, 0, ProcessId("elsewhere", 1, 1)))
        assert isinstance(worker.recv(), Welcome)
        worker.send(Ready(nimbus.endpoint))
        ask(forwarder, 0)
        yield nimbus


@pytest.mark.slow
def test_a_worker_that_does_not_read_is_given_up(frozen):
    frozen.adopt(0, [Adopt(1, LARGE)])
    with frozen._changed:
        assert frozen._changed.wait_for(lambda: frozen._assignments.broken, 30)
    assert "worker 0 was lost" in frozen.broken


@pytest.mark.slow
def test_a_worker_that_stands_still_while_it_is_sent_much_holds_nobody_up(frozen):
    """Nor does it keep nimbus from losing it when its lease is over."""
    sending = threading.Thread(target=frozen.adopt, args=(0, [Adopt(1, LARGE)]))
    sending.start()
    frozen.activate(False)
    frozen._lose(0, 0, "it was silent")
    sending.join(30)
    assert not sending.is_alive()
    assert frozen.broken is not None


def test_all_that_a_process_was_asked_to_start_is_for_others_when_it_goes(make):
    """It has one connection, whatever number of workers it asks for."""
    nimbus = make(3)
    with dial(nimbus.endpoint, nimbus.key) as one, dial(nimbus.endpoint, nimbus.key) as other:
        assert ask(one, 0) == StartHere(0, None)
        assert ask(one, 2) == StartHere(0, None)
        assert ask(other, 1) == StartHere(0, None)
        one.close()
        for worker in (0, 2):
            assert ask(other, worker) == StartHere(1, None), "another life: of the first nobody knows"
    nimbus.validate()


@pytest.fixture
def full(monkeypatch):
    """Nimbus's switchboards take no connection."""

    def refuses(*_):
        raise OSError("the system allows no further thread")

    return partial(monkeypatch.setattr, Switchboard, "add", refuses)


def test_what_a_process_was_asked_to_start_is_for_others_if_it_can_not_be_served(make, full, monkeypatch):
    nimbus = make(1)
    with dial(nimbus.endpoint, nimbus.key) as one:
        full()
        assert ask(one, 0) == StartHere(0, None)
        with pytest.raises((EOFError, OSError)):
            one.recv()
        monkeypatch.undo()
    with dial(nimbus.endpoint, nimbus.key) as other:
        assert ask(other, 0) == StartHere(1, None)
    assert len(nimbus._forwarders) == 1


def test_a_worker_that_can_not_be_served_is_given_up(make, full):
    nimbus = make(2)
    with dial(nimbus.endpoint, nimbus.key) as forwarder, dial(nimbus.endpoint, nimbus.key) as worker:
        assert isinstance(ask(forwarder, 0), StartHere)
        # Only a switchboard answers a second question, so it has this connection now.
        assert isinstance(ask(forwarder, 1), StartHere)
        full()
        worker.send(Hello(0, 0, ProcessId("elsewhere", 1, 1)))
        assert isinstance(worker.recv(), Welcome)
        with pytest.raises((EOFError, OSError)):
            worker.recv()
    assert "its connection broke: the system allows no further thread" in nimbus.broken
    assert not nimbus._links


@pytest.fixture
def attempt(make):
    """What a forwarder knows, of a topology whose one worker has said hello."""
    nimbus = make(1)
    attempt = Attempt("t", 0, 0, "", 1, 1, nimbus.endpoint, nimbus.key, "", 60, silence_secs=1)
    with dial(nimbus.endpoint, nimbus.key) as worker, dial(nimbus.endpoint, nimbus.key) as other:
        assert isinstance(ask(other, 0), StartHere)
        worker.send(Hello(0, 0, ProcessId("elsewhere", 1, 1)))
        assert isinstance(worker.recv(), Welcome)
        yield attempt, nimbus, worker
    forwarder_module._nimbus_of(attempt).close()


def ready_at(worker, endpoint):
    worker.send(Ready(endpoint))
    worker.recv()


def test_a_worker_that_can_not_be_dialled_is_lost_to_the_path(attempt):
    """Nimbus hears it, and so the process is there."""
    knows, nimbus, worker = attempt
    with socket.create_server(("127.0.0.1", 0)) as closed:
        nobody = closed.getsockname()
    ready_at(worker, Endpoint("/on/another/host", nobody))
    with pytest.raises(WorkerLostError, match="can't be reached"):
        forwarder_module._Route(knows, 0)
    assert nimbus.broken_outside


@pytest.mark.parametrize(
    ("error", "outside"),
    [
        (TimeoutError("nothing came back from 10.0.0.2 port 4711 for 15 s: the path to it is cut"), True),
        (OSError(errno.EHOSTUNREACH, "No route to host"), True),
        (ConnectionResetError(), False),
        (BrokenPipeError(), False),
        (EOFError(), False),
    ],
    ids=["silent", "no route", "reset", "pipe", "ended"],
)
def test_a_connection_that_breaks_tells_the_path_from_the_process(
    attempt, tmp_path, monkeypatch, error, outside
):
    knows, nimbus, worker = attempt

    def takes_in(connection):
        while True:
            connection.recv_bytes()

    door = Door(str(tmp_path / "requests"), None, knows.key, takes_in, "request")
    ready_at(worker, door.endpoint)
    route = forwarder_module._Route(knows, 0)

    def fails(*_):
        raise error

    monkeypatch.setattr(route._connection, "recv", fails)
    monkeypatch.setattr(route._connection, "poll", lambda _: True)
    with pytest.raises(WorkerLostError, match="its connection broke"):
        list(route.exchange(Request(0, 0, 7, 0, 2, 0), ()))
    assert nimbus.broken_outside is outside
    door.close()


def test_a_folder_for_logs_that_is_away_when_a_worker_is_started_again_is_waited_for(attempt, monkeypatch):
    knows, nimbus, worker = attempt
    worker.close()
    nimbus._lose(0, 0, "killed")
    nimbus.begin_attempt(1)

    def start(*_):
        raise LaunchError("the folder for logs can't be used on host h: [Errno 116] Stale file handle")

    monkeypatch.setattr(forwarder_module, "start", start)
    with pytest.raises(LaunchError):
        forwarder_module._Route(replace(knows, attempt=1), 0)
    assert nimbus.error is None and nimbus.broken_outside


class Shared:
    """A forwarder whose partition two workers share. Another process starts the second one, and takes its time."""

    def __init__(self, nimbus):
        self.attempt = Attempt("t", 0, 0, "", 2, 1, nimbus.endpoint, nimbus.key, "", 60, partitions=1)
        self.starter = dial(nimbus.endpoint, nimbus.key)
        assert isinstance(ask(self.starter, 1), StartHere)
        #: What the forwarder has asked nimbus.
        self.asked = Queue()
        self._pool = ThreadPoolExecutor(1)

    def start(self):
        """Let the forwarder start what nimbus orders, and return when it waits for the second worker."""
        started = self._pool.submit(forwarder_module._start_side_by_side, self.attempt, range(2))
        assert [self.asked.get(timeout=PATIENCE_SECS).worker for _ in range(2)] == [0, 1]
        return started


@pytest.fixture
def shared(make, monkeypatch):
    nimbus = make(2)
    shared = Shared(nimbus)
    locate = nimbus._locate

    def noted(question):
        shared.asked.put(question)
        return locate(question)

    monkeypatch.setattr(nimbus, "_locate", noted)
    yield shared, nimbus
    nimbus.close()
    shared.starter.close()
    forwarder_module._nimbuses.pop(nimbus.key, None)


def comes_up(nimbus, worker):
    """Play a worker's process until it has opened its tasks, and return its connection."""
    process = dial(nimbus.endpoint, nimbus.key)
    process.send(Hello(worker, 0, ProcessId("elsewhere", 1 + worker, 1)))
    assert isinstance(process.recv(), Welcome)
    ready_at(process, nimbus.endpoint)
    return process


def test_a_worker_is_started_while_another_process_still_starts_one_of_the_same_partition(
    shared, monkeypatch
):
    """Nimbus would give up the first one, because no process for it says hello."""
    forwarder, nimbus = shared
    up = Queue()
    monkeypatch.setattr(forwarder_module, "start", lambda launch, _: up.put(comes_up(nimbus, launch.worker)))
    started = forwarder.start()
    with up.get(timeout=PATIENCE_SECS):
        assert not started.done()
        with comes_up(nimbus, 1):
            started.result(timeout=PATIENCE_SECS)
            assert nimbus.broken is None  # both processes are there


def test_a_start_that_fails_while_another_process_starts_a_worker_is_told_at_once(shared, monkeypatch):
    forwarder, nimbus = shared
    waits = threading.Event()

    def start(*_):
        waits.wait(PATIENCE_SECS)
        raise LaunchError("no memory")

    monkeypatch.setattr(forwarder_module, "start", start)
    started = forwarder.start()
    waits.set()
    with pytest.raises(LaunchError, match="no memory"):
        started.result(timeout=PATIENCE_SECS)
    with dial(nimbus.endpoint, nimbus.key) as other:
        assert "no memory" in ask(other, 1).reason, "and nobody has given up the other one"


def test_a_start_that_breaks_ends_the_forwarder_and_others_may_start_the_worker(shared, monkeypatch):
    """Whatever broke, it was neither the worker nor its host."""
    forwarder, nimbus = shared
    waits = threading.Event()

    def start(*_):
        waits.wait(PATIENCE_SECS)
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(forwarder_module, "start", start)
    started = forwarder.start()
    waits.set()
    with pytest.raises((RuntimeError, WorkerLostError)):
        started.result(timeout=PATIENCE_SECS)
    with comes_up(nimbus, 1), dial(nimbus.endpoint, nimbus.key) as other:
        assert ask(other, 0) == StartHere(1, None)


def test_nimbus_hangs_up_at_the_end_of_the_topology(make):
    """Spark's Python processes live on, and would keep a connection and a thread of the driver for each topology."""
    nimbus = make(2)
    with dial(nimbus.endpoint, nimbus.key) as one, dial(nimbus.endpoint, nimbus.key) as other:
        assert isinstance(ask(one, 0), StartHere)
        assert isinstance(ask(other, 1), StartHere)
        nimbus.close()
        for forwarder in (one, other):
            wait_for(partial(forwarder.poll, 0))
            with pytest.raises((EOFError, OSError)):
                forwarder.recv()
