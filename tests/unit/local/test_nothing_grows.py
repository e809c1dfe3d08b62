"""Topologies run for weeks: whatever happens in a batch is forgotten. A short form; ``SOAK_BATCHES`` makes it longer."""

from __future__ import annotations

import contextlib
import gc
import logging
import multiprocessing
import os
import sys
import threading
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from random import Random
from typing import Any, ClassVar

import pytest

from stormspark import BasicBolt, Bolt, FailedException, Fields, Spout, TopologyBuilder
from stormspark.grouping import key_memo
from stormspark.local import LocalTopology, SimulatedClock
from stormspark.metrics import CountMetric, TopologyStatistics
from stormspark.plan import plan_topology
from stormspark.worker.stories import story_lines

_BATCHES = int(os.environ.get("SOAK_BATCHES", "400"))
_WARM_UP = max(1000, _BATCHES // 5)


class Numbers(Spout):
    """Emits ten numbers in a batch of the test, each once more if it fails, and forgets it then."""

    batch = 0

    def open(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector, self.next, self.again = collector, 0, []
        self.step, self.left = 2 * context.this_task_index + 1, 10
        self.batch = Numbers.batch

    def next_tuple(self) -> None:
        if self.batch != Numbers.batch:
            self.batch, self.left = Numbers.batch, 10
        if not self.left:
            return
        self.left -= 1
        number, which = (self.again.pop(), "again") if self.again else (self.next, "first")
        self.next += self.step if which == "first" else 0
        self.collector.emit((number, f"key {number}"), message_id=(number, which))

    def fail(self, message_id: Any) -> None:
        number, which = message_id
        if which == "first":
            self.again.append(number)

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("number", "key"))


class Trouble(Bolt):
    """Does with a number what its last digits say: raises, fails it, forgets it, reports an error, emits it twice.

    In a batch that is a transaction it raises once, so that the batch runs again.
    """

    tried: ClassVar[set[int]] = set()

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector = collector
        context.set_timer(0.5, lambda: None)
        self.held: list[Any] = []
        self.careful = bool(conf.get("stormspark.exactly.once"))

    def execute(self, tup: Any) -> None:
        number = tup["number"]
        kind = number % 40
        if self.careful and (kind in (11, 13, 19) or (kind == 7 and number in Trouble.tried)):
            kind = 0
        if kind == 7:
            Trouble.tried = {*list(Trouble.tried)[-100:], number}
            raise ValueError(f"no {number}")
        if kind == 11:
            self.collector.fail(tup)
            return
        if kind == 13:
            return  # its tree times out
        if kind == 17:
            self.collector.report_error(RuntimeError(f"text of its own {number}"))
        if kind == 19:
            self.held = [*self.held[-5:], tup]
        self.collector.emit((number, tup["key"]), anchors=tup)
        if kind == 23:
            self.collector.emit((number, tup["key"]), stream="more", anchors=[tup])
        self.collector.ack(tup)

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("number", "key"))
        declarer.declare_stream("more", Fields("number", "key"))


class End(BasicBolt):
    def prepare(self, conf: Any, context: Any) -> None:
        self.careful = bool(conf.get("stormspark.exactly.once"))
        self.seen = context.register_metric("seen", CountMetric(), 5)

    def execute(self, tup: Any, collector: Any) -> None:
        self.seen.incr()
        if tup["number"] % 97 == 0 and not self.careful:
            raise FailedException(f"not {tup['number']}")

    def component_configuration(self) -> Any:
        return {"topology.tick.tuple.freq.secs": 1}


def topology(**conf: Any) -> LocalTopology:
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(), 2)
    trouble = builder.set_bolt("trouble", Trouble(), 3)
    trouble.fields_grouping("numbers", Fields("key"))
    end = builder.set_bolt("end", End(), 3)
    end.shuffle_grouping("trouble").fields_grouping("trouble", Fields("key"), stream="more")
    settings = {
        "topology.workers": 3,
        "topology.message.timeout.secs": 5,
        "topology.max.spout.pending": 200,
        "stormspark.task.max.restarts.in.row": 1000,
        **conf,
    }
    return LocalTopology(
        plan_topology(builder.create_topology("weeks"), settings), SimulatedClock(), Random(5)
    )


def _open_files() -> Counter[str]:
    found: Counter[str] = Counter()
    for number in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):  # the folder's own
            found[os.readlink(f"/proc/self/fd/{number}")] += 1
    return found


class Size:
    """What this process has of objects, blocks of memory, threads and files."""

    def __init__(self) -> None:
        gc.collect()
        gc.collect()
        self.objects = Counter(type(one).__qualname__ for one in gc.get_objects())
        self.blocks = sys.getallocatedblocks()
        self.threads = {thread.ident: thread.name for thread in threading.enumerate()}
        self.files = _open_files()

    def opened(self, before: Size) -> list[str]:
        """Threads and files that were not there before."""
        threads = [name for ident, name in self.threads.items() if ident not in before.threads]
        return threads + [what for what in self.files.elements() if self.files[what] > before.files[what]]

    def grown(self, before: Size) -> dict[str, int]:
        """Objects of which there are many more than before."""
        new = self.objects - before.objects
        return {name: count for name, count in new.items() if count > 60 + before.objects[name] // 20}


def measured(exactly_once: bool) -> tuple[Size, Size, TopologyStatistics]:
    """This process after a while, and after many more batches; and what the topology did."""
    logging.disable(logging.CRITICAL)
    # What is bounded is full before the first look.
    key_memo.MOST_KEYS, story_lines._KEPT = 100, 20
    running = topology(**{"stormspark.exactly.once": True} if exactly_once else {})

    def run(batches: int) -> Size:
        for _ in range(batches):
            Numbers.batch += 1
            running.simulated_clock.advance(0.5)
            running.run_batch()
        return Size()

    before = run(_WARM_UP)
    after = run(_BATCHES)
    statistics = running.statistics()
    running.stop()
    return before, after, statistics


@pytest.mark.slow
@pytest.mark.parametrize("exactly_once", [False, True])
def test_nothing_grows_with_the_number_of_batches(exactly_once: bool) -> None:
    """Restarts, fails, timeouts, replays, errors with texts of their own, keys that never come again, ticks, timers, metrics.

    In a process of its own: what other tests have left behind comes and goes.
    """
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
        before, after, statistics = process.submit(measured, exactly_once).result()
    numbers, trouble = statistics.components["numbers"], statistics.components["trouble"]
    if not exactly_once:
        assert numbers.acked > 10 * _BATCHES and numbers.failed > _BATCHES / 4 and numbers.timed_out > 0
        assert trouble.restarts > 20 and trouble.errors > 20
    assert after.grown(before) == {}
    assert after.blocks - before.blocks < 6 * _BATCHES, (
        "twenty messages a batch: what remembers them grows faster"
    )
    assert after.opened(before) == []
