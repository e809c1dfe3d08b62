"""The components of a random topology: one spout and two bolts, which do what their spec says.

What happens is noted in memory, where all workers are in this process, or in files of the folder ``fuzz.folder``.
"""

from __future__ import annotations

import itertools
import json
import os
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any

from stormspark import (
    BasicBolt,
    Bolt,
    FailedException,
    Fields,
    ReportedFailedException,
    Spout,
    Topology,
    TopologyBuilder,
)
from tests.fuzz.spec import (
    FIELDS,
    WAITS,
    BoltSpec,
    FirstAndLast,
    Message,
    SpoutSpec,
    TopologySpec,
    message_id,
)
from tests.whole_lines import whole_lines

__all__ = ["FOLDER", "FuzzSpout", "Notes", "begin_run", "built"]

FOLDER = "fuzz.folder"
_MOST_WAITS = 200
_ON_THREADS = {"stormspark.executor.threads": "always"}


class Notes:
    """What happened in a run: messages emitted, executions by (bolt, messages, round), verdicts by message id."""

    def __init__(self) -> None:
        self.emitted: set[Message] = set()
        self.executed: Counter[tuple[str, str, int]] = Counter()
        self.verdicts: dict[str, Counter[str]] = {}
        self.wrong: list[str] = []  # what components saw that must never be

    def note(self, what: str, *values: Any) -> None:
        """Something happened."""
        if what == "executed":
            bolt, messages, turn = values
            self.executed[bolt, messages, turn] += 1
        elif what == "emitted":
            self.emitted.add(tuple(values[0]))
        elif what == "wrong":
            self.wrong.append(values[0])
        else:
            self.verdicts.setdefault(values[0], Counter())[what] += 1

    @classmethod
    def read(cls, folder: Path) -> Notes:
        """What the tasks of other processes have noted."""
        notes = cls()
        for path in folder.glob("*.jsonl"):
            for line in whole_lines(path):
                notes.note(*json.loads(line))
        return notes


#: Of the run in this process.
here = Notes()
lives: Counter[tuple[str, int]] = Counter()
_instances = itertools.count()


def begin_run() -> Notes:
    """Forget the last run in this process."""
    global here  # noqa: PLW0603 - components are copies, this is what they share
    here = Notes()
    lives.clear()
    return here


class _Pen:
    """Notes what a task does, and counts what it emits."""

    def __init__(self, conf: Mapping[str, Any], context: Any) -> None:
        folder = conf.get(FOLDER)
        self._path = None if folder is None else Path(folder) / f"{context.this_task_id}.jsonl"
        self._name = f"{os.getpid()}-{next(_instances)}"
        self._sent = 0
        self._most_secs = conf.get(WAITS, 0.0) / 1000
        self._random = Random(context.this_task_id)
        self._waits = 0

    def wait(self) -> None:
        """Wait for a moment, every other time; but not for minutes, in topologies with many tuples."""
        if self._most_secs and self._waits < _MOST_WAITS and self._random.random() < 0.5:
            self._waits += 1
            time.sleep(self._random.uniform(0, self._most_secs))

    def note(self, what: str, *values: Any) -> None:
        self.wait()
        if self._path is None:
            here.note(what, *values)
        else:
            with self._path.open("a") as file:
                file.write(json.dumps([what, *values]) + "\n")

    def values(self, messages: str, number: int, turn: int) -> tuple[str, int, int, tuple[str, int]]:
        """The values of the next tuple."""
        self.wait()
        self._sent += 1
        return messages, number, turn, (self._name, self._sent)


class FuzzSpout(Spout):
    """Emits its messages once each, a few a call."""

    def __init__(self, spec: SpoutSpec, acking: bool, limit: int | None) -> None:
        self.spec, self.acking, self.limit = spec, acking, limit

    def open(self, conf: Mapping[str, Any], context: Any, collector: Any) -> None:
        self.collector, self.context, self.pen = collector, context, _Pen(conf, context)
        index = context.this_task_index
        lives[self.spec.name, index] += 1
        life = lives[self.spec.name, index]
        self.todo: list[Message] = [(self.spec.name, index, n, life) for n in range(self.spec.messages)]
        self.raises = life == 1 and self.spec.raises_after is not None
        #: Emits with an id, and verdicts heard.
        self.tracked = self.heard = 0
        self.in_next_tuple = False

    def next_tuple(self) -> None:
        if self.limit and self.collector.pending_count >= self.limit:
            self.pen.note(
                "wrong", f"{self.spec.name} is asked with {self.collector.pending_count} pending (B4)"
            )
        self.in_next_tuple = True
        for message in self.todo[: self.spec.burst]:
            if self.raises and message[2] == self.spec.raises_after:
                raise KeyError("by spec")
            self.pen.note("emitted", message)
            self.tracked += self.spec.kind != "unreliable"
            self.emit(message, (json.dumps([message]), message[2], 0))
            if not self.acking and self.heard != self.tracked:
                self.pen.note("wrong", f"{message} is not acked inside emit (E29)")
        del self.todo[: self.spec.burst]
        if self.raises and not self.todo:
            raise KeyError("by spec, with nothing left to emit")
        self.in_next_tuple = False
        if self.limit and self.collector.pending_count >= self.limit + self.spec.burst:
            self.pen.note("wrong", f"{self.spec.name} has {self.collector.pending_count} pending (E27)")

    def emit(self, message: Message, values: tuple[str, int, int]) -> None:
        """In the manner of the spec."""
        new, kind = self.pen.values, self.spec.kind
        id = None if kind == "unreliable" else message_id(kind, message)
        if kind == "group":
            with self.collector.group(id) as group:
                group.emit(new(*values))
                group.emit(new(*values), stream="side")
                for task in self.named(message[2]):
                    group.emit_direct(task, new(*values), stream="direct")
                group.emit(new(*values))
        elif kind == "direct":
            # Where nobody subscribes: to a task that nobody has, which gets nothing (B9).
            task = next(self.named(message[2]), 0)
            self.collector.emit_direct(task, new(*values), stream="direct", message_id=id)
        else:
            self.collector.emit(new(*values), message_id=id)

    def named(self, number: int) -> Iterator[int]:
        """The tasks of a direct emit: one of each subscriber, these by their names."""
        for consumer in sorted(self.context.this_targets["direct"]):
            tasks = self.context.component_tasks(consumer)
            yield tasks[number % len(tasks)]

    def ack(self, message_id: Any) -> None:
        self.hear("ACKED", message_id)

    def fail(self, message_id: Any) -> None:
        self.hear(self.collector.verdict.outcome.name, message_id)

    def hear(self, what: str, message_id: Any) -> None:
        self.heard += 1
        if self.in_next_tuple and self.acking:
            self.pen.note("wrong", f"{message_id} has its verdict inside next_tuple (B3)")
        self.pen.note(what, message_id)

    def declare_output_fields(self, declarer: Any) -> None:
        for stream in self.spec.streams:
            declarer.declare_stream(stream, Fields(*FIELDS), direct=stream == "direct")


