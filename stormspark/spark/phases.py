"""Measures how the time of a micro-batch is divided, as the query's thread sees it.

between        from the end of one foreachBatch to the beginning of the next: Spark commits, asks sources, plans, writes its log
exchanges      the time of the rounds minus `workers`: Spark's scheduling, shuffles, forwarders, Arrow
workers        the busiest worker's own time in the supersteps
commit         the rest of foreachBatch, mostly after the rounds: the acker's journal, the state table, feedback for sources
filled         the part of `exchanges` and `between` during which workers kept working, if they did
pause          the wait of an idle topology (`stormspark.spark.pacing`), if there was one
spark.*        parts of `between`, from Spark's progress; once per second at most, because each look calls into the JVM
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql.streaming.query import StreamingQuery

__all__ = ["Phases"]

#: The durations in Spark's progress that lie outside of foreachBatch.
_SPARKS = ("latestOffset", "getBatch", "queryPlanning", "walCommit", "commitOffsets")
#: The least time between two looks at Spark's progress, in seconds.
_LOOK_SECS = 1.0


class Phases:
    """The stopwatch of one run of a query. Times come from a monotonic clock; times and durations are in seconds."""

    def __init__(self) -> None:
        self._began = 0.0
        self._ended: float | None = None
        self._between: float | None = None
        self._rounds = self._workers = self._filled = 0.0
        self._looked_at = 0.0

    def begin(self, now: float) -> None:
        """Start the figures of a new batch."""
        self._between = None if self._ended is None else now - self._ended
        self._began = now
        self._rounds = self._workers = self._filled = 0.0

    def add_round(self, seconds: float, worked: float, filled: float) -> None:
        """Add a round that took ``seconds``. Its busiest worker used ``worked`` of them.

        ``filled`` is how long workers kept working between supersteps.
        """
        self._rounds += seconds
        self._workers += min(worked, seconds)
        self._filled += filled

    def end(self, now: float, query: StreamingQuery | None) -> Mapping[str, float]:
        """End the figures of the batch. Return how its time was divided."""
        self._ended = now
        phases = {
            "exchanges": self._rounds - self._workers,
            "workers": self._workers,
            "commit": max(now - self._began - self._rounds, 0.0),
        }
        if self._between is not None:
            phases["between"] = self._between
        if self._filled:
            phases["filled"] = self._filled
        if query is not None and now - self._looked_at >= _LOOK_SECS:
            progress = query.lastProgress  # the progress of the previous batch; None in the first batch
            if progress is not None:
                self._looked_at = now
                durations = progress["durationMs"]
                phases |= {f"spark.{name}": durations[name] / 1000 for name in _SPARKS if name in durations}
        return phases

    def paused(self, seconds: float) -> Mapping[str, float]:
        """Count a pause after the batch or between its rounds, and return it as a figure. It counts as part of no other phase."""
        self._began += seconds
        if self._ended is not None:
            self._ended += seconds
        return {"pause": seconds}
