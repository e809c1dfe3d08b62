"""Collectors that record emits, acks and fails, for tests of one component without any engine (J25, W10).

They enforce the rules of the engine. A tuple's stream must be declared, and the tuple must have one value per field of the stream
(A12, B9). Direct streams need direct emits (D11). No emit may be anchored to a settled tuple (E14). A second ack or fail of a
tuple, which the engine can only report, fails the test.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from types import TracebackType
from typing import Any, NamedTuple, Self

from stormspark.acker import ACKED, Outcome, Verdict
from stormspark.api import (
    DEFAULT_STREAM,
    BasicBolt,
    Component,
    Fields,
    OutputFieldsDeclarer,
    Spout,
    StreamDeclaration,
    Tuple,
)
from stormspark.errors import EmitError, FailedException, ReportedFailedException

__all__ = ["Emitted", "RecordingBasicCollector", "RecordingCollector", "RecordingSpoutCollector"]


class Emitted(NamedTuple):
    """One emit. ``task`` is the receiving task that a direct emit has named."""

    values: tuple[Any, ...]
    stream: str = DEFAULT_STREAM
    anchors: tuple[Tuple, ...] = ()
    message_id: Hashable | None = None
    task: int | None = None


class _Recorder:
    """The base class of the three collectors. It has the declared streams, the recorded emits, and the reported errors.

    Every ``emit`` returns ``receivers`` as the ids of the receiving tasks.
    """

    def __init__(
        self, component: Component, *, name: str = "component", receivers: Iterable[int] = ()
    ) -> None:
        declarer = OutputFieldsDeclarer(name)
        component.declare_output_fields(declarer)
        self._name = name
        self._streams = declarer.streams
        self._receivers = list(receivers)
        #: Every emit, in order.
        self.emitted: list[Emitted] = []
        #: The errors that were passed to ``report_error``.
        self.errors: list[BaseException | str] = []

    def values(self, stream: str = DEFAULT_STREAM) -> list[tuple[Any, ...]]:
        """Return the values of all emits on a stream, in order."""
        return [one.values for one in self.emitted if one.stream == stream]

    def clear(self) -> None:
        """Forget all emits and errors so far."""
        self.emitted.clear()
        self.errors.clear()

    def report_error(self, error: BaseException | str) -> None:
        """Record an error (C4)."""
        self.errors.append(error)

    def flush(self) -> None:
        """Do nothing, because a recorded emit need not be sent (B5, C2)."""

    def _record(self, emitted: Emitted) -> list[int]:
        declared = self._streams.get(emitted.stream)
        if declared is None:
            msg = (
                f"component {self._name!r}: Unknown stream ID {emitted.stream!r}; it declares "
                f"{', '.join(map(repr, self._streams)) or 'no streams'} in declare_output_fields"
            )
            raise EmitError(msg)
        self._check_direct(emitted, declared)
        values = _checked(
            emitted.values, declared.fields, f"component {self._name!r}, stream {emitted.stream!r}"
        )
        self.emitted.append(emitted._replace(values=values))
        return list(self._receivers)

    def _check_direct(self, emitted: Emitted, declared: StreamDeclaration) -> None:
        if declared.direct and emitted.task is None:
            msg = (
                f"component {self._name!r}: Cannot do regular emit to direct stream {declared.id!r}: "
                f"use emit_direct(task, values)"
            )
            raise EmitError(msg)
        if emitted.task is not None and not declared.direct:
            msg = (
                f"component {self._name!r}: emit_direct on stream {declared.id!r}, which is not declared direct: "
                f"declare it with declarer.declare(fields, direct=True)"
            )
            raise EmitError(msg)


def _checked(values: Any, fields: Fields, place: str) -> tuple[Any, ...]:
    if not isinstance(values, tuple | list):
        msg = f"{place}: emit takes a tuple or list of values, got {values!r} of type {type(values).__name__}"
        raise EmitError(msg)
    if len(values) != len(fields):
        msg = (
            f"{place}: Tuple created with wrong number of fields: expected {len(fields)} "
            f"({', '.join(fields)}), got {len(values)}: {values!r}"
        )
        raise EmitError(msg)
    return tuple(values)


class RecordingCollector(_Recorder):
    """An `OutputCollector` that records. Pass it to the ``prepare`` of a `Bolt`.

    >>> from stormspark import Bolt
    >>> from stormspark.testing import make_context, make_tuple
    >>> class Double(Bolt):
    ...     def prepare(self, conf, context, collector):
    ...         self.collector = collector
    ...     def execute(self, tup):
    ...         self.collector.emit((2 * tup["n"],), anchors=[tup])
    ...         self.collector.ack(tup)
    ...     def declare_output_fields(self, declarer):
    ...         declarer.declare(Fields("n"))
    >>> bolt = Double()
    >>> collector = RecordingCollector(bolt)
    >>> bolt.prepare({}, make_context(), collector)
    >>> tup = make_tuple((3,), fields=["n"])
    >>> bolt.execute(tup)
    >>> collector.values(), collector.emitted[0].anchors == (tup,), collector.acked == [tup]
    ([(6,)], True, True)
    """

    def __init__(
        self, component: Component, *, name: str = "component", receivers: Iterable[int] = ()
    ) -> None:
        super().__init__(component, name=name, receivers=receivers)
        self.acked: list[Tuple] = []
        self.failed: list[Tuple] = []
        #: The reasons passed to ``fail``, in the order of `failed`.
        self.reasons: list[str | None] = []
        #: The tuples whose timeout was reset.
        self.resets: list[Tuple] = []

    def clear(self) -> None:
        """Forget everything that was recorded so far."""
        super().clear()
        for seen in (self.acked, self.failed, self.reasons, self.resets):
            seen.clear()

    def emit(
        self, values: Sequence[Any], stream: str = DEFAULT_STREAM, anchors: Tuple | Iterable[Tuple] = ()
    ) -> list[int]:
        """Record an emit."""
        return self._record(Emitted(values, stream, self._anchors(anchors)))  # type: ignore[arg-type]

    def emit_direct(
        self,
        task: int,
        values: Sequence[Any],
        stream: str = DEFAULT_STREAM,
        anchors: Tuple | Iterable[Tuple] = (),
    ) -> None:
        """Record a direct emit."""
        self._record(Emitted(values, stream, self._anchors(anchors), task=task))  # type: ignore[arg-type]

    def _anchors(self, anchors: Tuple | Iterable[Tuple]) -> tuple[Tuple, ...]:
        tuples = (anchors,) if isinstance(anchors, Tuple) else tuple(anchors)
        for anchor in tuples:
            if anchor.state == 1:
                msg = (
                    f"component {self._name!r}: emit is anchored to {anchor!r} after its ack or fail; "  # I12
                    f"emit first, then ack"
                )
                raise EmitError(msg)
        return tuples

    def ack(self, tup: Tuple) -> None:
        """Record an ack. Raises AssertionError for a tuple that was already acked or failed (E14)."""
        self._settle(tup, "ack")
        self.acked.append(tup)

    def fail(self, tup: Tuple, reason: str | None = None) -> None:
        """Record a fail. Raises AssertionError for a tuple that was already acked or failed (E14)."""
        self._settle(tup, "fail")
        self.failed.append(tup)
        self.reasons.append(reason)

    def _settle(self, tup: Tuple, call: str) -> None:
        if tup.state == 1:
            msg = f"{call} of {tup!r}, which component {self._name!r} has acked or failed already"
            raise AssertionError(msg)
        tup.state = 1

    def reset_timeout(self, tup: Tuple) -> None:
        """Record that the tuple's timeout is reset (C11)."""
        self.resets.append(tup)


