"""Vectorised components beside tuple components that do the same; see `components`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from stormspark import ArrowBolt, ArrowSpout, OutputFieldsDeclarer, PandasBolt, TopologyContext
from tests.conformance.components import EFFECTS, Effects, Numbers, Record, Repeat
from tests.conformance.state_components import Once, Sequence

NUMBER = pa.schema({"n": pa.int64()})
COPY = pa.schema({"n": pa.int64(), "copy": pa.int64()})


class TypedNumbers(Numbers):
    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(NUMBER)


class TypedSequence(Sequence):
    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(NUMBER)


class ArrowNumbers(ArrowSpout):
    """`Numbers`, up to ``rows`` at once."""

    def __init__(self, n: int, rows: int = 16) -> None:
        self.n, self.rows = n, rows

    def open(self, conf: Mapping[str, Any], context: TopologyContext, collector: Any) -> None:
        self.collector, self.effects = collector, Effects(conf, context)
        tasks = len(context.component_tasks(context.this_component_id))
        self.todo = list(range(context.this_task_index, self.n, tasks))

    def next_batch(self) -> None:
        numbers, self.todo = self.todo[: self.rows], self.todo[self.rows :]
        if numbers:
            batch = pa.record_batch([numbers], ["n"])
            self.collector.emit_batch(batch, message_ids=numbers)

    def ack(self, message_id: Hashable) -> None:
        self.effects.write("ack", message_id)

    def fail(self, message_id: Hashable) -> None:
        verdict = self.collector.verdict
        self.effects.write("fail", message_id, verdict.outcome.name, verdict.component, verdict.reason)
        self.todo.append(message_id)  # type: ignore[arg-type]

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(NUMBER)


class TypedRepeat(Repeat):
    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(COPY)


class ArrowRepeat(ArrowBolt):
    """`Repeat`."""

    def __init__(self, times: int) -> None:
        self.times = times

    def execute_batch(self, batch: pa.RecordBatch, collector: Any) -> None:
        rows = [row for row in range(batch.num_rows) for _ in range(self.times)]
        copies = list(range(self.times)) * batch.num_rows
        out = pa.record_batch([batch["n"].take(pa.array(rows)), pa.array(copies)], schema=COPY)
        collector.emit_batch(out, anchors=rows)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(COPY)


class FrameRepeat(PandasBolt):
    """`Repeat`."""

    def __init__(self, times: int) -> None:
        self.times = times

    def execute_frame(self, frame: pd.DataFrame, collector: Any) -> None:
        out = pd.concat([frame.assign(copy=copy) for copy in range(self.times)])
        collector.emit_frame(out, anchors=out.index)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(COPY)


class ArrowRecord(ArrowBolt):
    """`Record`: fails the rows of some numbers, the first time that it sees them."""

    def __init__(self, fail: tuple[int, ...] = ()) -> None:
        self.fail = fail

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        self.task, self.effects, self.marks = (
            context.this_task_id,
            Effects(conf, context),
            Path(conf[EFFECTS]),
        )

    def execute_batch(self, batch: pa.RecordBatch, collector: Any) -> None:
        for row, values in enumerate(zip(*(column.to_pylist() for column in batch.columns), strict=True)):
            mark = self.marks / f"fail-{values[0]}.mark"
            if values[0] in self.fail and not mark.exists():
                mark.touch()
                collector.fail([row], f"not {values[0]}")
            else:
                self.effects.write(self.task, collector.source_component, collector.source_stream, *values)

    def cleanup(self) -> None:
        self.effects.write("cleanup")


class TypedRecord(Record):
    """`Record` under the name that the forms have."""


class ArrowTally(ArrowBolt):
    """How often each number came, in an attribute; raises for one of them the first time that it comes."""

    def __init__(self, raises: int) -> None:
        self.raises = raises

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        self.conf, self.effects = conf, Effects(conf, context)
        self.counts: Counter[int] = Counter()

    def execute_batch(self, batch: pa.RecordBatch, collector: Any) -> None:
        self.counts.update(batch["n"].to_pylist())
        if pc.any(pc.equal(batch["n"], self.raises)).as_py() and Once(self.conf, "raises")():
            raise KeyError(self.raises)

    def cleanup(self) -> None:
        for number, count in self.counts.items():
            self.effects.write("state", number, count)
