"""Async components that write down what they do."""

from __future__ import annotations

import asyncio
import random
import threading
from collections import deque
from collections.abc import Hashable
from pathlib import Path
from typing import Any

from stormspark import AsyncBolt, AsyncSpout, FailedException, Fields, ReportedFailedException
from tests.conformance.components import EFFECTS, Effects


class Ask(AsyncBolt):
    """Waits at random, at most ``most_secs``, and emits the number. Some numbers end badly, the first time that they come.

    ``fails``, ``raises``, ``hangs`` and ``exits`` are these numbers; `where` finds them anew after a restart.
    """

    def __init__(
        self,
        most_secs: float = 0.02,
        *,
        fails: tuple[int, ...] = (),
        raises: tuple[int, ...] = (),
        hangs: tuple[int, ...] = (),
        exits: tuple[int, ...] = (),
        **settings: Any,
    ) -> None:
        self.most_secs = most_secs
        self.ends = {"fail": fails, "raise": raises, "hang": hangs, "exit": exits}
        for name, value in settings.items():
            setattr(self, name, value)

    async def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector, self.effects, self.marks = collector, Effects(conf, context), Path(conf[EFFECTS])
        self.loop, self.thread = asyncio.get_running_loop(), threading.get_ident()
        self.under_way = self.most = 0
        self.random = random.Random(context.this_task_id)

    def _ends(self, number: int) -> str | None:
        for end, numbers in self.ends.items():
            mark = self.marks / f"{end}-{number}.mark"
            if number in numbers and not mark.exists():
                mark.touch()
                return end
        return None

    async def execute(self, tup: Any) -> None:
        assert self.loop is asyncio.get_running_loop() and self.thread == threading.get_ident()
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        try:
            end = self._ends(tup["n"])
            await asyncio.sleep(600 if end == "hang" else self.random.uniform(0, self.most_secs))
            if end == "fail":
                raise FailedException(f"not {tup['n']}")
            if end == "raise":
                raise KeyError(tup["n"])
            if end == "exit":
                raise SystemExit(tup["n"])
            self.collector.emit((tup["n"],))
        finally:
            self.under_way -= 1

    async def cleanup(self) -> None:
        self.effects.write("cleanup", self.most, self.under_way)

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("n"))


class Reported(Ask):
    """Says why a tuple fails."""

    async def execute(self, tup: Any) -> None:
        if self._ends(tup["n"]):
            raise ReportedFailedException("as was to be shown")
        self.collector.emit((tup["n"],))


class Arrive(AsyncSpout):
    """Numbers arrive one by one, after waits at random; those that fail are emitted again."""

    def __init__(self, n: int, raises: tuple[int, ...] = (), most_secs: float = 0.002) -> None:
        self.n, self.raises, self.most_secs = n, raises, most_secs

    async def open(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector, self.effects, self.marks = collector, Effects(conf, context), Path(conf[EFFECTS])
        done = {message for what, message, *_ in self.effects.read() if what == "ack"}
        tasks = len(context.component_tasks(context.this_component_id))
        mine = range(context.this_task_index, self.n, tasks)
        self.todo = deque(number for number in mine if number not in done)
        self.random = random.Random(context.this_task_id)

    async def next_tuple(self) -> None:
        await asyncio.sleep(self.random.uniform(0, self.most_secs))
        if not self.todo:
            await asyncio.sleep(600)
        number = self.todo.popleft()
        mark = self.marks / f"spout-{number}.mark"
        if number in self.raises and not mark.exists():
            mark.touch()
            raise KeyError(number)
        self.collector.emit((number,), message_id=number)

    async def ack(self, message_id: Hashable) -> None:
        await asyncio.sleep(0)
        self.effects.write("ack", message_id)

    async def fail(self, message_id: Hashable) -> None:
        verdict = self.collector.verdict
        self.effects.write("fail", message_id, verdict.outcome.name, verdict.component, verdict.reason)
        await asyncio.sleep(0)
        assert self.collector.verdict is verdict
        self.collector.emit((message_id,), message_id=message_id)

    async def close(self) -> None:
        self.effects.write("close")

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("n"))


class Pairs(AsyncSpout):
    """Emits each number twice, as one message."""

    def __init__(self, n: int) -> None:
        self.n = n

    async def open(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector, self.effects = collector, Effects(conf, context)
        self.todo = list(range(self.n))[::-1]

    async def next_tuple(self) -> None:
        if self.todo:
            with self.collector.group(number := self.todo.pop()) as group:
                group.emit((number,))
                await asyncio.sleep(0)
                group.emit((number,))

    async def ack(self, message_id: Hashable) -> None:
        self.effects.write("ack", message_id)

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("n"))
