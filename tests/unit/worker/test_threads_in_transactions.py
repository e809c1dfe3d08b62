"""What threads of users' own emit, where batches are transactions: it ends no promise, and keeps no batch from its end."""

from __future__ import annotations

import queue
import threading
from typing import Any

import pytest

from stormspark import Bolt, Fields, Spout, TopologyBuilder
from stormspark.api.state import StatefulComponent
from tests.unit.worker.components import Collect, Script
from tests.unit.worker.rig import Rig

ONCE = {"stormspark.exactly.once": True}


class Echo(Bolt):
    """Whenever something is executed, its thread has emitted once more before that returns: there is always a call that waits."""

    def __init__(self, most: int) -> None:
        self.most = most

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector, self.emitted = collector, 0
        self.wanted: queue.Queue[threading.Event] = queue.Queue()
        threading.Thread(target=self.run, daemon=True).start()

    def run(self) -> None:
        while self.emitted < self.most:
            done = self.wanted.get()
            self.collector.emit((self.emitted,))
            self.emitted += 1
            done.set()

    def execute(self, tup: Any) -> None:
        self.collector.ack(tup)
        if self.emitted < self.most:
            done = threading.Event()
            self.wanted.put(done)
            assert done.wait(120)

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("value"))


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_a_thread_that_never_pauses_keeps_no_batch_from_its_end(workers: int) -> None:
    """C42, W26: what comes while a batch is worked off is for the next one, and none of it is lost."""
    builder = TopologyBuilder()
    builder.set_spout("once", Script([(0,)]))
    builder.set_bolt("echo", Echo(200)).shuffle_grouping("once").shuffle_grouping("echo")
    builder.set_bolt("collect", Collect()).shuffle_grouping("echo")
    rig = Rig(builder, workers, **ONCE)
    (collect,), (echo,) = rig.users("collect"), rig.users("echo")
    for batch in range(1, 51):
        rig.batches(1)
        assert len(collect.seen) <= batch, "a batch went on as long as its thread did"
    assert echo.emitted >= 49 / workers
    for _ in range(1000):
        if len(collect.seen) == 200:
            break
        rig.batches(1)
    assert [value for _, value in collect.seen] == list(range(200))
    assert rig.errors == []


class Position(StatefulComponent, Spout):
    """Its thread emits, and moves the position that is its state."""

    def init_state(self, state: Any) -> None:
        self.state = state

    def open(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector = collector
        self.raised: list[BaseException] = []

    def work(self) -> None:
        try:
            self.collector.emit((1,))
        except Exception as error:
            self.raised.append(error)

    def next_tuple(self) -> None:
        if not self.raised:
            thread = threading.Thread(target=self.work)
            thread.start()
            thread.join(120)

    def pre_save(self, checkpoint_id: int) -> None:
        self.state["position"] = 1

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("value"))


def test_a_spout_with_state_emits_on_its_own_thread_only() -> None:
    """C37, C42: a position and the tuple before it could come into different batches; the thread hears why."""
    builder = TopologyBuilder()
    builder.set_spout("a", Position())
    builder.set_bolt("b", Collect()).shuffle_grouping("a")
    rig = Rig(builder, 1, **ONCE)
    rig.batches(3)
    (spout,), (bolt,) = rig.users("a"), rig.users("b")
    (raised,) = spout.raised
    assert "a[0]: a thread of its own has emitted" in str(raised) and "queue.Queue" in str(raised)
    assert [str(raised) in error for error in rig.errors] == [True]
    assert bolt.seen == []
