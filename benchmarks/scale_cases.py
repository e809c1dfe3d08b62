"""The topologies of `benchmarks.scale`: one shape, of which one thing at a time is made large.

    source --shuffle--> fan --fields--> end          fan emits so many tuples for each that it gets, each anchored to it

A tuple is a key, one of ten thousand as in the word count, and a payload of so many bytes, no two of the source's alike.
Each source emits so many tuples a batch, so that a batch is the same work for each worker, whatever is varied; there is no
clock in it. Counted is what fan and end have executed.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

from benchmarks.in_turn import Prepared, opened
from benchmarks.unchanged import Hold, Many
from stormspark import BasicBolt, Bolt, Fields, Spout, TopologyBuilder
from stormspark.api import Topology
from stormspark.plan import plan_topology

__all__ = ["anchors", "fan", "held"]

_KEYS = [f"key {number}" for number in range(10_000)]


class Batch:
    """How large a batch is for each worker: so many tuples that its bolts execute, and bytes of them at most, where bytes travel.

    That is 20 to 40 ms of work: a real batch of a second is larger, so fixed costs of a batch are seen here, if anything.
    """

    tuples = 20_000
    payload_bytes = 64_000_000


_SETTINGS = {
    "topology.message.timeout.secs": 36_000,
    # No batch is cut short: how much there is to do is said by the sources' limits alone.
    "stormspark.batch.target.ms": 600_000,
    "stormspark.superstep.deadline.ms": 3_000_000,
    "stormspark.queue.high.mark.tuples": 100_000_000,
    "stormspark.queue.high.mark.bytes": 100_000_000_000,
}


class Source(Spout):
    """Emits payloads of so many bytes, each with an id."""

    def __init__(self, size: int) -> None:
        self.size = size

    def open(self, conf: Mapping[str, Any], context: Any, collector: Any) -> None:
        """Begin at 0."""
        self.collector, self.emitted = collector, 0
        self.rest = "x" * max(0, self.size - 8)
        # Large ones are made now: to make a megabyte takes as long as to send it.
        few = 64_000_000 // self.size if self.size >= 100_000 else 0
        self.made = [f"{number:08}{self.rest}" for number in range(few)]
        self.random = Random(context.this_task_id).random

    def next_tuple(self) -> None:
        """Emit one."""
        self.emitted = number = self.emitted + 1
        made = self.made
        payload = made[number % len(made)] if made else f"{number:08}{self.rest}"
        self.collector.emit((_KEYS[int(self.random() * 10_000)], payload), message_id=number)

    def declare_output_fields(self, declarer: Any) -> None:
        """Key and payload."""
        declarer.declare(Fields("key", "payload"))


class Fan(BasicBolt):
    """For each tuple so many of the same payload and other keys, over so many streams in turn."""

    def __init__(self, out: int, streams: int = 1) -> None:
        self.out, self.streams = out, [f"s{number}" for number in range(streams)]
        self.emitted = 0

    def execute(self, tup: Any, collector: Any) -> None:
        """Emit them."""
        payload, streams, begin = tup.values[1], self.streams, self.emitted
        self.emitted = end = begin + self.out
        for number in range(begin, end):
            collector.emit((_KEYS[number * 7919 % 10_000], payload), stream=streams[number % len(streams)])

    def declare_output_fields(self, declarer: Any) -> None:
        """Key and payload on each."""
        for stream in self.streams:
            declarer.declare_stream(stream, Fields("key", "payload"))


class Join(Bolt):
    """Emits one tuple for every so many, anchored to all of them."""

    def __init__(self, anchors: int) -> None:
        self.anchors = anchors

    def prepare(self, conf: Mapping[str, Any], context: Any, collector: Any) -> None:
        """None yet."""
        self.collector, self.held = collector, []

    def execute(self, tup: Any) -> None:
        """Hold it, or emit and ack all."""
        self.held.append(tup)
        if len(self.held) == self.anchors:
            held, self.held = self.held, []
            self.collector.emit(tup.values, anchors=held)
            for one in held:
                self.collector.ack(one)

    def declare_output_fields(self, declarer: Any) -> None:
        """Key and payload."""
        declarer.declare(Fields("key", "payload"))


class End(BasicBolt):
    """Does nothing but take them."""

    def execute(self, tup: Any, collector: Any) -> None:
        """Take it."""


def _prepared(topology: Topology, workers: int, sources: int, per_root: float, size: int) -> Prepared:
    """Open it, with as many roots a batch as `Batch` says, where each is ``per_root`` tuples."""
    conf = {"topology.workers": workers, **_SETTINGS}
    cluster = opened(plan_topology(topology, conf))
    a_worker = Batch.tuples / per_root
    if workers > 1:
        a_worker = min(a_worker, Batch.payload_bytes / (size * per_root))
    roots = max(1, round(a_worker * workers / sources))
    limits = dict.fromkeys(cluster.plan.components["source"].tasks, roots)
    return Prepared(cluster, ("fan", "end"), limits)


def fan(workers: int, tasks: int, streams: int, size: int, out: int) -> Prepared:
    """``tasks`` of each component over ``workers``, ``out`` tuples for each of the source's, over ``streams``."""
    builder = TopologyBuilder()
    builder.set_spout("source", Source(size), tasks)
    bolt = Fan(out, streams)
    builder.set_bolt("fan", bolt, tasks).shuffle_grouping("source")
    end = builder.set_bolt("end", End(), tasks)
    for stream in bolt.streams:
        end.fields_grouping("fan", Fields("key"), stream)
    return _prepared(builder.create_topology("fan"), workers, tasks, 1 + out, size)


def anchors(workers: int, number: int) -> Prepared:
    """Each tuple that reaches the end is anchored to so many of the source's; an executed tuple of either is one."""
    builder = TopologyBuilder()
    builder.set_spout("source", Source(10), workers)
    builder.set_bolt("fan", Join(number), workers).shuffle_grouping("source")
    builder.set_bolt("end", End(), workers).fields_grouping("fan", Fields("key"))
    return _prepared(builder.create_topology("anchors"), workers, workers, 1 + 1 / number, 10)


def held(size: int) -> Prepared:
    """A fan-out of ten in one worker, beside ``size`` open trees."""
    builder = TopologyBuilder()
    builder.set_spout("source", Source(10))
    bolt = Fan(10)
    builder.set_bolt("fan", bolt).shuffle_grouping("source")
    builder.set_bolt("end", End()).fields_grouping("fan", Fields("key"), bolt.streams[0])
    builder.set_spout("many", Many(size))
    builder.set_bolt("hold", Hold()).shuffle_grouping("many")
    prepared = _prepared(builder.create_topology("held"), 1, 1, 11, 10)
    while prepared.cluster.workers[0].statistics().open < size:
        prepared.cluster.run_batch(prepared.limits)
    return prepared
