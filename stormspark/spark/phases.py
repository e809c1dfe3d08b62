"""Where the time of a micro-batch goes, by phase, as the thread of the query sees it.

between        from the end of one foreachBatch to the begin of the next: Spark commits, asks sources, plans, writes its log
exchanges      the rounds of supersteps without `workers`: Spark's scheduling, shuffles, forwarders, Arrow
workers        the busiest worker's own time in the supersteps
commit         what is ours after the rounds: the durable acker's journal, the state table, feedback for sources
filled         of exchanges and between: for so long the workers went on meanwhile, where they did
pause          what an idle topology waits for (`stormspark.spark.pacing`), where it does
spark.*        parts of `between` as Spark's progress has them, of a batch now and then: asking costs a call into the JVM
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql.streaming.query import StreamingQuery

__all__ = ["Phases"]

#: Of Spark's phases those that are outside of foreachBatch.
_SPARKS = ("latestOffset", "getBatch", "queryPlanning", "walCommit", "commitOffsets")
#: Spark is asked for its own so often, in seconds.
_ASK_SECS = 1.0


class Phases:
    """Of one run of a query. Times are monotonic, durations in seconds."""

    def __init__(self) -> None:
        self._began = 0.0
        self._ended: float | None = None
        self._between: float | None = None
        self._rounds = self._workers = self._filled = 0.0
        self._asked = 0.0

    def begin(self, now: float) -> None:
        """A batch begins."""
        self._between = None if self._ended is None else now - self._ended
        self._began = now
        self._rounds = self._workers = self._filled = 0.0

    def add_round(self, seconds: float, worked: float, filled: float) -> None:
        """A round of the batch took so long, its busiest worker so much of that; for so long it was busy beside it."""
        self._rounds += seconds
        self._workers += min(worked, seconds)
        self._filled += filled

    def end(self, now: float, query: StreamingQuery | None) -> Mapping[str, float]:
        """The batch has ended: its phases."""
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
        if query is not None and now - self._asked >= _ASK_SECS:
            progress = query.lastProgress  # of the batch before this one: the first has none to tell of
            if progress is not None:
                self._asked = now
                durations = progress["durationMs"]
                phases |= {f"spark.{name}": durations[name] / 1000 for name in _SPARKS if name in durations}
        return phases

    def paused(self, seconds: float) -> Mapping[str, float]:
        """So long nothing was done after the batch."""
        assert self._ended is not None
        self._ended += seconds
        return {"pause": seconds}
