"""pystorm's spouts (B16, B18)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from itertools import repeat
from typing import Any

from stormspark.compat.streamparse.component import Component

__all__ = ["ReliableSpout", "Spout"]


class Spout(Component):
    """A spout of pystorm (B16).

    >>> class Numbers(Spout):
    ...     def initialize(self, storm_conf, context):
    ...         self.n = 0
    ...     def next_tuple(self):
    ...         self.n += 1
    ...         self.emit([self.n], tup_id=self.n)
    """

    _emit: Callable[..., list[int] | None]

    def ack(self, tup_id: Hashable) -> None:
        """Called when the tuple with this id, and all tuples that are anchored to it, are processed."""

    def fail(self, tup_id: Hashable) -> None:
        """Called when the tuple with this id has failed or timed out."""

    def next_tuple(self) -> None:
        """Emit the tuples that are available, if any, and return."""
        raise NotImplementedError

    def emit(
        self,
        tup: Sequence[Any],
        tup_id: Hashable | None = None,
        stream: str | None = None,
        direct_task: int | None = None,
        need_task_ids: bool | None = None,
    ) -> list[int] | None:
        """Emit a list of values. With ``need_task_ids``, returns the ids of the tasks that the tuple goes to; else None.

        The tuple is tracked if it has an id. Raises TypeError if ``tup`` is not a list or tuple. Raises
        `stormspark.errors.EmitError` if the stream or the number of values is wrong.
        """
        return self._emit(tup, tup_id, stream, direct_task, need_task_ids)

    def emit_many(
        self,
        tuples: Sequence[Sequence[Any]],
        stream: str | None = None,
        tup_ids: Sequence[Hashable] | None = None,
        direct_task: int | None = None,
        need_task_ids: bool | None = None,
    ) -> list[list[int] | None]:
        """Emit several lists of values, each with its id if there are ids. This is a method of streamparse 1 and 2 (B16)."""
        if not isinstance(tuples, list | tuple):
            msg = f"Tuples should be a list of lists/tuples, received {type(tuples)!r} instead."
            raise TypeError(msg)
        ids = repeat(None) if tup_ids is None else tup_ids
        rest = {"stream": stream, "direct_task": direct_task, "need_task_ids": need_task_ids}
        return [self.emit(tup, tup_id=tup_id, **rest) for tup, tup_id in zip(tuples, ids, strict=False)]  # type: ignore[arg-type]

    def activate(self) -> None:
        """Called when the topology is activated."""

    def deactivate(self) -> None:
        """Called when the topology is deactivated. ``next_tuple`` is not called until the topology is active again."""


class ReliableSpout(Spout):
    """A spout that emits failed tuples again, up to ``max_fails`` times each (B18)."""

    #: How many times a tuple is emitted again. If it then fails once more, it is given up, as if it had been acked.
    max_fails = 3

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.failed_tuples: Counter[Hashable] = Counter()
        #: The emits that are not acked, by id. Each has the values, the stream, the direct task, and whether task ids were
        #: requested.
        self.unacked_tuples: dict[Hashable, tuple[Sequence[Any], str | None, int | None, bool | None]] = {}

    def ack(self, tup_id: Hashable) -> None:
        """Forget the tuple."""
        self.failed_tuples.pop(tup_id, None)
        if self.unacked_tuples.pop(tup_id, None) is None:
            self.logger.error("Received ack for unknown tuple ID: %r", tup_id)

    def fail(self, tup_id: Hashable) -> None:
        """Emit the tuple again, or give it up."""
        kept = self.unacked_tuples.get(tup_id)
        if kept is None:
            self.logger.error("Received fail for unknown tuple ID: %r", tup_id)
            return
        if self.failed_tuples[tup_id] >= self.max_fails:
            self.logger.info("Acking tuple ID %r after it exceeded retry limit (%r)", tup_id, self.max_fails)
            self.ack(tup_id)
            return
        tup, stream, direct_task, need_task_ids = kept
        self.emit(tup, tup_id=tup_id, stream=stream, direct_task=direct_task, need_task_ids=need_task_ids)
        self.failed_tuples[tup_id] += 1

    def emit(
        self,
        tup: Sequence[Any],
        tup_id: Hashable | None = None,
        stream: str | None = None,
        direct_task: int | None = None,
        need_task_ids: bool | None = None,
    ) -> list[int] | None:
        """Emit a tuple, and keep it until it is acked. Raises ValueError if it has no id."""
        if tup_id is None:
            msg = "You must provide a tuple ID when emitting with a ReliableSpout in order for the tuple to be tracked."
            raise ValueError(msg)
        self.unacked_tuples[tup_id] = (tup, stream, direct_task, need_task_ids)
        return super().emit(tup, tup_id, stream, direct_task, need_task_ids)
