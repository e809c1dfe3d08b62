"""Components and rules for the cases of groupings; workers import them, so they are in a module of their own."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any

from stormspark import (
    BasicBolt,
    BasicOutputCollector,
    CustomStreamGrouping,
    Fields,
    OutputFieldsDeclarer,
    Spout,
    SpoutOutputCollector,
    TopologyContext,
    Tuple,
)
from tests.conformance.components import Effects


class Words(Spout):
    """One task emits ``n`` words, over and over the same few, the first one as often as all others."""

    def __init__(self, n: int, words: list[str]) -> None:
        self.all = [words[0] if i % 2 else words[i // 2 % len(words)] for i in range(n)]

    def open(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector
    ) -> None:
        self.collector = collector
        self.effects = Effects(conf, context)
        self.done = 0

    def next_tuple(self) -> None:
        if self.done < len(self.all):
            self.done += 1
            self.collector.emit((self.all[self.done - 1],), message_id=self.done)

    def ack(self, message_id: Hashable) -> None:
        self.effects.write("ack", message_id)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("word"))


class Pick(CustomStreamGrouping):
    """By number: none, one, two or all of the tasks in turn; for ``unknown`` a task that is none of them, and for ``fails``
    an error.
    """

    def __init__(self, unknown: int = -1, fails: int = -1) -> None:
        self.unknown = unknown
        self.fails = fails

    def prepare(self, context: Any, stream: Any, target_tasks: list[int]) -> None:
        self.tasks = target_tasks

    def choose_tasks(self, task: int, values: Any) -> list[int]:
        number = values[0]
        if number == self.unknown:
            return [self.tasks[0], 4711]
        if number == self.fails:
            raise ZeroDivisionError("no rule")
        return self.tasks[: (0, 1, 2, len(self.tasks))[number % 4]]


class OwnCount(CustomStreamGrouping):
    """In turn, by a count of its own: each sender begins at the first task."""

    def prepare(self, context: Any, stream: Any, target_tasks: list[int]) -> None:
        self.tasks = target_tasks
        self.asked = -1

    def choose_tasks(self, task: int, values: Any) -> list[int]:
        self.asked += 1
        return [self.tasks[self.asked % len(self.tasks)]]


class NotReady(CustomStreamGrouping):
    """Can't be prepared."""

    def prepare(self, context: Any, stream: Any, target_tasks: list[int]) -> None:
        raise LookupError("no table of tasks")

    def choose_tasks(self, task: int, values: Any) -> list[int]:
        return []


def mistakes(
    emit: Callable[..., Any], emit_direct: Callable[..., Any], context: TopologyContext
) -> list[str | None]:
    """Each mistake with a direct stream, and what came of it: the error's text, or None."""
    taken, shuffled = context.component_tasks("direct")[0], context.component_tasks("regular")[0]

    def outcome(emits: Callable[[], Any]) -> str | None:
        try:
            emits()
        except ValueError as error:
            return f"{type(error).__name__}: {error}"
        return None

    return [
        outcome(lambda: emit((-1,), stream="to")),
        outcome(lambda: emit((-1,), stream="nowhere")),
        outcome(lambda: emit_direct(taken, (-1,), stream="nowhere")),
        outcome(lambda: emit_direct(shuffled, (-1,), stream="plain")),
        outcome(lambda: emit_direct(shuffled, (-1,), stream="to")),
        outcome(lambda: emit_direct(4711, (-1,), stream="to")),
    ]


class DirectSpout(Spout):
    """Deals 0..n-1 out to the tasks of ``direct`` by hand, after it has made every mistake once."""

    def __init__(self, n: int) -> None:
        self.n = n

    def open(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector
    ) -> None:
        self.collector = collector
        self.effects = Effects(conf, context)
        self.context = context
        self.tasks = context.component_tasks("direct")
        self.next = -1

    def next_tuple(self) -> None:
        if self.next < 0:
            self.effects.write(
                "mistakes", mistakes(self.collector.emit, self.collector.emit_direct, self.context)
            )
            self.collector.emit_direct(4711, (-1,), stream="to", message_id="to nobody")
        elif self.next < self.n:
            task = self.tasks[self.next % len(self.tasks)]
            self.collector.emit_direct(task, (self.next,), stream="to", message_id=self.next)
            self.collector.emit((self.next,), stream="plain", message_id=f"plain {self.next}")
        self.next += 1

    def ack(self, message_id: Hashable) -> None:
        self.effects.write("ack", message_id)

    def fail(self, message_id: Hashable) -> None:
        self.effects.write("fail", message_id, str(self.collector.verdict))

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare_stream("to", Fields("n"), direct=True)
        declarer.declare_stream("plain", Fields("n"))


class DirectBolt(BasicBolt):
    """Sends each number on to the task of ``direct`` that is its turn; makes every mistake at number 0."""

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        self.context = context
        self.effects = Effects(conf, context)
        self.tasks = context.component_tasks("direct")

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        number = tup["n"]
        if number == 0:
            self.effects.write("mistakes", mistakes(collector.emit, collector.emit_direct, self.context))
        collector.emit_direct(self.tasks[number % len(self.tasks)], (number,), stream="to")
        collector.emit((number,), stream="plain")

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare_stream("to", Fields("n"), direct=True)
        declarer.declare_stream("plain", Fields("n"))
