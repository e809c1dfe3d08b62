"""The components of a random topology: one spout and one bolt, which do what their spec says.

What happens is noted in memory, where all workers are in this process, or in files of the folder ``fuzz.folder``.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from stormspark import BasicBolt, Bolt, FailedException, Fields, Spout, Topology, TopologyBuilder
from tests.fuzz.spec import FIELDS, BoltSpec, FirstAndLast, SpoutSpec, TopologySpec

__all__ = ["FOLDER", "Notes", "built"]

FOLDER = "fuzz.folder"

#: A message: spout, task index, number, and which life of the spout's task emitted it.
Message = tuple[str, int, int, int]


class Notes:
    """What happened in a run: executions by (bolt, messages, round), verdicts by message."""

    def __init__(self) -> None:
        self.executed: Counter[tuple[str, str, int]] = Counter()
        self.emitted: set[str] = set()
        self.verdicts: dict[str, list[str]] = {}

    def note(self, what: str, *values: Any) -> None:
        """Something happened."""
        if what == "executed":
            bolt, messages, turn = values
            self.executed[bolt, messages, turn] += 1
        elif what == "emitted":
            self.emitted.add(values[0])
        else:
            self.verdicts.setdefault(values[0], []).append(what)

    @classmethod
    def read(cls, folder: Path) -> Notes:
        """What the tasks of other processes have noted."""
        notes = cls()
        for path in folder.glob("*.jsonl"):
            for line in path.read_text().splitlines():
                notes.note(*json.loads(line))
        return notes


#: Of the run in this process.
here = Notes()
lives: Counter[tuple[str, int]] = Counter()


def begin_run() -> Notes:
    """Forget the last run in this process."""
    global here  # noqa: PLW0603 - components are copies, this is what they share
    here = Notes()
    lives.clear()
    return here


class _Pen:
    """Notes what a task does."""

    def __init__(self, conf: Mapping[str, Any], context: Any) -> None:
        folder = conf.get(FOLDER)
        self._path = None if folder is None else Path(folder) / f"{context.this_task_id}.jsonl"

    def note(self, what: str, *values: Any) -> None:
        if self._path is None:
            here.note(what, *values)
        else:
            with self._path.open("a") as file:
                file.write(json.dumps([what, *values]) + "\n")


class FuzzSpout(Spout):
    """Emits its messages once each, a few a call."""

    def __init__(self, spec: SpoutSpec) -> None:
        self.spec = spec

    def open(self, conf: Mapping[str, Any], context: Any, collector: Any) -> None:
        self.collector, self.pen = collector, _Pen(conf, context)
        index = context.this_task_index
        lives[self.spec.name, index] += 1
        life = lives[self.spec.name, index]
        self.todo = [(self.spec.name, index, number, life) for number in range(self.spec.messages)]

    def next_tuple(self) -> None:
        for message in self.todo[:2]:
            id = json.dumps(message)
            values = (json.dumps([message]), message[2], 0)
            self.pen.note("emitted", id)
            if self.spec.kind == "group":
                with self.collector.group(id) as group:
                    group.emit(values)
                    group.emit(values, stream="side")
                    group.emit(values)
            else:
                self.collector.emit(values, message_id=id if self.spec.kind == "reliable" else None)
        del self.todo[:2]

    def ack(self, message_id: Any) -> None:
        self.pen.note("ACKED", message_id)

    def fail(self, message_id: Any) -> None:
        self.pen.note(self.collector.verdict.outcome.name, message_id)

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields(*FIELDS))
        if self.spec.kind == "group":
            declarer.declare_stream("side", Fields(*FIELDS))


class _Work:
    """What both kinds of bolts do with a tuple."""

    spec: BoltSpec

    def begin(self, conf: Mapping[str, Any], context: Any) -> None:
        self.pen, self.context = _Pen(conf, context), context

    def emits(self, tup: Any) -> Iterator[tuple[tuple[Any, ...], str, int | None]]:
        """(values, stream, task of a direct emit) of all that is emitted for a tuple."""
        messages, number, turn = tup.values
        for stream, copies in self.spec.fan_out.items():
            for _ in range(copies):
                if stream != "direct":
                    yield (messages, number, turn), stream, None
                    continue
                for consumer in self.context.this_targets["direct"]:
                    tasks = self.context.component_tasks(consumer)
                    yield (messages, number, turn), stream, tasks[number % len(tasks)]
        if self.spec.loop is not None and turn < self.spec.rounds:
            yield (messages, number, turn + 1), "loop", None

    def executed(self, tup: Any) -> bool:
        """Note it; true if this bolt fails such tuples."""
        messages, number, turn = tup.values
        self.pen.note("executed", self.spec.name, messages, turn)
        return number in self.spec.fails

    def declare_output_fields(self, declarer: Any) -> None:
        for stream in self.spec.fan_out:
            declarer.declare_stream(stream, Fields(*FIELDS), direct=stream == "direct")
        if self.spec.loop is not None:
            declarer.declare_stream("loop", Fields(*FIELDS))


class FuzzBasicBolt(_Work, BasicBolt):
    """Anchors and acks by itself."""

    def __init__(self, spec: BoltSpec) -> None:
        self.spec = spec

    def prepare(self, conf: Mapping[str, Any], context: Any) -> None:
        self.begin(conf, context)

    def execute(self, tup: Any, collector: Any) -> None:
        fails = self.executed(tup)
        for values, stream, task in self.emits(tup):
            if task is None:
                collector.emit(values, stream)
            else:
                collector.emit_direct(task, values, stream)
        if self.spec.resets:
            collector.reset_timeout()
        if fails:
            raise FailedException("by spec") if self.spec.how == "exception" else KeyError("by spec")


class FuzzBolt(_Work, Bolt):
    """Anchors or not, acks at once, with the next tick in another order, or in pairs."""

    def __init__(self, spec: BoltSpec) -> None:
        self.spec = spec

    def get_component_configuration(self) -> Mapping[str, Any] | None:
        return {"topology.tick.tuple.freq.secs": 0.4} if self.spec.acks in ("late", "join") else None

    def prepare(self, conf: Mapping[str, Any], context: Any, collector: Any) -> None:
        self.begin(conf, context)
        self.collector = collector
        self.held: list[Any] = []
        self.waiting: dict[int, Any] = {}
        self.ticks = 0

    def execute(self, tup: Any) -> None:
        if tup.is_tick:
            self.tick()
            return
        fails = self.executed(tup)
        if self.spec.acks == "join":
            self.join(tup)
            return
        for values, stream, task in self.emits(tup):
            anchors = [tup, tup] if self.spec.anchored else ()
            if task is None:
                self.collector.emit(values, stream, anchors=anchors)
            else:
                self.collector.emit_direct(task, values, stream, anchors=anchors)
        if self.spec.resets:
            self.collector.reset_timeout(tup)
        if fails and self.spec.how == "call":
            self.collector.fail(tup, "by spec")
        elif fails:
            raise FailedException("by spec") if self.spec.how == "exception" else KeyError("by spec")
        elif self.spec.acks == "late":
            self.held.append(tup)
        else:
            self.collector.ack(tup)

    def join(self, tup: Any) -> None:
        """Emit both messages' tuple, anchored to both (E17)."""
        partner = self.waiting.pop(tup["number"], None)
        self.ticks = 0
        if partner is None:
            self.waiting[tup["number"]] = tup
            return
        messages = sorted([*json.loads(partner["messages"]), *json.loads(tup["messages"])])
        self.collector.emit((json.dumps(messages), tup["number"], 0), anchors=[partner, tup])
        self.collector.ack(tup)
        self.collector.ack(partner)

    def tick(self) -> None:
        """Ack what was held, the newest first; what waits for a partner only when nothing has come for a while."""
        for tup in reversed(self.held):
            self.collector.ack(tup)
        self.held.clear()
        self.ticks += 1
        if self.ticks >= 8:
            for tup in self.waiting.values():
                self.collector.ack(tup)
            self.waiting.clear()


def built(spec: TopologySpec) -> Topology:
    """The topology of a spec."""
    builder = TopologyBuilder()
    for spout in spec.spouts:
        builder.set_spout(spout.name, FuzzSpout(spout), spout.tasks)
    for bolt in spec.bolts:
        made = FuzzBasicBolt(bolt) if bolt.acks == "basic" else FuzzBolt(bolt)
        declarer = builder.set_bolt(bolt.name, made, bolt.executors).set_num_tasks(bolt.tasks)
        for one in bolt.inputs:
            grouping = one.grouping
            if isinstance(grouping, FirstAndLast):
                declarer.custom_grouping(one.source, grouping, one.stream)
            else:
                declarer.grouping(one.source, grouping, one.stream)
    return builder.create_topology(f"fuzz-{spec.seed}", spec.conf)
