"""Decides whether a topology that stops needs a further round, because of calls of bolts on threads and of async bolts."""

from __future__ import annotations

from collections.abc import Iterable

from stormspark.worker.step import WorkerReport

__all__ = ["CallsUnderWay"]


class CallsUnderWay:
    """The calls of bolts at the end of the last round. A call's acks are complete one round after the call has ended."""

    def __init__(self) -> None:
        self._were_under_way = False

    def observe(self, reports: Iterable[WorkerReport]) -> bool:
        """Return whether calls are under way at the end of a round, or were at the end of the round before it."""
        before, self._were_under_way = (
            self._were_under_way,
            any(report.calls_under_way for report in reports),
        )
        return before or self._were_under_way