class RecordingBasicCollector(_Recorder):
    """A recording collector for a `BasicBolt`.

    The collector's `execute` runs the bolt on a tuple as the engine does. So it anchors, acks and fails for the bolt (C5).

    >>> from stormspark.testing import TestWordCounter, make_context, make_tuple
    >>> bolt = TestWordCounter()
    >>> bolt.prepare({}, make_context())
    >>> collector = RecordingBasicCollector(bolt)
    >>> for word in "aba":
    ...     collector.execute(bolt, make_tuple((word,)))
    >>> collector.values(), len(collector.acked)
    ([('a', 1), ('b', 1), ('a', 2)], 3)
    """

    def __init__(
        self, component: Component, *, name: str = "component", receivers: Iterable[int] = ()
    ) -> None:
        super().__init__(component, name=name, receivers=receivers)
        self.acked: list[Tuple] = []
        self.failed: list[Tuple] = []
        self.resets: list[Tuple] = []
        self._current: tuple[Tuple, ...] = ()

    def execute(self, bolt: BasicBolt, tup: Tuple) -> None:
        """Call the bolt with ``tup`` and record an ack. For a `FailedException`, record a fail. Other exceptions pass through."""
        self._current = (tup,)
        try:
            bolt.execute(tup, self)
        except FailedException as error:
            self.failed.append(tup)
            if isinstance(error, ReportedFailedException):
                self.report_error(error)
        else:
            self.acked.append(tup)
        finally:
            tup.state = 1
            self._current = ()

    def emit(self, values: Sequence[Any], stream: str = DEFAULT_STREAM) -> list[int]:
        """Record an emit, which is anchored to the current tuple."""
        return self._record(Emitted(values, stream, self._current))  # type: ignore[arg-type]

    def emit_direct(self, task: int, values: Sequence[Any], stream: str = DEFAULT_STREAM) -> None:
        """Record a direct emit."""
        self._record(Emitted(values, stream, self._current, task=task))  # type: ignore[arg-type]

    def reset_timeout(self) -> None:
        """Record that the current tuple's timeout is reset (C11)."""
        self.resets.extend(self._current)


