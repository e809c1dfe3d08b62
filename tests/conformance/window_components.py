"""Spouts and windowed bolts that write what happens to them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from stormspark import (
    BasicBolt,
    BasicOutputCollector,
    FailedException,
    Fields,
    KeyValueState,
    OutputCollector,
    OutputFieldsDeclarer,
    Spout,
    SpoutOutputCollector,
    StatefulWindowedBolt,
    TopologyContext,
    Tuple,
    TupleWindow,
    WindowedBolt,
)
from tests.conformance.components import EFFECTS, Effects, read_effects


class Stages(Spout):
    """Emits numbers stage by stage: the next one when all of ``wait_for`` are acked or failed; writes every verdict.

    With ``wait_for_window`` also not before `Sum`, as "windows", has had the window that ends there.
    Numbers of ``untracked`` follow at the very end, without a message id: so windows can be filled that nobody waits for. They
    go to every task that subscribes to ``untracked`` too.
    """

    def __init__(
        self,
        *stages: Iterable[int],
        wait_for: Iterable[int] = (),
        wait_for_window: int | None = None,
        untracked: Iterable[int] = (),
        replays: int = 0,
    ) -> None:
        self.stages = [list(stage) for stage in stages]
        self.wait_for = frozenset(wait_for)
        self.wait_for_window = wait_for_window
        self.untracked = list(untracked)
        self.replays = replays

    def open(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector
    ) -> None:
        self.collector = collector
        self.effects = Effects(conf, context)
        self.folder = Path(conf[EFFECTS])
        self.todo = [*self.stages[0]]
        self.later = [*self.stages[1:]]
        self.ended: set[Hashable] = set()
        self.fails: Counter[Hashable] = Counter()

    def next_tuple(self) -> None:
        if not self.todo and self.later and self.wait_for <= self.ended and self._window_has_fired():
            self.todo = self.later.pop(0)
        if self.todo:
            number = self.todo.pop(0)
            self.collector.emit((number,), message_id=number)
        elif self.untracked and not self.later:
            number = self.untracked.pop(0)
            self.collector.emit((number,))
            self.collector.emit((number,), "untracked")

    def _window_has_fired(self) -> bool:
        end = self.wait_for_window
        return end is None or any(
            window.end == end for window in windows_in(read_effects(self.folder, "windows"))
        )

    def ack(self, message_id: Hashable) -> None:
        self.effects.write("ack", message_id)
        self.ended.add(message_id)

    def fail(self, message_id: Hashable) -> None:
        verdict = self.collector.verdict
        assert verdict is not None
        self.effects.write("fail", message_id, verdict.outcome.name, verdict.component, verdict.reason)
        self.ended.add(message_id)
        self.fails[message_id] += 1
        if self.fails[message_id] <= self.replays:
            self.todo.append(message_id)  # type: ignore[arg-type]

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("n"))
        declarer.declare_stream("untracked", Fields("n"))


class Window(NamedTuple):
    """A window, as `Sum` wrote it down: its numbers, and its first and last timestamp."""

    items: list[int]
    new: list[int]
    expired: list[int]
    start: int | None
    end: int


def windows_in(effects: Iterable[list[Any]]) -> list[Window]:
    """The windows that `Sum` wrote down, in order."""
    return [Window(*effect) for effect in effects if effect != ["prepared"]]


class Sum(WindowedBolt):
    """Writes each window down, and emits the sum of its items and how many they are.

    Raises for a window with one of ``fail`` or ``error``, the first time that there is one.
    """

    def __init__(self, fail: Sequence[int] = (), error: Sequence[int] = ()) -> None:
        self.fail = fail
        self.error = error

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        self.collector = collector
        self.effects = Effects(conf, context)
        self.effects.write("prepared")
        self.mark = Path(conf[EFFECTS]) / "raised.mark"

    def execute(self, window: TupleWindow) -> None:
        items, new, expired = (
            [tup["n"] for tup in tuples] for tuples in (window.tuples, window.new, window.expired)
        )
        self.effects.write(items, new, expired, window.start_timestamp, window.end_timestamp)
        if set(items) & {*self.fail, *self.error} and not self.mark.exists():
            self.mark.touch()
            raise FailedException("this window fails") if self.fail else KeyError("this window is an error")
        self.collector.emit((sum(items), len(items)))

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("sum", "count"))


class FailSums(BasicBolt):
    """Fails the sums that it is told."""

    def __init__(self, *sums: int) -> None:
        self.sums = sums

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        self.effects = Effects(conf, context)

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        if tup["sum"] in self.sums:
            raise FailedException(f"not {tup['sum']}")
        self.effects.write(*tup.values)


class Late(BasicBolt):
    """Writes late tuples: the number, and where it came from."""

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        self.effects = Effects(conf, context)

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        late = tup["late_tuple"]
        self.effects.write(late["n"], late.source_component, late.source_stream, list(tup.fields))


class Best(StatefulWindowedBolt[KeyValueState[str, int]]):
    """Writes of each window how many tuples it has, the least of them, and how many windows there have been."""

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        self.collector = collector
        self.effects = Effects(conf, context)

    def init_state(self, state: KeyValueState[str, int]) -> None:
        self.state = state

    def execute(self, window: TupleWindow) -> None:
        self.state["windows"] = count = self.state.get("windows", 0) + 1
        self.effects.write("window", len(window), min(tup["n"] for tup in window), count)
        self.collector.emit((len(window), count))

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("sum", "count"))
