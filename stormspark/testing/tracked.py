"""Waits until a running topology has done the work of a test. It needs only statistics, so it works on both engines (J25)."""

from __future__ import annotations

import time

from stormspark.engine import RunningTopology
from stormspark.errors import StormsparkError
from stormspark.local import LocalTopology
from stormspark.metrics import Quiet, TopologyStatistics

__all__ = ["TrackedTopology", "wait_until_idle"]

_POLL_SECS = 0.02
#: The simulated time that passes before the statistics are read again, as in Storm.
_SIMULATED_SECS = 1.0


class TrackedTopology:
    """Counts the spouts' emits in a running topology, so that a test can wait for more emits. Storm has the same class.

    >>> from stormspark import Fields, TopologyBuilder
    >>> from stormspark.local import LocalCluster
    >>> from stormspark.testing import FeederSpout, TestWordCounter
    >>> feeder = FeederSpout(Fields("word"))
    >>> builder = TopologyBuilder()
    >>> _ = builder.set_spout("words", feeder)
    >>> _ = builder.set_bolt("count", TestWordCounter()).fields_grouping("words", Fields("word"))
    >>> with LocalCluster(simulated_time=True) as cluster:
    ...     tracked = TrackedTopology(cluster.submit_topology("t", {}, builder.create_topology("t")))
    ...     for word in ("storm", "spark"):
    ...         _ = feeder.feed((word,))
    ...     tracked.tracked_wait(2).components["count"].executed
    2
    """

    def __init__(self, running: RunningTopology) -> None:
        self.running = running
        self._awaited = 0

    @property
    def spout_emitted(self) -> int:
        """How many tuples all spouts together have emitted so far."""
        return self.running.statistics().total("emitted", "spout")

    def tracked_wait(self, spout_emits: int = 1, timeout: float = 60.0) -> TopologyStatistics:
        """Wait until the spouts have emitted ``spout_emits`` tuples more than earlier waits required, and all work is done.

        All work is done when every tuple was executed, no tree is open, and nothing happens any more. Meanwhile simulated time
        passes: as in Storm, one second between two readings of the statistics. Returns the statistics.

        Raises TimeoutError after ``timeout`` real seconds. If an error has ended the topology, raises this error. If the topology
        has ended for another reason, raises `StormsparkError`.
        """
        wanted = self._awaited + spout_emits
        statistics = _wait(self.running, wanted, timeout)
        self._awaited = wanted
        return statistics


def wait_until_idle(running: RunningTopology, timeout: float = 60.0) -> TopologyStatistics:
    """Wait until a topology has nothing left to do. The number of emits does not matter.

    In all other ways, this is the same as `TrackedTopology.tracked_wait`.
    """
    return _wait(running, 0, timeout)


def _wait(running: RunningTopology, spout_emits: int, timeout: float) -> TopologyStatistics:
    deadline = time.monotonic() + timeout
    quiet = Quiet()
    while True:
        ended = running.wait(0)
        now = running.statistics()
        emitted = now.total("emitted", "spout")
        if quiet.reached(now) and emitted >= spout_emits:
            return now
        if ended:
            if running.error is not None:
                raise running.error
            msg = f"topology {running.name!r} has ended; {_standing(now, spout_emits)}"
            raise StormsparkError(msg)
        if time.monotonic() > deadline:
            msg = f"topology {running.name!r}: not done after {timeout:g} s; {_standing(now, spout_emits)}"
            raise TimeoutError(msg)
        if isinstance(running, LocalTopology) and running.is_simulated:
            running.advance_time(_SIMULATED_SECS)
        else:
            running.wait(_POLL_SECS)


def _standing(now: TopologyStatistics, spout_emits: int) -> str:
    wanted = f" of {spout_emits}" if spout_emits else ""
    counts = ", ".join(f"{now.total(name)} {name}" for name in ("pending", "queued", "executed", "failed"))
    return f"spouts emitted {now.total('emitted', 'spout')}{wanted}; {counts}"
