"""A slow bolt over a topic whose partitions are uneven, and sinks behind it whose work comes in many rounds of a batch."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, MutableMapping
from pathlib import Path
from typing import Any

from stormspark import (
    BasicBolt,
    BasicOutputCollector,
    Bolt,
    Fields,
    OutputCollector,
    OutputFieldsDeclarer,
    Topology,
    TopologyBuilder,
    TopologyContext,
    Tuple,
)
from stormspark.api.state import TwoPhaseStatefulComponent
from stormspark.connectors import (
    DeltaBolt,
    FieldNameBasedTupleToKafkaMapper,
    FirstPollOffsetStrategy,
    KafkaBolt,
    KafkaSpout,
    KafkaSpoutConfig,
    SimpleRecordTranslator,
)

__all__ = ["SECS_EACH", "build", "placed"]

#: What the bolt takes for a message.
SECS_EACH = 0.001


class Slow(BasicBolt):
    """As a call of something else."""

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        time.sleep(SECS_EACH)
        collector.emit((tup["n"], str(tup["n"])))

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("n", "text"))


class Number(BasicBolt):
    """What the table has a column for."""

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        collector.emit((tup["n"],))

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("n"))


class OwnSink(TwoPhaseStatefulComponent, Bolt):
    """A user's own: writes a file before the commit, and puts it in place, by renaming, after it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def init_state(self, state: MutableMapping[Any, Any]) -> None:
        self.state = state

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        self.collector, self.task = collector, context.this_task_index
        self.numbers: list[int] = []
        self.folder.mkdir(exist_ok=True)
        if "batch" in self.state:  # committed, and maybe nobody has put it in place
            self.post_save(self.state["batch"])

    def execute(self, tup: Tuple) -> None:
        self.numbers.append(tup["n"])
        self.collector.ack(tup)

    def pre_save(self, checkpoint_id: int) -> None:
        numbers, self.numbers = self.numbers, []
        self._file(checkpoint_id, "staged").write_text("".join(f"{n}\n" for n in numbers))
        self.state["batch"] = checkpoint_id

    def post_save(self, checkpoint_id: int) -> None:
        staged = self._file(checkpoint_id, "staged")
        if staged.exists():
            os.replace(staged, self._file(checkpoint_id, "placed"))

    def pre_restore(self, checkpoint_id: int) -> None:
        pass

    def _file(self, batch: int, what: str) -> Path:
        return self.folder / f"{batch}-{self.task}.{what}"

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        pass


def placed(folder: Path) -> list[int]:
    """The numbers in files that `OwnSink` has put in place."""
    return [int(line) for file in folder.glob("*.placed") for line in file.read_text().split()]


def build(name: str, bootstrap: str, topic: str, out: str, folder: Path) -> Topology:
    """From ``topic`` to a Delta table, to topic ``out`` and to files."""
    config = KafkaSpoutConfig(
        bootstrap,
        topic,
        group_id=name,
        first_poll_offset_strategy=FirstPollOffsetStrategy.EARLIEST,
        record_translator=SimpleRecordTranslator(lambda record: (int(record.value),), ["n"]),
    )
    kafka = (
        KafkaBolt()
        .with_producer_properties({"bootstrap.servers": bootstrap})
        .with_topic_selector(out)
        .with_tuple_to_kafka_mapper(FieldNameBasedTupleToKafkaMapper("text", "text"))
        .with_transactions()
    )
    builder = TopologyBuilder()
    builder.set_spout("messages", KafkaSpout(config), 2)
    builder.set_bolt("slow", Slow(), 2).local_or_shuffle_grouping("messages")
    builder.set_bolt("number", Number(), 2).shuffle_grouping("slow")
    builder.set_bolt("table", DeltaBolt(folder / "table"), 2).shuffle_grouping("number")
    builder.set_bolt("topic", kafka, 2).shuffle_grouping("slow")
    builder.set_bolt("files", OwnSink(folder / "files"), 2).shuffle_grouping("number")
    return builder.create_topology(name)
