"""Components whose effects can be looked at from outside, whatever process they ran in: they write lines to
files.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from stormspark import (
    BasicBolt,
    BasicOutputCollector,
    Bolt,
    FailedException,
    Fields,
    OutputCollector,
    OutputFieldsDeclarer,
    Spout,
    SpoutOutputCollector,
    TopologyContext,
    Tuple,
)
from tests.whole_lines import whole_lines

EFFECTS = "test.effects"  # conf key: the folder that effects are written to


class Effects:
    """Appends JSON lines to a file of one task."""

    def __init__(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        folder = Path(conf[EFFECTS])
        component = context.this_component_id.replace("/", "_")
        self._path = folder / f"{component}-{context.this_task_id}.jsonl"

    def write(self, *values: Any) -> None:
        # Opened anew each time: what a killed worker has written is there, and nothing stays open in this
        # process.
        with self._path.open("a") as file:
            file.write(json.dumps(values) + "\n")

    def read(self) -> list[list[Any]]:
        """All that this task has written, in its earlier lives too."""
        if not self._path.exists():
            return []
        return [json.loads(line) for line in whole_lines(self._path)]


def read_effects(folder: Path, component: str) -> list[list[Any]]:
    """All effects of a component's tasks."""
    lines = [line for path in sorted(folder.glob(f"{component}-*.jsonl")) for line in whole_lines(path)]
    return [json.loads(line) for line in lines]


class Failed(NamedTuple):
    """A message that failed, as its spout wrote it down. Some spouts write down no more than the message."""

    message: Any
    outcome: str | None = None
    component: str | None = None
    reason: str | None = None


class Recorded(NamedTuple):
    """A tuple, as `Record` wrote it down: the task that received it, where it came from, and its values."""

    task: int
    component: str
    stream: str
    values: tuple[Any, ...]


def acked(effects: Iterable[list[Any]]) -> Counter[Any]:
    """How often a spout heard that each message was acked."""
    return Counter(message for what, message, *_ in _of_kind(effects, "ack"))


def failed(effects: Iterable[list[Any]]) -> list[Failed]:
    """What a spout wrote down of messages that failed."""
    return [Failed(*told) for _, *told in _of_kind(effects, "fail")]


def recorded(effects: Iterable[list[Any]]) -> list[Recorded]:
    """The tuples that `Record` wrote down."""
    return [
        Recorded(task, component, stream, tuple(values))
        for task, component, stream, *values in (effect for effect in effects if effect != ["cleanup"])
    ]


def _of_kind(effects: Iterable[list[Any]], kind: str) -> list[list[Any]]:
    return [effect for effect in effects if effect[0] == kind]


class Numbers(Spout):
    """Emits 0..n-1 shared out over its tasks; writes every ack and fail; replays what failed, up to
    ``replays`` times.
    """

    def __init__(self, n: int, replays: int = 3) -> None:
        self.n = n
        self.replays = replays

    def open(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector
    ) -> None:
        self.collector = collector
        self.effects = Effects(conf, context)
        tasks = len(context.component_tasks(context.this_component_id))
        self.todo = list(range(context.this_task_index, self.n, tasks))[::-1]
        self.fails: Counter[Hashable] = Counter()

    def next_tuple(self) -> None:
        if self.todo:
            number = self.todo.pop()
            self.collector.emit((number,), message_id=number)

    def ack(self, message_id: Hashable) -> None:
        self.effects.write("ack", message_id)

    def fail(self, message_id: Hashable) -> None:
        verdict = self.collector.verdict
        assert verdict is not None
        self.effects.write("fail", message_id, verdict.outcome.name, verdict.component, verdict.reason)
        self.fails[message_id] += 1
        if self.fails[message_id] <= self.replays:
            self.todo.append(message_id)  # type: ignore[arg-type]

    def deactivate(self) -> None:
        self.effects.write("deactivate")

    def close(self) -> None:
        self.effects.write("close")

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("n"))


class Repeat(BasicBolt):
    """Emits (n, copy) ``times`` times."""

    def __init__(self, times: int) -> None:
        self.times = times

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        for copy in range(self.times):
            collector.emit((tup["n"], copy))

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("n", "copy"))


class Record(BasicBolt):
    """Writes its task and every tuple's values; fails or raises for some numbers, the first time it sees
    them.
    """

    def __init__(self, fail: tuple[int, ...] = (), error: tuple[int, ...] = ()) -> None:
        self.fail = fail
        self.error = error

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        self.task = context.this_task_id
        self.effects = Effects(conf, context)
        self.marks = Path(conf[EFFECTS])

    def _first(self, number: int, what: str) -> bool:
        mark = self.marks / f"{what}-{number}.mark"
        try:
            mark.touch(exist_ok=False)  # one step: executors run side by side
        except FileExistsError:
            return False
        return True

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        number = tup[0]
        if number in self.fail and self._first(number, "fail"):
            raise FailedException(f"not {number}")
        if number in self.error and self._first(number, "error"):
            raise KeyError(number)
        self.effects.write(self.task, tup.source_component, tup.source_stream, *tup.values)

    def cleanup(self) -> None:
        self.effects.write("cleanup")


class Pair(Bolt):
    """Joins two streams by number: holds the first, emits both anchored to both, then acks both (E17)."""

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        self.collector = collector
        self.held: dict[int, Tuple] = {}

    def execute(self, tup: Tuple) -> None:
        first = self.held.pop(tup["n"], None)
        if first is None:
            self.held[tup["n"]] = tup
            return
        self.collector.emit((tup["n"],), anchors=[first, tup])
        self.collector.ack(first)
        self.collector.ack(tup)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("n"))
