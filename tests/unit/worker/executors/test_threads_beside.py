"""Threads of bolts that run on the worker's thread are still noticed once an executor's own code has used threads (W26)."""

from __future__ import annotations

from threading import Thread
from typing import Any

from stormspark import TopologyBuilder
from tests.unit.worker.executors.runs import Numbers, Repeat, Told, running, tasks, until


class InAThread(Repeat):
    """Emits and acks in a thread of its own, and tells what the emit has returned."""

    def __init__(self, told: Told) -> None:
        self.told = told

    def execute(self, tup: Any) -> None:
        """Start the thread."""

        def run() -> None:
            self.told(self.collector.emit(tup.values, anchors=[tup]))
            self.collector.ack(tup)

        Thread(target=run).start()


class Computing(InAThread):
    """The same, on the worker's thread."""

    waits = False


class Waiting(InAThread):
    """The same, on a thread of its executor's own."""

    waits = True


def test_calls_of_their_threads_wait_for_the_workers_thread() -> None:
    told, verdicts = Told("computing"), Told("verdicts")
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers([1], verdicts))
    builder.set_bolt("waiting", Waiting(Told("waiting"))).shuffle_grouping("numbers")
    builder.set_bolt("computing", Computing(told)).shuffle_grouping("waiting")
    builder.set_bolt("end", Repeat()).shuffle_grouping("computing")
    with running(builder.create_topology("beside"), **{"stormspark.executor.threads": "auto"}) as topology:
        until(lambda: ("ack", "1") in verdicts.all)
        assert len({type(task) for name in ("waiting", "computing") for task in tasks(topology, name)}) == 2
    assert told.all == [([],)]
