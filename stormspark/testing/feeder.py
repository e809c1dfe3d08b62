"""`FeederSpout` emits tuples that a test feeds to it, before the topology runs and while it runs (J25, B15)."""

from __future__ import annotations

import threading
import uuid
from collections import deque
from collections.abc import Hashable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

from stormspark.api import (
    DEFAULT_STREAM,
    Fields,
    OutputFieldsDeclarer,
    Spout,
    SpoutOutputCollector,
    TopologyContext,
)
from stormspark.errors import EmitError, SerializationError, StormsparkError, UnsupportedEnvironmentError
from stormspark.testing.acks import AckFailDelegate
from stormspark.testing.spool import Spool

__all__ = ["FeederSpout"]

#: The default of ``message_id``. It requests a new id. The default can't be None, because None means "no id", as in Storm.
_FRESH = object()


class _Fed(NamedTuple):
    number: int
    values: tuple[Any, ...]
    stream: str
    message_id: Hashable | None


class FeederSpout(Spout):
    """Emits the tuples that are passed to `feed`, on either engine. The tuples are dealt to the spout's tasks in turn.

    ``fields`` are the fields of the default stream. ``streams`` has the fields of other streams, by stream id. ``delegate`` is
    called for acks and fails. Usually it is an `AckTracker`. A failed tuple is not emitted again, unless the test feeds it again
    (E11). If a task or a worker starts again, it continues after the tuples that were already emitted, and forgets those that
    were still open (B10).

    Limit: the test and the workers must run on the same host, as the same user. This is so with the local engine, and with
    Spark's masters ``local`` and ``local-cluster``. Elsewhere the spout's `open` ends the topology with
    `UnsupportedEnvironmentError`.

    >>> from stormspark import TopologyBuilder
    >>> from stormspark.local import LocalCluster
    >>> from stormspark.testing import AckTracker, TestWordCounter
    >>> tracker = AckTracker()
    >>> feeder = FeederSpout(Fields("word"), tracker)
    >>> builder = TopologyBuilder()
    >>> _ = builder.set_spout("words", feeder)
    >>> _ = builder.set_bolt("count", TestWordCounter()).fields_grouping("words", Fields("word"))
    >>> with LocalCluster(simulated_time=True) as cluster:
    ...     running = cluster.submit_topology("fed", {}, builder.create_topology("fed"))
    ...     for word in ("storm", "spark"):
    ...         _ = feeder.feed((word,), message_id=word)
    ...     running.run_until_idle()
    >>> tracker.acked
    ['storm', 'spark']
    """

    def __init__(
        self,
        fields: Fields | Iterable[str] | None = None,
        delegate: AckFailDelegate | None = None,
        *,
        streams: Mapping[str, Fields] | None = None,
    ) -> None:
        self._streams = dict(streams or {})
        if fields is not None:
            self._streams[DEFAULT_STREAM] = fields if isinstance(fields, Fields) else Fields(fields)
        self._delegate = delegate
        self._fed = Spool()
        self._taken = Spool()  # the numbers of emitted tuples; tasks that start again read them
        self._count = 0
        self._emitted = 0
        self._lock: threading.Lock | None = threading.Lock()  # None in unpickled copies, which can't be fed
        self._pickled = False

    def __getstate__(self) -> dict[str, Any]:
        self._pickled = True
        return {**self.__dict__, "_lock": None, "_count": 0, "_emitted": 0}

    # -- in the test -----------------------------------------------------------------------------------------

    def set_ack_fail_delegate(self, delegate: AckFailDelegate | None) -> None:
        """Set the receiver of acks and fails.

        Raises StormsparkError if ``create_topology`` was called before, because it has pickled the spout (A3).
        """
        if self._pickled:
            msg = "the delegate of a FeederSpout must be set before create_topology, which pickles the spout"
            raise StormsparkError(msg)
        self._delegate = delegate

    def feed(
        self, values: Sequence[Any], message_id: Hashable | None = _FRESH, stream: str = DEFAULT_STREAM
    ) -> Hashable | None:
        """Let one of the spout's tasks emit ``values``. You may call this at any time, from any thread. Returns the message id.

        As in Storm, a new id is made if you pass no ``message_id``. If you pass None, the tuple has no id, so it is untracked and
        the delegate is not called for it. Raises `EmitError` for an unknown stream or a wrong number of values (A12, B9). Raises
        `SerializationError` for values that can't be pickled.
        """
        fields = self._streams.get(stream)
        if fields is None:
            msg = f"feed to stream {stream!r}: this feeder has {', '.join(map(repr, self._streams)) or 'no streams'}"
            raise EmitError(msg)
        if not isinstance(values, tuple | list) or len(values) != len(fields):
            msg = (
                f"feed to stream {stream!r} takes a tuple or list of {len(fields)} values ({', '.join(fields)}), "
                f"got {values!r}"
            )
            raise EmitError(msg)
        if self._lock is None:
            msg = "this is a task's copy of a FeederSpout; feed the one that the topology was built with"
            raise StormsparkError(msg)
        if message_id is _FRESH:
            message_id = uuid.uuid4().hex
        with self._lock:
            fed = _Fed(self._count, tuple(values), stream, message_id)
            try:
                self._fed.append(fed)
            except UnsupportedEnvironmentError:
                raise
            except Exception as error:
                msg = (
                    f"feed to stream {stream!r}: {values!r} or its message id can't be pickled, "
                    f"so it can't go to a task: {error}"
                )
                raise SerializationError(msg) from error
            self._count += 1
        return message_id

    @property
    def fed(self) -> int:
        """How many tuples were fed."""
        return self._count

    @property
    def emitted(self) -> int:
        """How many of the fed tuples the tasks have emitted. Any thread may read this number."""
        with self._lock or nullcontext():
            self._emitted += len(self._taken.read())
            return self._emitted

    # -- in a task -------------------------------------------------------------------------------------------

    def open(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector
    ) -> None:
        """Find out which tuples earlier instances have already emitted."""
        self._fed.check(f"FeederSpout {context.this_component_id!r}")
        self._collector = collector
        self._index = context.this_task_index
        self._tasks = len(context.component_tasks(context.this_component_id))
        self._done = set(self._taken.read())
        self._mine: deque[_Fed] = deque()

    def next_tuple(self) -> None:
        """Emit the next of this task's tuples."""
        if not self._mine:
            self._mine.extend(
                fed
                for fed in self._fed.read()
                if fed.number % self._tasks == self._index and fed.number not in self._done
            )
            if not self._mine:
                return
        fed = self._mine.popleft()
        self._taken.append(fed.number)
        self._collector.emit(fed.values, fed.stream, message_id=fed.message_id)

    def ack(self, message_id: Hashable) -> None:
        """Call the delegate."""
        if self._delegate is not None:
            self._delegate.ack(message_id)

    def fail(self, message_id: Hashable) -> None:
        """Call the delegate."""
        if self._delegate is not None:
            self._delegate.fail(message_id)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declare the streams that were passed to the constructor."""
        for stream, fields in self._streams.items():
            declarer.declare_stream(stream, fields)
