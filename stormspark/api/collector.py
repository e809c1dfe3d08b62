"""Collectors: how spouts and bolts emit, ack and fail. Engines hand out objects with these methods (B5, C2,
C5).
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
    """What `SpoutOutputCollector.group` gives: the emits of one message (X68)."""

    def emit(self, values: Sequence[Any], stream: str = DEFAULT_STREAM) -> list[int]:
        """Emit one tuple of the message; returns the target task ids. Raises `EmitError`, also after the group's end."""

    def emit_direct(self, task: int, values: Sequence[Any], stream: str = DEFAULT_STREAM) -> None:
        """Emit one tuple of the message to one task on a direct stream (D11)."""


class SpoutOutputCollector(Protocol):
    """What ``Spout.open`` gets (B5)."""

    def emit(
        self, values: Sequence[Any], stream: str = DEFAULT_STREAM, message_id: Hashable | None = None
    ) -> list[int]:
        """Emit a tuple; return the ids of the tasks that it goes to.

        With a message id, exactly one of ``ack`` and ``fail`` is called with that id later, once for each
        emit (B6). Raises `EmitError` for an unknown stream or a wrong number of values (A12, B9).
        """

    def emit_direct(
        self,
        task: int,
        values: Sequence[Any],
        stream: str = DEFAULT_STREAM,
        message_id: Hashable | None = None,
    ) -> None:
        """Emit on a direct stream to one task; a task that does not subscribe gets nothing (B9, D11)."""

    def group(self, message_id: Hashable) -> AbstractContextManager[EmitGroup]:
        """Emit several tuples under one message id: one tree, one verdict (X68).

            with collector.group(order.id) as group:
                group.emit((order,), stream="orders")
                for line in order.lines:
                    group.emit((line,), stream="lines")

        Where `emit` with the same id several times brings as many verdicts (B6), a group is acked when all of its tuples are,
        and fails when one does or when the block raises. It begins and ends inside one ``next_tuple``, ``ack`` or ``fail``.
        """

    def flush(self) -> None:
        """Nothing to do here: tuples leave with the superstep (B5)."""

    def report_error(self, error: BaseException | str) -> None:
        """Show an error in logs and statistics, nothing else (C4)."""

    @property
    def pending_count(self) -> int:
        """How many of this task's tuple trees are open (B5)."""

    @property
    def verdict(self) -> Verdict | None:
        """Inside ``ack`` and ``fail``: how the tree ended and why (W4); None elsewhere."""


class OutputCollector(Protocol):
    """What ``Bolt.prepare`` gets (C2)."""

    def emit(
        self, values: Sequence[Any], stream: str = DEFAULT_STREAM, anchors: Tuple | Iterable[Tuple] = ()
    ) -> list[int]:
        """Emit a tuple anchored to ``anchors``; without any it is untracked. Returns the target task ids.

        Raises `EmitError` for an unknown stream, a wrong number of values, or an anchor that is acked or
        failed already.
        """

    def emit_direct(
        self,
        task: int,
        values: Sequence[Any],
        stream: str = DEFAULT_STREAM,
        anchors: Tuple | Iterable[Tuple] = (),
    ) -> None:
        """Emit on a direct stream to one task (B9, D11)."""

    def ack(self, tup: Tuple) -> None:
        """This bolt is done with ``tup``. A second ack or fail of the same tuple is reported and changes
        nothing (E14).
        """

    def fail(self, tup: Tuple, reason: str | None = None) -> None:
        """Fail every tree that ``tup`` belongs to, at once; ``reason`` goes into the verdict (W4)."""

    def reset_timeout(self, tup: Tuple) -> None:
        """Give ``tup``'s trees another message timeout (C11)."""

    def flush(self) -> None:
        """Nothing to do here: tuples leave with the superstep (C2)."""

    def report_error(self, error: BaseException | str) -> None:
        """Show an error in logs and statistics; neither fails the tuple nor stops the task (C4)."""


class BasicOutputCollector(Protocol):
    """What ``BasicBolt.execute`` gets: every emit is anchored to the tuple at hand (C5)."""

    def emit(self, values: Sequence[Any], stream: str = DEFAULT_STREAM) -> list[int]:
        """Emit a tuple anchored to the current one; returns the target task ids. Raises `EmitError`."""

    def emit_direct(self, task: int, values: Sequence[Any], stream: str = DEFAULT_STREAM) -> None:
        """Emit on a direct stream to one task (B9, D11)."""

    def reset_timeout(self) -> None:
        """Give the current tuple's trees another message timeout (C11)."""

    def report_error(self, error: BaseException | str) -> None:
        """Show an error in logs and statistics (C4)."""