class RecordingSpoutCollector(_Recorder):
    """A `SpoutOutputCollector` that records. Pass it to the ``open`` of a `Spout`.

    A test calls the collector's `ack` and `fail` to tell the spout how a tree ended.

    >>> from stormspark.testing import TestWordSpout, make_context
    >>> spout = TestWordSpout()
    >>> collector = RecordingSpoutCollector(spout)
    >>> spout.open({}, make_context(), collector)
    >>> spout.next_tuple()
    >>> collector.pending
    [1]
    >>> collector.fail(spout, 1)  # it emits the word again
    >>> len(collector.emitted), collector.pending
    (2, [1])
    """

    def __init__(
        self, component: Component, *, name: str = "component", receivers: Iterable[int] = ()
    ) -> None:
        super().__init__(component, name=name, receivers=receivers)
        #: The message ids of emits that are neither acked nor failed. Each emit, or group of emits, has one entry (B6, X68).
        self.pending: list[Hashable] = []
        #: How the tree has ended. This is only set while the spout's ``ack`` or ``fail`` runs (W4).
        self.verdict: Verdict | None = None

    def emit(
        self, values: Sequence[Any], stream: str = DEFAULT_STREAM, message_id: Hashable | None = None
    ) -> list[int]:
        """Record an emit. If it has a message id, add the id to `pending`."""
        return self._begun(Emitted(values, stream, message_id=message_id))  # type: ignore[arg-type]

    def emit_direct(
        self,
        task: int,
        values: Sequence[Any],
        stream: str = DEFAULT_STREAM,
        message_id: Hashable | None = None,
    ) -> None:
        """Record a direct emit."""
        self._begun(Emitted(values, stream, message_id=message_id, task=task))  # type: ignore[arg-type]

    def group(self, message_id: Hashable) -> _Group:
        """Record several emits under one message id, which gets one entry in `pending` (X68)."""
        return _Group(self, message_id)

    def _begun(self, emitted: Emitted) -> list[int]:
        tasks = self._record(emitted)
        if emitted.message_id is not None:
            self.pending.append(emitted.message_id)
        return tasks

    @property
    def pending_count(self) -> int:
        """The number of open trees (B5)."""
        return len(self.pending)

    def ack(self, spout: Spout, message_id: Hashable) -> None:
        """Call the spout's ``ack``. Raises AssertionError if the message id is not in `pending` (B6)."""
        self._end(message_id, ACKED)
        try:
            spout.ack(message_id)
        finally:
            self.verdict = None

    def fail(
        self,
        spout: Spout,
        message_id: Hashable,
        reason: str | None = None,
        outcome: Outcome = Outcome.FAILED,
    ) -> None:
        """Call the spout's ``fail``. Raises AssertionError if the message id is not in `pending` (B6)."""
        self._end(message_id, Verdict(outcome, reason))
        try:
            spout.fail(message_id)
        finally:
            self.verdict = None

    def _end(self, message_id: Hashable, verdict: Verdict) -> None:
        if message_id not in self.pending:
            msg = f"component {self._name!r} has nothing pending with message id {message_id!r}; there are {self.pending!r}"
            raise AssertionError(msg)
        self.pending.remove(message_id)
        self.verdict = verdict


class _Group:
    """An `EmitGroup` that records the emits of one message."""

    def __init__(self, collector: RecordingSpoutCollector, message_id: Hashable) -> None:
        self._collector = collector
        self._message_id = message_id
        self._open = False

    def __enter__(self) -> Self:
        self._open = True
        self._collector.pending.append(self._message_id)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open = False

    def emit(self, values: Sequence[Any], stream: str = DEFAULT_STREAM) -> list[int]:
        """Record an emit of the message."""
        return self._add(Emitted(values, stream, message_id=self._message_id))  # type: ignore[arg-type]

    def emit_direct(self, task: int, values: Sequence[Any], stream: str = DEFAULT_STREAM) -> None:
        """Record a direct emit of the message."""
        self._add(Emitted(values, stream, message_id=self._message_id, task=task))  # type: ignore[arg-type]

    def _add(self, emitted: Emitted) -> list[int]:
        if not self._open:
            msg = (
                f"the group of message {self._message_id!r} is not open; "
                f"emit inside `with collector.group(message_id) as group:`"
            )
            raise EmitError(msg)
        return self._collector._record(emitted)
