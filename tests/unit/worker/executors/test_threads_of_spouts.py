"""Threads of user code beside the thread of a spout's executor (W26)."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from stormspark import Fields, Spout, TopologyBuilder
from stormspark.errors import EmitError
from tests.unit.worker.executors.runs import Repeat, Told, running, until

pytestmark = pytest.mark.slow


class Reader(Spout):
    """Its thread emits; ``next_tuple`` emits one more, once."""

    def __init__(self, total: int, told: Told) -> None:
        self.total, self.told = total, told

    def open(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector, self.called = collector, False
        threading.Thread(target=self.read, daemon=True).start()

    def read(self) -> None:
        for n in range(self.total):
            self.collector.emit((n,), message_id=n)

    def next_tuple(self) -> None:
        if not self.called:
            self.called = True
            self.collector.emit((-1,), message_id=-1)

    def ack(self, message_id: Any) -> None:
        self.told(message_id)

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("n"))


def test_a_thread_may_emit_any_number_of_tuples() -> None:
    """They do not use up for ever what the spout may emit."""
    told, total = Told("reader"), 5000
    builder = TopologyBuilder()
    builder.set_spout("reader", Reader(total, told))
    builder.set_bolt("end", Repeat()).shuffle_grouping("reader")
    with running(builder.create_topology("reader")) as local:
        until(lambda: len(told.all) == total + 1)
        local.run_until_idle()
    assert {n for (n,) in told.all} == {*range(-1, total)}


class Grouping(Reader):
    """Its thread asks for a group."""

    def read(self) -> None:
        try:
            self.collector.group(1)
        except EmitError as error:
            self.told(str(error))


def test_a_thread_gets_no_group() -> None:
    """X68: as everywhere else."""
    told = Told("grouping")
    builder = TopologyBuilder()
    builder.set_spout("reader", Grouping(0, told))
    builder.set_bolt("end", Repeat()).shuffle_grouping("reader")
    with running(builder.create_topology("grouping")):
        until(lambda: any("queue.Queue" in str(what) for (what,) in told.all))
