"""Small components for tests of the worker core."""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

from stormspark import BasicBolt, Bolt, Fields, Spout


class Script(Spout):
    """Emits what it is given, one a call, each with its position as id; what it hears goes to ``heard`` of
    the instance.
    """

    def __init__(self, rows: list[tuple[Any, ...]], fields: tuple[str, ...] = ("value",)) -> None:
        self.rows = rows
        self.fields = fields

    def open(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector = collector
        self.next = 0
        self.heard: list[Any] = []

    def next_tuple(self) -> None:
        if self.next < len(self.rows):
            self.next += 1
            self.collector.emit(self.rows[self.next - 1], message_id=self.next - 1)

    def ack(self, message_id: Any) -> None:
        self.heard.append(("ack", message_id))

    def fail(self, message_id: Any) -> None:
        self.heard.append(("fail", message_id, str(self.collector.verdict)))

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields(*self.fields))


class Fail(NamedTuple):
    """What a `Script` heard of a message that failed."""

    message: Any
    reason: str


def acks_of(spout: Any) -> list[Any]:
    """The messages that a `Script` heard were acked, in order."""
    return [message for what, message, *_ in spout.heard if what == "ack"]


def fails_of(spout: Any) -> list[Fail]:
    """The messages that a `Script` heard have failed, in order."""
    return [Fail(*told) for what, *told in spout.heard if what == "fail"]


class InAThread(Spout):
    """Has a thread of its own call ``work`` until that raises, which is kept in ``raised``."""

    def open(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector = collector
        self.raised: list[BaseException] = []

    def work(self) -> None:
        raise NotImplementedError

    def _work(self) -> None:
        try:
            self.work()
        except Exception as error:
            self.raised.append(error)

    def next_tuple(self) -> None:
        if not self.raised:
            thread = threading.Thread(target=self._work)
            thread.start()
            thread.join(120)

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("value"))


class Collect(BasicBolt):
    """Keeps the values of what it executed."""

    def prepare(self, conf: Any, context: Any) -> None:
        self.context = context
        self.seen: list[tuple[Any, ...]] = []

    def execute(self, tup: Any, collector: Any) -> None:
        self.seen.append((tup.source_stream, *tup.values))


class Call(Bolt):
    """Runs a given function as its execute: ``function(bolt, tup)``."""

    def __init__(
        self, function: Any, streams: dict[str, tuple[str, ...]] | None = None, direct: bool = False
    ) -> None:
        self.function = function
        self.streams = streams or {"default": ("value",)}
        self.direct = direct

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.context = context
        self.collector = collector
        self.kept: list[Any] = []

    def execute(self, tup: Any) -> None:
        self.function(self, tup)

    def declare_output_fields(self, declarer: Any) -> None:
        for stream, fields in self.streams.items():
            declarer.declare_stream(stream, Fields(*fields), direct=self.direct)
