"""What a spout's task counts by stream, if the spout emits on several (J11)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from stormspark.acker import ACKED, Roots, Tree
from stormspark.metrics import TaskCounters
from stormspark.metrics.streams import StreamCounts
from stormspark.worker.tuples.outlets import Outlet, WrappedOutlet

__all__ = ["StreamsOfTrees"]


class StreamsOfTrees:
    """Knows on which stream each open tree of a task began, and counts how the trees of each stream ended.

    Most trees begin on the first stream, so nothing is noted of those: they are the rest.
    """

    def __init__(self) -> None:
        self._open: dict[Any, str] = {}
        self._ended: dict[str, StreamCounts] = {}

    def observed(self, outlet: Outlet) -> Outlet:
        """Return an outlet, of any stream but the first, that notes the trees that begin on it."""
        return _NotesTrees(outlet, self._open)

    def forget(self) -> None:
        """Forget the open trees, because their instance has ended."""
        self._open.clear()

    def add(self, ended: Iterable[Tree], now: float) -> None:
        """Count trees that have ended."""
        if not self._open:
            return
        for tree in ended:
            stream = self._open.pop(tree, None)
            if stream is None:
                continue
            before = self._ended.get(stream, StreamCounts())
            if tree.verdict is ACKED:
                took = now - tree.emitted_at
                before = before._replace(
                    acked=before.acked + 1, calls=before.calls + 1, call_seconds=before.call_seconds + took
                )
            else:
                before = before._replace(failed=before.failed + 1)
            self._ended[stream] = before

    def read(
        self, emits: Mapping[str, StreamCounts], first: str, counters: TaskCounters
    ) -> dict[str, StreamCounts]:
        """Return the totals of each stream. ``emits`` has what was emitted on it, and ``counters`` the totals of the task."""
        ends, latency = self._ended.values(), counters.latency
        rest = StreamCounts(
            acked=max(0, counters.acked - sum(one.acked for one in ends)),
            failed=max(0, counters.failed - sum(one.failed for one in ends)),
            calls=max(0, latency.count - sum(one.calls for one in ends)),
            call_seconds=max(0.0, latency.seconds - sum(one.call_seconds for one in ends)),
        )
        ended = {**self._ended, first: rest}
        return {
            stream: ended.get(stream, StreamCounts())._replace(
                emitted=counts.emitted, transferred=counts.transferred
            )
            for stream, counts in emits.items()
        }


class _NotesTrees(WrappedOutlet):
    """An outlet that notes the trees of the tuples that it sends."""

    def __init__(self, outlet: Outlet, trees: dict[Any, str]) -> None:
        super().__init__(outlet)
        self._trees = trees

    def send(self, values: tuple[Any, ...], roots: Roots) -> list[int]:
        """See `Outlet.send`."""
        if roots is not None:
            self._trees[roots] = self.source.stream
        return super().send(values, roots)

    def deliver(self, values: tuple[Any, ...], roots: Roots, tasks: Sequence[int]) -> None:
        """See `Outlet.deliver`."""
        if roots is not None:
            self._trees[roots] = self.source.stream
        super().deliver(values, roots, tasks)

    def send_direct(self, task: int, values: tuple[Any, ...], roots: Roots) -> int:
        """See `Outlet.send_direct`."""
        if roots is not None:
            self._trees[roots] = self.source.stream
        return super().send_direct(task, values, roots)
