"""Two topics that are joined, and windows over the pairs; every effect is a line in a file before its tuple is acked.

    orders   --shuffle--> seen        payments --shuffle--> seen
    orders   --fields---> join        payments --fields---> join --fields--> windowed

A join that holds one side until the other comes, and a window of some seconds, hold most of what is open when something dies.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stormspark import (
    BasicBolt,
    BasicOutputCollector,
    Bolt,
    FailedException,
    Fields,
    OutputCollector,
    OutputFieldsDeclarer,
    Topology,
    TopologyBuilder,
    TopologyContext,
    Tuple,
)
from stormspark.api import (
    Duration,
    EmitInfo,
    ExponentialBackoff,
    SpoutAckInfo,
    SpoutFailInfo,
    TaskHook,
    TupleWindow,
    WindowedBolt,
)
from stormspark.connectors.kafka import KafkaRecord, KafkaSpout, KafkaSpoutConfig, SimpleRecordTranslator

__all__ = ["FOLDER", "SIDES", "build", "log_files", "trap"]

FOLDER = "test.folder"  # conf key: where effects are written
SIDES = ("orders", "payments")


class Log:
    """Lines of one task, in all its lives; each is with the kernel when `add` returns, so kill -9 takes none away."""

    def __init__(self, conf: Mapping[str, Any], context: TopologyContext, what: str = "") -> None:
        component = context.this_component_id  # a rebalance may change the ids of tasks
        name = f"{what or component}-{component}-{context.this_task_index}.log"
        self.path = Path(conf[FOLDER], name)
        self._file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def add(self, line: str) -> None:
        os.write(self._file, f"{line}\n".encode())


def log_files(folder: Path, what: str) -> list[Path]:
    """The files of all tasks."""
    return sorted(folder.glob(f"{what}-*.log"))


def trap(folder: Path, component: str) -> Path:
    """The next tuple that a task of the component executes makes it raise, if this file is there; that takes it away."""
    return folder / f"trap-{component}"


class _Trap:
    def __init__(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        self._path = trap(Path(conf[FOLDER]), context.this_component_id)

    def check(self) -> None:
        if os.path.exists(self._path):
            try:
                os.unlink(self._path)
            except FileNotFoundError:
                return  # another task was faster
            msg = "the trap"
            raise RuntimeError(msg)


class Trees(TaskHook):
    """Writes down what a spout's task emits, and each verdict that it hears, under the same name."""

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        self.log = Log(conf, context, "trees")
        self.life = f"{os.getpid()}"
        self.log.add(f"{self.life} open - -")

    def emit(self, info: EmitInfo) -> None:
        _, partition, offset = info.values
        self.log.add(f"{self.life} emit {partition} {offset}")

    def spout_ack(self, info: SpoutAckInfo) -> None:
        partition, offset = info.message_id[-2:]  # type: ignore[index]
        self.log.add(f"{self.life} ack {partition} {offset}")

    def spout_fail(self, info: SpoutFailInfo) -> None:
        partition, offset = info.message_id[-2:]  # type: ignore[index]
        self.log.add(f"{self.life} fail {partition} {offset}")


class Messages(KafkaSpout):
    """Numbers in a topic."""

    def open(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        super().open(conf, context)
        context.add_task_hook(Trees())


def number(record: KafkaRecord) -> tuple[int, int, int]:
    return int(record.value), record.partition, record.offset


def messages(bootstrap: str, topic: str, max_retries: int | None) -> Messages:
    """A spout for one topic; its group is called as the topic, and hears of offsets soon."""
    retry = ExponentialBackoff(initial_delay=0.05, period=0.05, max_delay=1, max_retries=max_retries)
    translator = SimpleRecordTranslator(number, ["n", "partition", "offset"])
    return Messages(
        KafkaSpoutConfig(
            bootstrap,
            topic,
            group_id=topic,
            offset_commit_period_ms=200,
            retry=retry,
            record_translator=translator,
        )
    )


class Seen(BasicBolt):
    """Writes each message down. Poisoned orders fail here: even ones by failing the tuple, odd ones by an error."""

    def __init__(self, poison: frozenset[int]) -> None:
        self.poison = poison

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        self.log, self.trap = Log(conf, context), _Trap(conf, context)
        self.poisoned = Log(conf, context, "poisoned")

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        self.trap.check()
        n = tup["n"]
        if n in self.poison and tup.source_component == SIDES[0]:
            self.poisoned.add(f"{tup['partition']} {tup['offset']}")
            if n % 2:
                raise ValueError(n)
            raise FailedException(str(n))
        self.log.add(f"{tup.source_component} {n}")


class Join(Bolt):
    """Pairs an order with its payment: holds the first, emits both anchored to both (E17).

    What has been paired is kept on disk. For one of the two may come again alone, when the other one's tree has ended well:
    then the pair is emitted once more, anchored to what came. A task reads what all have paired, because a rebalance may give it
    other keys.
    """

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        self.collector, self.trap = collector, _Trap(conf, context)
        self.log = Log(conf, context)
        files = log_files(Path(conf[FOLDER]), context.this_component_id)
        self.paired = {int(line) for file in files for line in file.read_text().split("\n")[:-1]}
        self.held: dict[int, list[Tuple]] = {}

    def execute(self, tup: Tuple) -> None:
        self.trap.check()
        n = tup["n"]
        together = self.held.setdefault(n, [])
        together.append(tup)
        if n not in self.paired:
            if len({one.source_component for one in together}) < len(SIDES):
                return
            self.paired.add(n)
            self.log.add(str(n))
        self.collector.emit((n,), anchors=together)
        for one in self.held.pop(n):
            self.collector.ack(one)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("n"))


class Windowed(WindowedBolt):
    """Writes the pairs of a window down when the window ends."""

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        self.log, self.trap = Log(conf, context), _Trap(conf, context)

    def execute(self, window: TupleWindow) -> None:
        self.trap.check()
        for tup in window.new:
            self.log.add(str(tup["n"]))


def build(
    name: str, bootstrap: str, *, window_secs: float, poison: frozenset[int], max_retries: int | None
) -> Topology:
    """The topology; its topics are called ``<name>-orders`` and ``<name>-payments``."""
    builder = TopologyBuilder()
    for side in SIDES:
        builder.set_spout(side, messages(bootstrap, f"{name}-{side}", max_retries), 2)
    seen = builder.set_bolt("seen", Seen(poison), 2)
    join = builder.set_bolt("join", Join(), 2)
    for side in SIDES:
        seen.shuffle_grouping(side)
        join.fields_grouping(side, Fields("n"))
    window = Windowed().with_tumbling_window(Duration.seconds(window_secs))
    builder.set_bolt("windowed", window, 2).fields_grouping("join", Fields("n"))
    return builder.create_topology(name)