class _Work:
    """What both kinds of bolts do with a tuple."""

    spec: BoltSpec

    def begin(self, conf: Mapping[str, Any], context: Any) -> None:
        self.pen, self.context = _Pen(conf, context), context
        self.seen: dict[str, int] = {}

    def emits(self, tup: Any) -> Iterator[tuple[tuple[Any, ...], str, int | None]]:
        """(values, stream, task of a direct emit) of all that is emitted for a tuple."""
        messages, number, turn, _ = tup.values
        new = self.pen.values
        for stream, copies in self.spec.fan_out.items():
            for _ in range(copies):
                if stream != "direct":
                    yield new(messages, number, turn), stream, None
                    continue
                for consumer in self.context.this_targets["direct"]:
                    tasks = self.context.component_tasks(consumer)
                    yield new(messages, number, turn), stream, tasks[number % len(tasks)]
        if self.spec.loop is not None and turn < self.spec.rounds:
            yield new(messages, number, turn + 1), "loop", None

    def executed(self, tup: Any) -> bool:
        """Note it; true if this bolt fails such tuples."""
        messages, number, turn, (sender, sent) = tup.values
        self.pen.note("executed", self.spec.name, messages, turn)
        if sent <= self.seen.get(sender, 0):
            self.pen.note("wrong", f"{tup} comes after {self.seen[sender]} of that sender (E31)")
        self.seen[sender] = sent
        return number in self.spec.fails

    def error(self) -> Exception:
        """What it raises to fail a tuple."""
        return {"exception": FailedException, "reported": ReportedFailedException, "error": KeyError}[
            self.spec.how
        ]("by spec")

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
            raise self.error()


class FuzzBolt(_Work, Bolt):
    """Anchors or not, acks at once, twice, with the next tick in another order, or in pairs."""

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
        if fails and self.spec.how != "call":
            raise self.error()
        if self.spec.acks == "late" and not fails:
            self.held.append(tup)
            return
        for close in self.closes(fails):
            close(tup)

    def closes(self, fails: bool) -> list[Any]:
        """What is done to a tuple in the end; only the first of it counts (E14)."""
        ack, fail = self.collector.ack, self.collector.fail
        return [fail if fails else ack, *([ack, fail] if self.spec.acks == "twice" else [])]

    def join(self, tup: Any) -> None:
        """Emit both messages' tuple, anchored to both (E17)."""
        partner = self.waiting.pop(tup["number"], None)
        self.ticks = 0
        if partner is None:
            self.waiting[tup["number"]] = tup
            return
        messages = sorted([*json.loads(partner["messages"]), *json.loads(tup["messages"])])
        values = self.pen.values(json.dumps(messages), tup["number"], 0)
        self.collector.emit(values, anchors=[partner, tup])
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
        limit = spec.conf.get("topology.max.spout.pending")
        declared = builder.set_spout(spout.name, FuzzSpout(spout, spec.acking, limit), spout.tasks)
        if spout.name in spec.threads:
            declared.add_configurations(_ON_THREADS)
    for bolt in spec.bolts:
        made = FuzzBasicBolt(bolt) if bolt.acks == "basic" else FuzzBolt(bolt)
        declarer = builder.set_bolt(bolt.name, made, bolt.executors).set_num_tasks(bolt.tasks)
        if bolt.name in spec.threads:
            declarer.add_configurations(_ON_THREADS)
        for one in bolt.inputs:
            grouping = one.grouping
            if isinstance(grouping, FirstAndLast):
                declarer.custom_grouping(one.source, grouping, one.stream)
            else:
                declarer.grouping(one.source, grouping, one.stream)
    return builder.create_topology(spec.name, spec.conf)
