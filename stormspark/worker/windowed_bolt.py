"""The bolt around a user's windowed bolt (A4): it holds tuples for windows, executes those, and acks what has left them.

One verdict a tuple (W14). A tuple is acked when it leaves its last window, failed when the execution of a window that has it
fails, and acked at once when it is late. It is held strongly until then, so what restarts the task finds and fails it.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from stormspark.acker import Branch
from stormspark.api import (
    DEFAULT_STREAM,
    Bolt,
    Fields,
    OutputCollector,
    TopologyContext,
    Tuple,
    TupleSource,
    TupleWindow,
    WindowedBolt,
)
from stormspark.errors import FailedException, ReportedFailedException
from stormspark.windowing import EventTimeWindows, ProcessingTimeWindows, Watermarks, Window, WindowSettings

__all__ = ["WindowCollector", "WindowedBoltExecutor"]


class WindowCollector:
    """What ``WindowedBolt.prepare`` gets: emits are anchored to the window at hand, unless they name their anchors (C27)."""

    __slots__ = ("_anchor", "_collector", "_source", "_tuples")

    def __init__(self, collector: OutputCollector, context: TopologyContext) -> None:
        self._collector = collector
        self._source = TupleSource(context.this_component_id, context.this_task_id, "window", Fields())
        self._tuples: tuple[Tuple, ...] = ()
        self._anchor: Tuple | None = None

    def begin(self, tuples: tuple[Tuple, ...]) -> None:
        """The window at hand has these tuples; with none of them there is no window at hand any more."""
        self._tuples = tuples
        self._anchor = None

    def emit(
        self,
        values: Sequence[Any],
        stream: str = DEFAULT_STREAM,
        anchors: Tuple | Iterable[Tuple] | None = None,
    ) -> list[int]:
        """Emit a tuple; returns the target task ids. Raises `EmitError`."""
        return self._collector.emit(values, stream, self._window() if anchors is None else anchors)

    def emit_direct(
        self,
        task: int,
        values: Sequence[Any],
        stream: str = DEFAULT_STREAM,
        anchors: Tuple | Iterable[Tuple] | None = None,
    ) -> None:
        """Emit on a direct stream to one task (B9, D11)."""
        self._collector.emit_direct(task, values, stream, self._window() if anchors is None else anchors)

    def _window(self) -> Tuple | tuple[()]:
        """One anchor in place of thousands: their trees are put together once for each window, not once for each emit."""
        if not self._tuples:
            return ()
        if self._anchor is None:
            trees: dict[Branch, None] = {}
            for tup in self._tuples:
                roots = tup.roots
                if (
                    roots is None or tup.state == 1
                ):  # what the user has acked or failed by hand is no anchor any more
                    continue
                if isinstance(roots, tuple):
                    trees.update(dict.fromkeys(roots))
                else:
                    trees[roots] = None
            self._anchor = Tuple(
                (), self._source, next(iter(trees), None) if len(trees) < 2 else tuple(trees)
            )
        return self._anchor

    def ack(self, tup: Tuple) -> None:
        """Ack a tuple before it leaves its window, which would do so."""
        self._collector.ack(tup)

    def fail(self, tup: Tuple, reason: str | None = None) -> None:
        """Fail one tuple of the window; it stays in its windows all the same."""
        self._collector.fail(tup, reason)

    def reset_timeout(self, tup: Tuple) -> None:
        """Give ``tup``'s trees another message timeout (C11)."""
        self._collector.reset_timeout(tup)

    def flush(self) -> None:
        """Nothing to do (C2)."""

    def report_error(self, error: BaseException | str) -> None:
        """Show an error (C4)."""
        self._collector.report_error(error)


