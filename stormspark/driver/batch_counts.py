"""What a batch did, in numbers: the totals of all tasks at its end, less those at the end of the batch before."""

from __future__ import annotations

from dataclasses import dataclass

from stormspark.metrics import TaskCounters

__all__ = ["BatchCounts", "Totals"]


@dataclass(frozen=True)
class BatchCounts:
    """The numbers of one batch, with Storm's meanings (J15). They include what earlier attempts at the batch did."""

    #: How often any component has called emit, and how many copies were delivered.
    emitted: int
    transferred: int
    #: How many tuples bolts have executed.
    executed: int
    #: How many trees of spouts were acked, and how many have failed.
    acked: int
    failed: int
    #: The mean time from emit to ack of the trees that were acked, in milliseconds; None if there were none.
    complete_latency_ms: float | None


@dataclass
class Totals:
    """The sums over all tasks since the topology began."""

    emitted: int = 0
    transferred: int = 0
    executed: int = 0
    acked: int = 0
    failed: int = 0
    #: How many latencies were measured, and their sum.
    latencies: int = 0
    seconds: float = 0.0

    def add(self, kind: str, counted: TaskCounters) -> None:
        """Add the counters of a task of a "spout" or a "bolt"."""
        self.emitted += counted.emitted
        self.transferred += counted.transferred
        if kind == "bolt":
            self.executed += counted.executed
        else:
            self.acked += counted.acked
            self.failed += counted.failed
            self.latencies += counted.latency.count
            self.seconds += counted.latency.seconds

    def since(self, earlier: Totals) -> BatchCounts:
        """Return what was added since these totals were ``earlier``.

        >>> earlier = Totals(emitted=2, acked=1, latencies=1, seconds=0.5)
        >>> Totals(emitted=5, acked=3, latencies=3, seconds=0.54).since(earlier)
        BatchCounts(emitted=3, transferred=0, executed=0, acked=2, failed=0, complete_latency_ms=20.0)
        """
        latencies = self.latencies - earlier.latencies
        return BatchCounts(
            emitted=self.emitted - earlier.emitted,
            transferred=self.transferred - earlier.transferred,
            executed=self.executed - earlier.executed,
            acked=self.acked - earlier.acked,
            failed=self.failed - earlier.failed,
            complete_latency_ms=round((self.seconds - earlier.seconds) / latencies * 1000, 3)
            if latencies
            else None,
        )
