"""What nimbus does with connections: none holds it up, and what one was promised goes with it."""

from __future__ import annotations

import threading
from typing import Any

import pytest

pytest.importorskip("pyspark")

from stormspark.spark import nimbus as nimbus_module
from stormspark.spark.nimbus import Nimbus
from stormspark.worker.link import dial
from stormspark.worker.messages import Adopt, Hello, Locate, ProcessId, Ready, StartHere, Welcome

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


def test_a_worker_that_does_not_read_is_given_up(frozen):
    frozen.adopt(0, [Adopt(1, LARGE)])
    with frozen._changed:
        assert frozen._changed.wait_for(lambda: frozen._assignments.broken, 30)
    assert "worker 0 was lost" in frozen.broken


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
