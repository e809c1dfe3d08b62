"""The bolt around a user's windowed bolt (A4). It holds tuples, executes windows of them, and acks tuples that have left their
last window.

There is one verdict per tuple (W14). A tuple is acked when it leaves its last window. A tuple fails when the execution of a
window with the tuple fails. A late tuple is acked at once. Until the verdict, the bolt in this module keeps the tuple alive, so
that a restart of the task finds the tuple and fails it.

If batches are transactions, the windows are the task's state (C41, `WindowState`). In that case a tuple is acked as soon as it
is held, because the commit of its batch also commits the windows that hold the tuple. Tuples that windows emit belong to the
batch in which the windows are executed, and to no tree. A failure aborts the batch.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, Final

from stormspark.api import Bolt, OutputCollector, TopologyContext, Tuple, TupleWindow, WindowedBolt
from stormspark.api.windows import MESSAGE_ID_FIELD, PersistentTupleWindow, StatefulWindowedBolt
from stormspark.errors import FailedException, InvalidTopologyError, ReportedFailedException
from stormspark.windowing import (
    EventTimeWindows,
    IdlingWatermarks,
    Length,
    PagedItems,
    ProcessingTimeWindows,
    Watermarks,
    Window,
    WindowSettings,
)
from stormspark.worker.windows.window_collector import WindowCollector
from stormspark.worker.windows.window_state import WindowState

__all__ = ["WindowedBoltExecutor"]

#: If the watermark has not advanced for so many milliseconds although tuples wait, the log says for which streams it waits.
_STANDS_STILL_MS: Final = 30_000


class WindowedBoltExecutor(Bolt):
    """An ordinary bolt that calls the user's ``bolt`` with windows. If batches are transactions, the windows are in ``state``.

    ``count_late`` is called for each late tuple. ``input_ended`` says whether the input has ended. From then on no watermark
    fires windows. Each tuple that still comes has failed before, and `end_of_input` fires its window again.
    """

    def __init__(
        self,
        bolt: WindowedBolt,
        state: WindowState | None,
        count_late: Callable[[], None],
        input_ended: Callable[[], bool],
    ) -> None:
        self.bolt = bolt
        self._count_late, self._input_ended = count_late, input_ended
        self._state = state
        self._paged: PagedItems[Tuple] | None = None

    @property
    def collector(self) -> WindowCollector:
        """The collector that the user's bolt got."""
        return self._anchoring

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        """Prepare the user's bolt, then start or restore its windows.

        Raises `InvalidTopologyError` if the bolt has no window (C26), or if the stored windows are in the other kind of time
        (event time or processing time). Raises `CheckpointError` if stored windows can't be read.
        """
        settings = WindowSettings.read(conf)
        self._context = context
        self._collector = collector
        self._anchoring = WindowCollector(collector, context, self._state)
        self._now = self._ahead = 0
        self.bolt.prepare(conf, context, self._anchoring)
        self._late_stream = settings.late_stream
        self._late = 0
        self._by_event: EventTimeWindows[Tuple] | None = None
        self._due: int | None = None  # if windows are state, when the next window is due in processing time
        self._message_ids = _MessageIds(conf.get(MESSAGE_ID_FIELD))
        if self._state is not None:
            self._state.begin(context)
            persists = isinstance(self.bolt, StatefulWindowedBolt) and self.bolt.is_persistent
            most = self.bolt.max_events_in_memory if persists else None  # type: ignore[attr-defined]
            self._paged = PagedItems(settings.length, self._state.load, most)
        if self.bolt.window_time.event:
            self._by_event = EventTimeWindows(settings.length, settings.slide, self._ack, self._paged)
            self._watermarks = self._new_watermarks(settings)
            self._advanced_at: int | None = (
                self._context.now_ms()
            )  # None once the log has said that the watermark stands still
            self._restore(settings.length)
            interval = settings.watermark_interval_ms / 1000
            # A task that restarts again and again must not delay the watermark each time.
            restored = self._state is not None and self._state.progress is not None
            context.set_timer(interval, self._watermark_due, 0 if restored else interval)
        else:
            self._by_arrival = ProcessingTimeWindows[Tuple](
                settings.length, settings.slide, self._ack, self._paged
            )
            self._restore(settings.length)
            if self._by_arrival.period is not None:
                self._begin_trigger(self._by_arrival.period)

    def execute(self, tup: Tuple) -> None:
        """Hold the tuple, unless it is late. Execute the window that the tuple completes, if there is one.

        A tick is only acked, and so is a tuple that the windows held before a restart.
        """
        if tup.is_tick:
            self._collector.ack(tup)  # in Storm, ticks enter windows, which is an error in event time
            return
        if self._state is not None and self._message_ids.has_been(tup):
            self._collector.ack(tup)
        elif self._by_event is not None:
            timestamp = self._timestamp(tup)
            self._watermarks.track((tup.source_component, tup.source_stream), timestamp)
            if not self._by_event.add(self._held(tup), timestamp):
                self._take_late(tup, timestamp)
            elif self._state is not None:
                self._collector.ack(tup)
        elif self._state is None:
            if self._by_arrival.add(tup, self._context.now_ms()):
                self._window_due()
        else:
            due = self._by_arrival.add(self._held(tup), self._now_ms())
            # Ack the tuple before its window is executed. If the window raises an error, this tuple is no more to blame than
            # the window's other tuples.
            self._collector.ack(tup)
            if due:
                self._window_due()

    def end_of_input(self) -> None:
        """Fire all windows that have tuples, and forget all tuples."""
        if self._by_event is not None:
            for window in self._by_event.end():
                self._execute(window, self._by_event)
            self._watermarks.begin_anew()
            return
        for window in self._by_arrival.end(self._context.now_ms() if self._state is None else self._now_ms()):
            self._execute(window, self._by_arrival)

    @property
    def waits_for_watermarks(self) -> bool:
        """Whether held tuples are not acked yet, and wait for a watermark."""
        return self._state is None and self._by_event is not None

    def cleanup(self) -> None:
        """Clean up the user's bolt. Tuples that windows still hold are either stored as state, or are not acked, so that their
        spouts replay them.
        """
        self.bolt.cleanup()

    def save(self) -> None:
        """Put the windows into the state at the end of a batch. Raises `SerializationError`."""
        if self._state is None or self._paged is None:
            return
        windows = self._by_arrival if self._by_event is None else self._by_event
        progress = {
            "event": self._by_event is not None,
            "items": self._paged.progress,
            "windows": windows.progress,
            "watermarks": self._watermarks.progress if self._by_event is not None else None,
            "due": self._due,
            "now": self._now,
            "message ids": self._message_ids.greatest(self._context),
        }
        self._state.save(self._paged, progress)

    # --------------------------------------------------------------------------------------------------------

    def _restore(self, length: Length) -> None:
        if self._state is None or self._state.progress is None or self._paged is None:
            return
        progress = self._state.progress
        event = self._by_event is not None
        if progress["event"] != event:
            before, now = ("event", "processing") if progress["event"] else ("processing", "event")
            msg = (
                f"its windows were in {before} time and are in {now} time now, but their stored tuples have times of the "
                f"other kind: return to {before} time, or begin with a new checkpoint folder"
            )
            raise InvalidTopologyError(msg)
        self._paged.restore(progress["items"])
        self._state.restore(self._paged)
        self._due, self._now = progress["due"], progress["now"]
        self._ahead = max(0, self._now - self._context.now_ms())
        self._message_ids.restore(progress["message ids"], self._context)
        if self._by_event is not None:
            self._by_event.restore(progress["windows"])
            self._watermarks.restore(progress["watermarks"])
        else:
            self._by_arrival.restore(progress["windows"])

    def _begin_trigger(self, period: int) -> None:
        """Start the windows' timer. The timer's rhythm is stored as state, too, so that a task that restarts often does not
        delay its windows.
        """
        first = period
        if self._state is not None:
            now = self._now_ms()
            if self._due is None:
                self._due = now + period
            first = min(self._due - now, period)
        self._context.set_timer(period / 1000, self._window_due, first / 1000)

    def _now_ms(self) -> int:
        """Return the time. If this host's clock is behind the clock of the host where the task ran before, the time goes on
        from the time of that clock.
        """
        self._now = self._context.now_ms() + self._ahead
        return self._now

    def _held(self, tup: Tuple) -> Tuple:
        """Return the tuple to hold. If windows are state, the tuple needs no trees, because it is acked at once."""
        return tup if self._state is None else tup.detached()

    def _window_due(self) -> None:
        now = self._context.now_ms() if self._state is None else self._now_ms()
        period = self._by_arrival.period
        if self._due is not None and period is not None:
            self._due += period * (max(0, now - self._due) // period + 1)
        window = self._by_arrival.evaluate(now)
        if window is not None:
            self._execute(window, self._by_arrival)

    def _new_watermarks(self, settings: WindowSettings) -> Watermarks:
        streams = list(self._context.this_sources)
        idle_after = settings.idle_after(streams)
        if not idle_after:
            return Watermarks(streams, settings.lag_ms)
        return IdlingWatermarks(streams, settings.lag_ms, idle_after, self._context.now_ms())

    def _watermark_due(self) -> None:
        assert self._by_event is not None
        if self._input_ended():
            return
        now = self._context.now_ms()
        watermark = self._watermarks.advanced(now)
        if watermark is not None:
            self._advanced_at = now
            for window in self._by_event.advance(watermark):
                self._execute(window, self._by_event)
        elif self._advanced_at is not None:
            if not len(self._by_event.items):
                self._advanced_at = now
            elif now - self._advanced_at >= _STANDS_STILL_MS:
                self._say_that_it_stands_still(self._by_event, now - self._advanced_at)

    def _say_that_it_stands_still(self, windows: EventTimeWindows[Tuple], for_ms: int) -> None:
        """Log once that tuples wait for a watermark, and for which streams the watermark waits."""
        self._advanced_at = None
        behind = ", ".join(f"{stream!r} of {component!r}" for component, stream in self._watermarks.behind)
        self._context.logger.warning(
            "%d tuples wait in windows, because the watermark has not advanced for %d s: it waits for stream %s. If that stream "
            "is often quiet, set with_idleness",  # C30
            len(windows.items),
            for_ms // 1000,
            behind,
        )

    def _execute(
        self, window: Window[Tuple], windows: ProcessingTimeWindows[Tuple] | EventTimeWindows[Tuple]
    ) -> None:
        if self._state is not None:
            self._execute_in_transaction(window)
            return
        tuples = tuple(window.items)
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

    def _execute_in_transaction(self, window: Window[Tuple]) -> None:
        """Execute a window whose emits belong to the batch. A failure aborts the batch (C44)."""
        assert self._state is not None
        given: TupleWindow
        if isinstance(window.items, tuple):
            given = TupleWindow(window.items, window.new, window.expired, window.start, window.end)
        else:
            given = PersistentTupleWindow(window.items, window.start, window.end)
        try:
            self.bolt.execute(given)
        except FailedException as error:
            self._state.abort(f"execute of {given!r} raised {type(error).__name__}: {error}")
            if isinstance(error, ReportedFailedException):
                self._collector.report_error(error)

    def _ack(self, tuples: list[Tuple]) -> None:
        ack = self._collector.ack
        for tup in tuples:
            if tup.state != 1:
                ack(tup)

    def _timestamp(self, tup: Tuple) -> int:
        """Return the tuple's timestamp. Without a valid one, raises `ReportedFailedException`, so only this tuple fails, and the
        windows and the task go on.
        """
        value = self.bolt.timestamp_of(tup)
        try:
            if not isinstance(value, bool):
                return operator.index(value)
        except TypeError:
            pass
        msg = (
            f"the timestamp of {tup!r} must be an integer, in epoch milliseconds, got {value!r} of type "
            f"{type(value).__name__}"  # C23
        )
        raise ReportedFailedException(msg)

    def _take_late(self, tup: Tuple, timestamp: int) -> None:
        self._count_late()
        if self._late_stream is not None:
            self._collector.emit((tup.detached(),), self._late_stream, tup)
        else:
            self._late += 1
            # One timestamp far in the future makes all later tuples late. The log must not overflow because of them.
            if not self._late & (self._late - 1):
                self._context.logger.info(
                    "received a late tuple %r with timestamp %d, which will not be processed; there were %d so far, and "
                    "the next message comes when that number has doubled",  # C31
                    tup,
                    timestamp,
                    self._late,
                )
        self._collector.ack(tup)


class _MessageIds:
    """Recognises tuples that windows have held before, by a field whose values grow in each stream of each task (C41).

    It looks for such tuples only after a restart, and in each stream only until the first new tuple. Without a field it
    recognises no tuples.
    """

    def __init__(self, field: str | None) -> None:
        self._field = field
        self._greatest: dict[tuple[str, str, int], Any] = {}
        self._had: dict[tuple[str, str, int], Any] = {}

    def has_been(self, tup: Tuple) -> bool:
        if self._field is None:
            return False
        source, number = (tup.source_component, tup.source_stream, tup.source_task), tup[self._field]
        if type(number) is not int:
            msg = f"the message id of {tup!r} must be an integer, got {number!r} of type {type(number).__name__}"
            raise ReportedFailedException(msg)
        had = self._had.get(source)
        if had is not None:
            if number <= had:
                return True
            del self._had[source]
        self._greatest[source] = number
        return False

    def greatest(self, context: TopologyContext) -> dict[tuple[str, str, int], Any]:
        """Return the greatest id of each stream. A stream's task is named by its index and not by its task id."""
        return {
            (component, stream, context.component_tasks(component).index(task)): number
            for (component, stream, task), number in self._greatest.items()
        }

    def restore(self, greatest: dict[tuple[str, str, int], Any], context: TopologyContext) -> None:
        for (component, stream, index), number in greatest.items():
            tasks = context.component_tasks(component) if component in context.component_ids else []
            if index < len(tasks):
                self._greatest[component, stream, tasks[index]] = number
        self._had = dict(self._greatest)
