"""Collectors: the objects by which spouts and bolts emit, ack and fail (B5, C2, C5).

Each engine has its own objects with these methods, and gives them to components.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from stormspark.acker import Verdict
from stormspark.api.streams import DEFAULT_STREAM
from stormspark.api.tuples import Tuple

__all__ = ["BasicOutputCollector", "EmitGroup", "OutputCollector", "SpoutOutputCollector"]


class EmitGroup(Protocol):
    """The object that `SpoutOutputCollector.group` returns; it emits the tuples of one message (X68)."""

    def emit(self, values: Sequence[Any], stream: str = DEFAULT_STREAM) -> list[int]:
        """Emit one tuple of the message; return the ids of the tasks that it goes to.

        Raises `EmitError` for an unknown stream, for a wrong number of values, and after the group has ended.
        """

    def emit_direct(self, task: int, values: Sequence[Any], stream: str = DEFAULT_STREAM) -> None:
        """Emit one tuple of the message to one task on a direct stream (D11)."""


class SpoutOutputCollector(Protocol):
    """The collector that ``Spout.open`` receives (B5)."""

    def emit(
        self, values: Sequence[Any], stream: str = DEFAULT_STREAM, message_id: Hashable | None = None
    ) -> list[int]:
        """Emit a tuple; return the ids of the tasks that it goes to.

        With a message id, the engine later calls exactly one of ``ack`` and ``fail`` with that id, once for each emit (B6). But
        if the task has restarted meanwhile, the new instance hears nothing of the emit (B10). Without a message id, the tuple is
        untracked. Raises `EmitError` for an unknown stream or a wrong number of values (A12, B9).
        """

    def emit_direct(
        self,
        task: int,
        values: Sequence[Any],
        stream: str = DEFAULT_STREAM,
        message_id: Hashable | None = None,
    ) -> None:
        """Emit a tuple on a direct stream to one task. A task that does not subscribe gets nothing (B9, D11)."""

    def group(self, message_id: Hashable) -> AbstractContextManager[EmitGroup]:
        """Emit several tuples under one message id: one tree, one verdict (X68).

            with collector.group(order.id) as group:
                group.emit((order,), stream="orders")
                for line in order.lines:
                    group.emit((line,), stream="lines")

        Several calls of `emit` with the same id bring one verdict each (B6). A group brings one verdict. The group is acked when
        all its tuples are acked. It fails when one of them fails, when its time is up, or when the block raises. A group begins
        and ends within one call of ``next_tuple``, ``ack`` or ``fail``.
        """

    def flush(self) -> None:
        """Do nothing: tuples leave at the end of the superstep (B5)."""

    def report_error(self, error: BaseException | str) -> None:
        """Show an error in logs and statistics, and do nothing else (C4)."""

    @property
    def pending_count(self) -> int:
        """The number of this task's open tuple trees (B5)."""

    @property
    def verdict(self) -> Verdict | None:
        """Within ``ack`` and ``fail``: how the message's tree ended, and why (W4). None at any other time."""


class OutputCollector(Protocol):
    """The collector that ``Bolt.prepare`` receives (C2)."""

    def emit(
        self, values: Sequence[Any], stream: str = DEFAULT_STREAM, anchors: Tuple | Iterable[Tuple] = ()
    ) -> list[int]:
        """Emit a tuple that is anchored to ``anchors``; return the ids of the tasks that it goes to.

        Without anchors the tuple is untracked. Raises `EmitError` for an unknown stream, a wrong number of values, or an
        anchor that is already acked or failed.
        """

    def emit_direct(
        self,
        task: int,
        values: Sequence[Any],
        stream: str = DEFAULT_STREAM,
        anchors: Tuple | Iterable[Tuple] = (),
    ) -> None:
        """Emit a tuple on a direct stream to one task (B9, D11)."""

    def ack(self, tup: Tuple) -> None:
        """Mark ``tup`` as processed by this bolt.

        A second ack or fail of the same tuple is reported and changes nothing (E14).
        """

    def fail(self, tup: Tuple, reason: str | None = None) -> None:
        """Fail every tree that ``tup`` belongs to, at once; ``reason`` becomes part of the verdict (W4)."""

    def reset_timeout(self, tup: Tuple) -> None:
        """Give the trees of ``tup`` another message timeout (C11)."""

    def flush(self) -> None:
        """Do nothing: tuples leave at the end of the superstep (C2)."""

    def report_error(self, error: BaseException | str) -> None:
        """Show an error in logs and statistics. No tuple fails, and the task goes on (C4)."""


class BasicOutputCollector(Protocol):
    """The collector that ``BasicBolt.execute`` receives. It anchors every emit to the current tuple (C5)."""

    def emit(self, values: Sequence[Any], stream: str = DEFAULT_STREAM) -> list[int]:
        """Emit a tuple that is anchored to the current one; return the ids of the tasks that it goes to.

        Raises `EmitError` for an unknown stream or a wrong number of values.
        """

    def emit_direct(self, task: int, values: Sequence[Any], stream: str = DEFAULT_STREAM) -> None:
        """Emit a tuple on a direct stream to one task (B9, D11)."""

    def reset_timeout(self) -> None:
        """Give the current tuple's trees another message timeout (C11)."""

    def report_error(self, error: BaseException | str) -> None:
        """Show an error in logs and statistics (C4)."""
