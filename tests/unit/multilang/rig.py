"""A `ShellBolt` without any engine, whose child does what a test says."""

from __future__ import annotations

import select
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from stormspark.api import TICK_SOURCE, Fields, Tuple, TupleSource
from stormspark.multilang import ShellBolt
from stormspark.spi import Given
from stormspark.testing import RecordingCollector, make_context
from tests.legacy.multilang.languages import CHILDREN, OBEY

__all__ = ["Obedient", "is_alive", "until"]

_SOURCE = TupleSource("source", 7, "default", Fields("order", "value"))
_PATIENCE_SECS = 120


class Obedient:
    """A bolt in the middle of ``with``; the child is at its end afterwards, whatever happened.

    ``short``: the bolt is given tuples, and emits and acks, as the engine has it do, and not through ``execute`` and the
    collector. What is recorded is the same.
    """

    short = False

    def __init__(
        self,
        *start: str,
        conf: Mapping[str, Any] | None = None,
        outputs: Any = ("what", "value"),
        bolt: ShellBolt | None = None,
        short: bool | None = None,
        **options: Any,
    ) -> None:
        if short is not None:
            self.short = short
        self.bolt = bolt or ShellBolt([*OBEY, *start], outputs, **{"cwd": str(CHILDREN), **options})
        self.conf = {"topology.message.timeout.secs": 30, **(conf or {})}
        self.context = make_context("obey", self.bolt)
        self.collector = RecordingCollector(self.bolt, name="obey", receivers=[4, 5])

    def __enter__(self) -> Obedient:
        if not self.short:
            self.bolt.prepare(self.conf, self.context, self.collector)
            return self
        self.bolt.prepare(self.conf, self.context, _Originals(self.collector))
        assert self.bolt.keeps == (type(self.bolt).execute is ShellBolt.execute)
        self.bolt.connected(self._sender, self._ack)
        return self

    def _sender(self, stream: str) -> Callable[[tuple[Any, ...], Any], list[int]]:
        return lambda values, tup: self.collector.emit(values, stream, tup)

    def _ack(self, given: Sequence[Given]) -> None:
        for _, _, tup in given:
            self.collector.ack(tup)

    def __exit__(self, *error: object) -> None:
        self.bolt.let_go()

    def give(self, order: str, value: Any = None, source: TupleSource = _SOURCE) -> Tuple:
        """Execute a tuple."""
        tup = Tuple((order, value), source)
        self.execute([tup])
        self.bolt.send()
        return tup

    def tick(self) -> None:
        self.execute([Tuple((1,), TICK_SOURCE)])
        self.bolt.send()

    def execute(self, tuples: Sequence[Tuple]) -> None:
        """Execute tuples without a `send`."""
        if not self.short:
            for tup in tuples:
                self.bolt.execute(tup)
            return
        self.serve(lambda: self.bolt.room >= len(tuples))
        # In the place of its trees each one has itself.
        assert self.bolt.execute_all([(tup.values, tup._source, tup) for tup in tuples], 0.0) == len(tuples)

    def serve(self, condition: Callable[[], object]) -> None:
        """Take in what the child says until the condition holds, as a worker does."""
        until(condition, self.step)

    def step(self) -> None:
        select.select([self.bolt], [], [], 0.05)
        self.bolt.take_in()

    def settle(self) -> None:
        """Until the child is through with all that it was given."""
        self.serve(lambda: self.bolt.outside == 0)

    def do(self, order: str, value: Any = None) -> Tuple:
        """Execute a tuple, and wait until it is done."""
        tup = self.give(order, value)
        self.settle()
        return tup

    def last(self) -> Any:
        """The second value of the last emit."""
        return self.collector.emitted[-1].values[1]

    @property
    def pid(self) -> int:
        talk = self.bolt._talk
        assert talk is not None
        return talk.child.pid


class _Originals:
    """A collector's, for who makes tuples anew."""

    def __init__(self, collector: Any) -> None:
        self._collector = collector

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._collector, name)
        return lambda *arguments: method(*map(_original, arguments))


def _original(argument: Any) -> Any:
    if isinstance(argument, list):
        return [_original(one) for one in argument]
    return argument.roots if isinstance(argument, Tuple) and argument.roots is not None else argument


def until(condition: Callable[[], object], step: Callable[[], object] = lambda: time.sleep(0.02)) -> None:
    """Do something until a condition holds; what is waited for is another process, and has no clock to drive."""
    deadline = time.monotonic() + _PATIENCE_SECS
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        step()


def is_alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
