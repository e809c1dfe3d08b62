"""A stand-in for a running topology. It runs nothing: it plays back counters that a test wrote down.

Its time is its own and moves only when somebody waits for it, so what looks on for ten seconds takes none.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from stormspark.metrics import (
    ComponentStatistics,
    Histogram,
    LatencySummary,
    TaskCounters,
    TopologyStatistics,
    summarise,
)
from stormspark.worker.busy import Busy
from stormspark.worker.stories.story import Story


@dataclass(frozen=True)
class Moment:
    """What the counters say from second ``at`` on."""

    at: float
    emitted: int = 0
    executed: int = 0
    acked: int = 0
    failed: int = 0
    pending: int = 0
    queued: int = 0
    batches: int = 1
    down: int = 0
    unwritten: int = 0
    dead_letters: int = 0
    restarts: int = 0
    flushes: int = 0


def component(
    kind: str = "bolt", tasks: int = 2, last_error: str | None = None, **counts: Any
) -> ComponentStatistics:
    """Statistics of a component whose calls took 2 ms each."""
    latency = Histogram()
    latency.add(0.002, count=max(counts.get("executed", 0), counts.get("acked", 0)))
    return summarise(kind, tasks, [TaskCounters(latency=latency, **counts)], last_error)


def snapshot(moment: Moment, seconds: float | None = None) -> TopologyStatistics:
    """A topology of one spout and one bolt at a moment."""
    return TopologyStatistics(
        topology="scripted",
        engine="script",
        seconds=moment.at if seconds is None else seconds,
        batches=moment.batches,
        batches_ended=moment.batches,
        flushes=moment.flushes,
        batch_ms=LatencySummary(100.0, 90.0, 200.0) if moment.batches else LatencySummary(),
        components={
            "spout": component(
                "spout",
                emitted=moment.emitted,
                acked=moment.acked,
                failed=moment.failed,
                pending=moment.pending,
                queued=moment.queued,
                down=moment.down,
                unwritten=moment.unwritten,
                dead_letters=moment.dead_letters,
                restarts=moment.restarts,
            ),
            "bolt": component("bolt", executed=moment.executed, acked=moment.executed),
        },
    )


class ScriptedTopology:
    """Plays ``moments`` back; ends by itself at ``ends_at``, with ``error`` if there is one."""

    name = "scripted"
    log_folder: str | None = None
    close_secs = 10.0
    #: What the first batch waits for.
    start = ""
    busy: Sequence[Busy] = ()
    was_killed_by_command = False

    def __init__(
        self,
        moments: Sequence[Moment],
        *,
        ends_at: float = float("inf"),
        error: BaseException | None = None,
        stop_takes: float = 0.0,
        batch_every: float | None = None,
        ends_with_input: bool = True,
    ) -> None:
        self._moments = moments
        self._ends_at = ends_at
        self._error = error
        self._stop_takes = stop_takes
        self._batch_every = batch_every
        self._ends_with_input = ends_with_input
        self.now = 0.0
        self.calls: list[str] = []
        #: What happens to the one who looks on, by second: a test puts raise_signal here.
        self.events: dict[float, object] = {}

    @property
    def error(self) -> BaseException | None:
        return self._error if self._ended() else None

    def stories(self, root: int | str | None = None) -> list[Story]:
        return []

    def statistics(self) -> TopologyStatistics:
        moment = [moment for moment in self._moments if moment.at <= self.now][-1]
        if self._batch_every:
            moment = replace(moment, batches=int(self.now / self._batch_every))
        return snapshot(moment, self.now)

    def waits_for(self) -> str:
        return "" if self.statistics().batches else self.start

    def wait(self, timeout: float | None = None) -> bool:
        self.now = min(self.now + (timeout or 0.0), self._ends_at)
        for at in [at for at in self.events if at <= self.now]:
            event = self.events.pop(at)
            assert callable(event)
            event()
        return self._ended()

    def calls_under_way(self) -> list[Busy]:
        return list(self.busy)

    def end_input(self) -> None:
        self.calls.append("end_input")
        if self._ends_with_input:
            self._ends_at = min(self._ends_at, self.now)

    def stop(self) -> None:
        self.calls.append("stop")
        self._ends_at = min(self._ends_at, self.now + self._stop_takes)

    def kill(self) -> None:
        self.calls.append("kill")
        self._ends_at = min(self._ends_at, self.now)

    def _ended(self) -> bool:
        return self.now >= self._ends_at
