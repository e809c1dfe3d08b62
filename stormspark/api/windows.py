"""Windowed bolts, which execute windows of tuples in place of single tuples (C23-C34, W11)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from stormspark.api.components import Component
from stormspark.api.state import KeepsState, State
from stormspark.api.tuples import Tuple
from stormspark.errors import InvalidTopologyError
from stormspark.windowing import Count, Duration, as_duration, as_length, settings

if TYPE_CHECKING:
    from stormspark.api.collector import OutputCollector
    from stormspark.api.context import TopologyContext

__all__ = [
    "LATE_TUPLE_FIELD",
    "MESSAGE_ID_FIELD",
    "Count",
    "Duration",
    "PersistentTupleWindow",
    "StatefulWindowedBolt",
    "TupleWindow",
    "WindowTime",
    "WindowedBolt",
]

#: The field of the stream of late tuples: its value is a copy of the tuple (C31).
LATE_TUPLE_FIELD: Final = "late_tuple"
#: The setting of `WindowedBolt.with_message_id_field`.
MESSAGE_ID_FIELD: Final = "topology.bolts.message.id.field.name"
#: The default of `StatefulWindowedBolt.with_max_events_in_memory`. The number is Storm's.
_MAX_EVENTS_IN_MEMORY: Final = 1_000_000

S = TypeVar("S", bound=State)


@dataclass(frozen=True, slots=True)
class TupleWindow(Sequence[Tuple]):
    """The window that a windowed bolt's ``execute`` receives (C24). The window itself is the sequence of its tuples.

    In processing time the tuples are in the order of arrival, in event time in the order of their timestamps.
    """

    tuples: Sequence[Tuple]
    #: The tuples that came since the last evaluation.
    new: tuple[Tuple, ...]
    #: The tuples that left the windows since the last evaluation; they are already acked. A window that is empty is not
    #: evaluated. Tuples that left before such a skipped evaluation are missing from ``expired`` (C28).
    expired: tuple[Tuple, ...]
    #: The window's start in epoch milliseconds, exclusive; None for a window whose length is a number of tuples.
    start_timestamp: int | None
    #: The window's end in epoch milliseconds, inclusive.
    end_timestamp: int

    def __len__(self) -> int:
        return len(self.tuples)

    def __getitem__(self, position: Any) -> Any:
        return self.tuples[position]

    def __iter__(self) -> Iterator[Tuple]:
        return iter(self.tuples)

    def __repr__(self) -> str:
        return (
            f"TupleWindow({len(self.tuples)} tuples, {len(self.new)} new, {len(self.expired)} expired, "
            f"({self.start_timestamp}, {self.end_timestamp}])"
        )


class PersistentTupleWindow(TupleWindow):
    """A window of a bolt on which `StatefulWindowedBolt.with_persistence` was called (C41). Its tuples are read page by page, so
    iterate over it.

    The window can be read only in ``execute``. As in Storm, the window does not know which tuples are new or expired, so `new`
    and `expired` raise NotImplementedError.
    """

    __slots__ = ()

    def __init__(self, tuples: Sequence[Tuple], start: int | None, end: int) -> None:
        for name, value in (("tuples", tuples), ("start_timestamp", start), ("end_timestamp", end)):
            object.__setattr__(self, name, value)

    @property
    def new(self) -> tuple[Tuple, ...]:
        """Not known: raises NotImplementedError."""
        raise NotImplementedError(_NOT_KNOWN.format("new"))

    @property
    def expired(self) -> tuple[Tuple, ...]:
        """Not known: raises NotImplementedError."""
        raise NotImplementedError(_NOT_KNOWN.format("expired"))

    def __repr__(self) -> str:
        return f"TupleWindow({len(self.tuples)} tuples, ({self.start_timestamp}, {self.end_timestamp}])"


_NOT_KNOWN = (
    "which tuples are {} is not known with a persistent window (with_persistence), as in Storm: "
    "remove with_persistence(), or iterate over the window"
)


@dataclass(frozen=True, slots=True)
class WindowTime:
    """The kind of time that a windowed bolt uses: event time or processing time.

    ``event`` is false for processing time. ``field`` is the field of the timestamps. ``field`` is None in processing time, and if
    an extractor returns the timestamps.
    """

    event: bool
    field: str | None = None


class WindowedBolt(Component, ABC):
    """A bolt that executes windows of tuples (C23, Storm's BaseWindowedBolt).

    Tuples that ``execute`` emits are anchored to all tuples of the window, unless the call of ``emit`` names other anchors. A
    tuple is acked when it leaves its last window (C27), so the message timeout must be longer than the sum of length and slide.
    Each task has its own windows: with a fields grouping there is one window per task, not per key (C34). Where batches are
    transactions (``stormspark.exactly.once``), windows are state. A tuple is then acked with its batch, however long windows keep
    it.

    >>> from stormspark import Fields
    >>> class Average(WindowedBolt):
    ...     def prepare(self, conf, context, collector):
    ...         self.collector = collector
    ...     def execute(self, window):
    ...         self.collector.emit((sum(tup["price"] for tup in window) / len(window),))
    ...     def declare_output_fields(self, declarer):
    ...         declarer.declare(Fields("average"))
    >>> every_second = Average().with_window(Duration.seconds(10), Duration.seconds(1))
    >>> by_day = Average().with_tumbling_window(timedelta(days=1)).with_timestamp_field("sold_at")

    Length, slide, lag, the stream of late tuples, the watermark interval and the message id field are set in the component's
    configuration, under Storm's keys (C25). So the declarer's or the topology's configuration can set them too. For each key, the
    configuration that is nearest to the component wins (A20). If a length or slide is set both as a count and as a duration, the
    count wins.

    If ``execute`` raises `FailedException`, all tuples of the window fail and leave the window, and the bolt goes on. In Storm
    the worker dies (W14). Any other exception restarts the task and fails all tuples that the task held, as with any
    bolt (W22). Where batches are transactions, any exception makes the batch run again.
    """

    # Class attributes, because subclasses need not call __init__.
    _window_settings: Mapping[str, Any] | None = None
    _timestamp_field: str | None = None
    _timestamp_extractor: Callable[[Tuple], int] | None = None

    def with_window(
        self, length: Count | Duration | timedelta, slide: Count | Duration | timedelta | None = None
    ) -> Self:
        """Use windows of ``length`` that slide by ``slide``. By default, windows slide with every tuple.

        If the slide is longer than the length, the tuples between two windows are in no window, and are acked. Raises
        `InvalidTopologyError` unless length and slide are positive counts or durations.
        """
        long = as_length(length, f"{_name(self)}.with_window: length")
        far = Count(1) if slide is None else as_length(slide, f"{_name(self)}.with_window: slide")
        return self._with_settings(
            {
                settings.LENGTH_COUNT: long.value if isinstance(long, Count) else None,
                settings.LENGTH_DURATION: long.value if isinstance(long, Duration) else None,
                settings.SLIDE_COUNT: far.value if isinstance(far, Count) else None,
                settings.SLIDE_DURATION: far.value if isinstance(far, Duration) else None,
            }
        )

    def with_tumbling_window(self, length: Count | Duration | timedelta) -> Self:
        """Use windows that follow one another, so that every tuple is in exactly one."""
        return self.with_window(length, length)

    def with_timestamp_field(self, name: str) -> Self:
        """Use event time: each tuple's timestamp is the integer in field ``name``, in epoch milliseconds.

        A tuple whose timestamp is not an integer fails and is reported as an error.
        """
        if not isinstance(name, str) or not name:
            msg = f"{_name(self)}.with_timestamp_field: a field's name must be a string that is not empty, got {name!r}"
            raise InvalidTopologyError(msg)
        self._once_timestamped()
        self._timestamp_field = name
        return self

    def with_timestamp_extractor(self, extractor: Callable[[Tuple], int]) -> Self:
        """Use event time: ``extractor(tup)`` returns a tuple's timestamp in epoch milliseconds."""
        if not callable(extractor):
            msg = f"{_name(self)}.with_timestamp_extractor: expected a function of a tuple, got {extractor!r}"
            raise InvalidTopologyError(msg)
        self._once_timestamped()
        self._timestamp_extractor = extractor
        return self

    def with_lag(self, lag: Duration | timedelta) -> Self:
        """Set how far out of order tuples may come in event time; by default 0.

        The watermark stays behind the latest timestamps by this much (C30).
        """
        return self._with_settings({settings.MAX_LAG: as_duration(lag, f"{_name(self)}.with_lag: lag").value})

    def with_late_tuple_stream(self, stream: str) -> Self:
        """Emit tuples that are late in event time on ``stream``, which is declared with the one field ``late_tuple`` (C31).

        The field's value is a copy of the late tuple, and the copy belongs to no tree. The emitted tuple is anchored to the
        late tuple, which is acked. Without such a stream, late tuples are acked, and the log says how many there were.
        """
        if not isinstance(stream, str) or not stream:
            msg = f"{_name(self)}.with_late_tuple_stream: a stream's id must be a string that is not empty, got {stream!r}"
            raise InvalidTopologyError(msg)
        return self._with_settings({settings.LATE_TUPLE_STREAM: stream})

    def with_watermark_interval(self, interval: Duration | timedelta) -> Self:
        """Set how often the watermark of event time is computed and windows fire; by default once per second.

        Each bolt may set its own interval. On a Storm cluster a bolt's interval seems to have no effect, because Storm keeps only
        the topology's interval (A22).
        """
        name = f"{_name(self)}.with_watermark_interval: interval"
        return self._with_settings({settings.WATERMARK_INTERVAL: as_duration(interval, name, least=1).value})

    def with_idleness(
        self, after: Duration | timedelta, component: str | None = None, stream: str | None = None
    ) -> Self:
        """Let the watermark not wait for a stream that has delivered nothing for ``after``, as Flink's ``withIdleness``.

        By default the watermark waits for every stream, as in Storm (C30). Call this once for all streams, or for single ones: a
        ``component`` with all of its streams, or one ``stream`` of it. When an idle stream delivers tuples again, its windows may
        have fired, and then its tuples are late. If all streams are idle, the greatest of their timestamps counts. So the last
        windows wait for further tuples, or for the end of the input.
        """
        name = f"{_name(self)}.with_idleness"
        milliseconds = as_duration(after, f"{name}: after", least=1).value
        for given in (component, stream):
            if given is not None and (not isinstance(given, str) or not given):
                msg = f"{name}: the name of a component or stream must be a string that is not empty, got {given!r}"
                raise InvalidTopologyError(msg)
        if stream is not None and component is None:
            msg = f"{name}: stream {stream!r} needs its component: with_idleness(after, component, stream)"
            raise InvalidTopologyError(msg)
        before = (self._window_settings or {}).get(settings.IDLENESS, {})
        place = "" if component is None else component if stream is None else f"{component}/{stream}"
        return self._with_settings({settings.IDLENESS: {**before, place: milliseconds}})

    def with_message_id_field(self, name: str) -> Self:
        """Name the field that holds the tuples' message ids, by which a bolt recognises tuples that it received before (C25,
        C41).

        An id is an integer, and ids grow from tuple to tuple in each stream of each task. The field matters where windows
        are state. A spout without state may emit a tuple twice if its worker dies before the spout hears of the ack. A new
        instance of the bolt acks such a tuple and leaves it out of its windows. It recognises the tuple by its id: the windows
        have already received this id, or a greater one, from the same stream and task. Source spouts, and spouts with state, need
        no such field.
        """
        if not isinstance(name, str) or not name:
            msg = f"{_name(self)}.with_message_id_field: a field's name must be a string that is not empty, got {name!r}"
            raise InvalidTopologyError(msg)
        return self._with_settings({MESSAGE_ID_FIELD: name})

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        """Called once, in the worker, before any window.

        ``collector.emit`` anchors to all tuples of the current window unless ``anchors`` are given. Outside of
        ``execute`` it anchors to nothing.
        """

    @abstractmethod
    def execute(self, window: TupleWindow) -> None:
        """Process one window, which is never empty (C28)."""

    def cleanup(self) -> None:
        """Called when the topology ends, but not when a worker is killed (C1)."""

    def get_component_configuration(self) -> Mapping[str, Any] | None:
        """Return the settings of the windows, under Storm's keys (C25)."""
        return self.window_configuration

    @property
    def window_configuration(self) -> Mapping[str, Any]:
        """The settings of the ``with_...`` methods. They apply even if a subclass returns a configuration of its own."""
        return dict(self._window_settings or {})

    @property
    def window_time(self) -> WindowTime:
        """Event time if the bolt has a timestamp field or extractor, else processing time."""
        return WindowTime(
            self._timestamp_field is not None or self._timestamp_extractor is not None, self._timestamp_field
        )

    def timestamp_of(self, tup: Tuple) -> Any:
        """Return the timestamp from the field or the extractor. Raises KeyError, or what the extractor raises."""
        extractor = self._timestamp_extractor
        return tup[self._timestamp_field] if extractor is None else extractor(tup)  # type: ignore[index]

    def _with_settings(self, changes: Mapping[str, Any]) -> Self:
        self._window_settings = {**(self._window_settings or {}), **changes}
        return self

    def _once_timestamped(self) -> None:
        if self.window_time.event:
            msg = f"{_name(self)} is already configured with a timestamp field or extractor; it can have only one"
            raise InvalidTopologyError(msg)


class StatefulWindowedBolt(KeepsState[S], WindowedBolt):
    """A windowed bolt that has a `State` of its own, in addition to its windows (C41, Storm's BaseStatefulWindowedBolt).

    In a topology that has such a bolt, batches are transactions, and the bolt's state and windows are committed
    together. The order of calls is ``prepare``, `init_state`, then ``execute`` for every window. The other methods are
    those of a `StatefulBolt`.

    >>> from stormspark import Duration, KeyValueState
    >>> class Best(StatefulWindowedBolt[KeyValueState[str, int]]):
    ...     def init_state(self, state):
    ...         self.best = state
    ...     def execute(self, window):
    ...         for tup in window:
    ...             self.best[tup["player"]] = max(tup["score"], self.best.get(tup["player"], 0))
    >>> best = Best().with_tumbling_window(Duration.hours(1)).with_persistence().with_max_events_in_memory(100_000)
    """

    _persistent = False
    _max_events_in_memory = _MAX_EVENTS_IN_MEMORY

    def with_persistence(self) -> Self:
        """Allow windows that do not fit into memory: they are read page by page while ``execute`` iterates over them.

        As in Storm, such windows do not know which tuples are new or expired.
        """
        self._persistent = True
        return self

    def with_max_events_in_memory(self, events: int) -> Self:
        """Set how many tuples are kept in memory once `with_persistence` was called; by default a million.

        The tuples that came since the last batch are in memory as well.
        """
        if isinstance(events, bool) or not isinstance(events, int) or events < 1:
            msg = f"{_name(self)}.with_max_events_in_memory: expected a number of tuples above 0, got {events!r}"
            raise InvalidTopologyError(msg)
        self._max_events_in_memory = events
        return self

    @property
    def is_persistent(self) -> bool:
        """Whether the windows may be larger than memory, because `with_persistence` was called."""
        return self._persistent

    @property
    def max_events_in_memory(self) -> int:
        """How many tuples are kept in memory if `is_persistent`."""
        return self._max_events_in_memory


def _name(bolt: WindowedBolt) -> str:
    return type(bolt).__qualname__
