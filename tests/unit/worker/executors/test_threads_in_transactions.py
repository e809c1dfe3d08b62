"""Threads of user code beside an executor's own, if batches are transactions (A16, C44, W26)."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from stormspark import TopologyBuilder
from tests.unit.worker.executors.runs import Numbers, Repeat, Told, running, until

pytestmark = pytest.mark.slow


class Restless(Repeat):
    """Has a thread that emits without a pause, as long as the instance lives."""

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        super().prepare(conf, context, collector)
        self.ended = False
        threading.Thread(target=self.emit_for_ever, daemon=True).start()

    def emit_for_ever(self) -> None:
        try:
            while not self.ended:
                self.collector.emit((0,))
        except BaseException:
            pass  # the instance has ended meanwhile

    def cleanup(self) -> None:
        self.ended = True


def test_a_thread_that_never_pauses_keeps_no_batch_from_its_end() -> None:
    """What it emits between two calls of execute waits for the next batch."""
    told = Told("restless")
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers([1, 2, 3], told))
    builder.set_bolt("restless", Restless()).shuffle_grouping("numbers")
    builder.set_bolt("end", Repeat()).shuffle_grouping("restless")
    with running(builder.create_topology("restless"), **{"stormspark.exactly.once": True}) as local:
        until(lambda: len(told.all) == 3 and local.statistics().batches > 2)
    assert sorted(told.all) == [("ack", str(n)) for n in (1, 2, 3)]