class WindowedBoltExecutor(Bolt):
    """An ordinary bolt that executes ``bolt`` with windows."""

    def __init__(self, bolt: WindowedBolt) -> None:
        self.bolt = bolt

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        """Prepare the user's bolt, then let time begin. Raises `InvalidTopologyError` for a bolt without a window (C26)."""
        settings = WindowSettings.read(conf)
        self._context = context
        self._collector = collector
        self._anchoring = WindowCollector(collector, context)
        self.bolt.prepare(conf, context, self._anchoring)
        self._late_stream = settings.late_stream
        self._late = 0
        self._by_event: EventTimeWindows[Tuple] | None = None
        if self.bolt.window_time.event:
            self._by_event = EventTimeWindows(settings.length, settings.slide, self._ack)
            self._watermarks = Watermarks(context.this_sources, settings.lag_ms)
            context.set_timer(settings.watermark_interval_ms / 1000, self._watermark_due)
        else:
            self._by_arrival = ProcessingTimeWindows[Tuple](settings.length, settings.slide, self._ack)
            if self._by_arrival.period is not None:
                context.set_timer(self._by_arrival.period / 1000, self._window_due)

    def execute(self, tup: Tuple) -> None:
        """Hold the tuple, or tell that it is late; execute the window that is due with it."""
        if tup.is_tick:
            self._collector.ack(tup)  # in Storm ticks stand in windows, and are an error in event time
        elif self._by_event is not None:
            timestamp = self._timestamp(tup)
            self._watermarks.track((tup.source_component, tup.source_stream), timestamp)
            if not self._by_event.add(tup, timestamp):
                self._take_late(tup, timestamp)
        elif self._by_arrival.add(tup, self._context.now_ms()):
            self._window_due()

    def cleanup(self) -> None:
        """Clean the user's bolt up; what windows still hold is not acked, so it is replayed."""
        self.bolt.cleanup()

    def _window_due(self) -> None:
        window = self._by_arrival.evaluate(self._context.now_ms())
        if window is not None:
            self._execute(window, self._by_arrival)

    def _watermark_due(self) -> None:
        assert self._by_event is not None
        watermark = self._watermarks.advanced()
        if watermark is not None:
            for window in self._by_event.advance(watermark):
                self._execute(window, self._by_event)

    def _execute(
        self, window: Window[Tuple], windows: ProcessingTimeWindows[Tuple] | EventTimeWindows[Tuple]
    ) -> None:
        tuples = window.items
        self._anchoring.begin(tuples)
        try:
            self.bolt.execute(TupleWindow(tuples, window.new, window.expired, window.start, window.end))
        except FailedException as error:
            windows.drop()
            reason = f"{type(error).__name__}: {error}"[:1000]
            for tup in tuples:
                if tup.state != 1:
                    self._collector.fail(tup, reason)
            if isinstance(error, ReportedFailedException):
                self._collector.report_error(error)
        finally:
            self._anchoring.begin(())

    def _ack(self, tuples: list[Tuple]) -> None:
        ack = self._collector.ack
        for tup in tuples:
            if tup.state != 1:
                ack(tup)

    def _timestamp(self, tup: Tuple) -> int:
        """The tuple's timestamp; a tuple that has none fails alone, for windows and task can go on."""
        value = self.bolt.timestamp_of(tup)
        try:
            if not isinstance(value, bool):
                return operator.index(value)
        except TypeError:
            pass
        msg = (
            f"the timestamp of {tup!r} must be an integer, in epoch milliseconds, got {value!r} of type "
            f"{type(value).__name__} (C23)"
        )
        raise ReportedFailedException(msg)

    def _take_late(self, tup: Tuple, timestamp: int) -> None:
        if self._late_stream is not None:
            self._collector.emit((tup.detached(),), self._late_stream, tup)
        else:
            self._late += 1
            if not self._late & (
                self._late - 1
            ):  # a timestamp that is far ahead makes all late: the log must not overflow
                self._context.logger.info(
                    "received a late tuple %r with timestamp %d, which will not be processed; so far %d, told when their number "
                    "has doubled (C31)",
                    tup,
                    timestamp,
                    self._late,
                )
        self._collector.ack(tup)
