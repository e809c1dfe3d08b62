"""Random topologies of a few components, and what they are fed with."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import pyarrow as pa

from stormspark import Fields, TopologyBuilder
from stormspark.plan import plan_topology
from stormspark.plan.physical import PhysicalPlan
from tests.schedules.components import (
    FIRST_NUMBER,
    Keep,
    Noise,
    Numbers,
    OutboxSink,
    Pass,
    Ring,
    Rows,
    StagingSink,
    Total,
    Work,
)
from tests.schedules.schedule import Schedule

__all__ = ["Feed", "Pieces", "Shape", "draw_pieces", "draw_shape", "payload_of", "plan_of"]

#: Rows of one partition in one batch: partitions are seldom even.
_ROWS = (0, 0, 1, 2, 4, 8, 16)


class Shape(NamedTuple):
    """What is planned. ``between``: nothing, `Pass`, `Ring` or `Keep`; ``sinks``: which of the three, by bit."""

    workers: int
    source_tasks: int
    numbers: int
    between: int
    work_tasks: int
    sinks: int
    sink_tasks: int
    attempts: int
    max_pending: int
    threads: int  # of `Work`, which never pause


class Pieces(NamedTuple):
    """How many tuples are in a chunk, a frame and a burst of spouts' calls."""

    chunk: int
    frame: int
    burst: int


def draw_shape(schedule: Schedule) -> tuple[Shape, Pieces]:
    """A shape by the schedule; all zeros is the smallest one."""

    def draw(what: str, options: int) -> int:
        return schedule.choose("shape", what, options)

    shape = Shape(
        workers=(2, 3, 1)[draw("workers", 3)],
        source_tasks=1 + draw("source tasks", 3),
        numbers=draw("numbers", 3),
        between=draw("between", 3),
        work_tasks=1 + draw("work tasks", 3),
        sinks=1 + draw("sinks", 7),
        sink_tasks=1 + draw("sink tasks", 2),
        attempts=(3, 1)[draw("attempts", 2)],
        max_pending=(0, 0, 0, 2)[draw("max pending", 4)],
        threads=draw("threads", 8) == 7,
    )
    return shape, draw_pieces(schedule)


def draw_pieces(schedule: Schedule) -> Pieces:
    """Sizes by the schedule. A deadline never comes before a chunk of each frame is done: what is cut needs large frames."""

    def draw(what: str, options: int) -> int:
        return schedule.choose("shape", what, options)

    return Pieces(
        (1, 2, 4)[draw("chunk", 3)], (512, 512, 8, 2, 1)[draw("frame", 5)], (64, 1, 2, 4)[draw("burst", 4)]
    )


@lru_cache(maxsize=4096)
def plan_of(shape: Shape) -> PhysicalPlan:
    """The plan of a shape."""
    builder = TopologyBuilder()
    feeds = ["rows"]
    builder.set_spout("rows", Rows(), shape.source_tasks)
    if shape.numbers:
        builder.set_spout("numbers", Numbers(at_once=shape.numbers == 2))
        feeds.append("numbers")
    if shape.between:
        name, bolt = (("pass", Pass()), ("ring", Ring()), ("keep", Keep()))[shape.between - 1]
        between = builder.set_bolt(name, bolt, shape.work_tasks)
        for feed in feeds:
            between.shuffle_grouping(feed)
        if shape.between == 3:
            between.add_configuration("topology.tick.tuple.freq.secs", 1)
        if shape.between == 2:
            between.fields_grouping("ring", Fields("key"), stream="around")
        feeds = [name]
    work = builder.set_bolt("work", Work(noisy=bool(shape.threads)), shape.work_tasks)
    for feed in feeds:
        work.fields_grouping(feed, Fields("row"))
    if shape.threads:
        builder.set_bolt("noise", Noise()).shuffle_grouping("work", stream="noise")
    for bit, sink in enumerate((OutboxSink(), StagingSink(), Total())):
        if shape.sinks >> bit & 1:
            builder.set_bolt(sink.name, sink, shape.sink_tasks).fields_grouping("work", Fields("key"))
    conf = {
        "topology.workers": shape.workers,
        "topology.message.timeout.secs": 100_000,
        "stormspark.exactly.once": True,
        "stormspark.exactly.once.attempts": shape.attempts,
    }
    if shape.max_pending:
        conf["topology.max.spout.pending"] = shape.max_pending
    return plan_topology(builder.create_topology("schedules"), conf)


class Feed:
    """What Spark has read for each batch: the same rows however often it comes."""

    def __init__(self, schedule: Schedule, shape: Shape) -> None:
        def draw(what: str, options: int) -> int:
            return schedule.choose("shape", what, options)

        self.batches = 1 + draw("batches", 3)
        self.partitions = 1 + draw("partitions", 3)
        row = 0
        #: Rows by batch and partition; and how many numbers there may be by the end of each batch.
        self.rows: list[list[range]] = []
        self._until: list[int] = []
        numbers = 0
        for batch in range(self.batches):
            of_batch = []
            for partition in range(self.partitions):
                size = _ROWS[draw(f"rows of {batch}/{partition}", len(_ROWS))]
                of_batch.append(range(row, row + size))
                row += size
            self.rows.append(of_batch)
            if shape.numbers:
                numbers += (0, 1, 2, 5)[draw(f"numbers of {batch}", 4)]
            self._until.append(numbers)
        self.poison: set[int] = set()
        if row and draw("poison", 4) == 3:
            self.poison = {draw("poison row", row)}
        self.everything = [*range(row), *(FIRST_NUMBER + n for n in range(numbers))]

    def of(self, batch: int) -> list[range]:
        """The rows of a batch by partition; none after the last one."""
        return self.rows[batch] if batch < self.batches else [range(0)] * self.partitions

    def numbers_until(self, batch: int) -> int:
        """How many numbers there may be by the end of a batch."""
        return self._until[min(batch, self.batches - 1)]


def payload_of(rows: range) -> bytes:
    """Rows as a forwarder sends them."""
    table = pa.table({"row": pa.array(rows, pa.int64())})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    payload: bytes = sink.getvalue().to_pybytes()
    return payload
