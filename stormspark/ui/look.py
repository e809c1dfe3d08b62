"""A look at a running topology: its state, rates, errors and culprits, as a line and as HTML for notebooks."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from stormspark.drawing import details, page, paragraph
from stormspark.engine import RunningTopology
from stormspark.metrics import TopologyStatistics
from stormspark.metrics.page import statistics_table
from stormspark.plan.page import plan_graph
from stormspark.plan.physical import ComponentPlan
from stormspark.ui.figures import three_digits
from stormspark.ui.log_lines import before_traceback
from stormspark.ui.printable import printable
from stormspark.ui.progress import Progress, Speedometer
from stormspark.ui.throttling import throttled_by, throttling_lines

__all__ = ["Look"]

#: Rates are means over so many seconds.
_WINDOW = 5.0


class _Counts(NamedTuple):
    at: float
    #: By component: what a spout has emitted, and what a bolt has executed.
    work: Mapping[str, int]


class Look:
    """What is known of a topology since the last call of `again`.

    Rates are those of the last seconds. They are means over the whole time at the first look, and once the topology has ended.
    """

    def __init__(self, running: RunningTopology) -> None:
        self._running = running
        self._speedometer = Speedometer(_WINDOW)
        self._counts: deque[_Counts] = deque([_Counts(0.0, {})])
        self._first = True

    def again(self) -> Progress:
        """Look again. Return the progress."""
        self._ended = self._running.wait(
            0
        )  # asked first, so that the statistics of an ended topology are the last ones
        self._statistics = statistics = self._running.statistics()
        self._is_mean = self._first or self._ended
        self._first = False
        self._progress = self._speedometer.read(statistics, "" if self._ended else self._running.waits_for())
        work = {
            name: one.emitted if one.kind == "spout" else one.executed
            for name, one in statistics.components.items()
        }
        self._counts.append(_Counts(statistics.seconds, work))
        while len(self._counts) > 2 and self._counts[1].at <= statistics.seconds - _WINDOW:
            self._counts.popleft()
        return self._progress

    @property
    def state(self) -> str:
        """What the topology does, in words."""
        if self._ended:
            return "has ended" if self._running.error is None else "has stopped with an error"
        if self._statistics.before_stop is not None:
            return "stops"
        return f"starts: {self._progress.waits_for}" if self._progress.waits_for else "runs"

    def line(self) -> str:
        """Return the state in one line."""
        parts = (
            f"{self._statistics.topology!r} {self.state} ({self._statistics.seconds:,.0f} s)",
            self._rates(),
            *self._culprits(),
            self._first_error(),
        )
        return printable("; ".join(filter(None, parts)))

    def html(self, links: Mapping[str, str]) -> str:
        """Return the page of a notebook. ``links`` are addresses of more to read, by name."""
        statistics = self._statistics
        error = self._running.error
        first_error = self._first_error()
        return page(
            f"{statistics.topology} {self.state} ({statistics.engine}, {statistics.seconds:,.0f} s, "
            f"{statistics.batches:,} batches)",
            paragraph(self._rates()),
            paragraph(self._latencies()) if self._latencies() else "",
            *(paragraph(culprit, "slow") for culprit in self._culprits()),
            paragraph(first_error, "error") if first_error else "",
            "" if error is None else details("the whole error", paragraph(_whole(error))),
            plan_graph(self._running.plan, self._lines, self._mark),
            statistics_table(statistics),
            *self._errors(),
            details("what held spouts back", *map(paragraph, throttling_lines(statistics))),
            *(paragraph(name, link=address) for name, address in links.items()),
        )

    def _rates(self) -> str:
        statistics, progress = self._statistics, self._progress
        acked_per_s = progress.acked_per_s
        executed_per_s = progress.executed_per_s
        if self._is_mean:
            executed_per_s = statistics.tuples_per_s
            acked_per_s = progress.acked / statistics.seconds if statistics.seconds else 0.0
        mean = " on average" if self._is_mean else ""
        parts = [
            f"{executed_per_s:,.0f} tuples/s{mean}",
            f"acked {progress.acked:,} ({acked_per_s:,.0f}/s)",
            f"failed {progress.failed:,}",
            f"pending {progress.pending:,}",
        ]
        counts = {
            "waiting": progress.queued,
            "late": statistics.total("late"),
            "shed": progress.shed,
            "given up": statistics.total("dead_letters"),
        }
        return ", ".join(parts + [f"{name} {count:,}" for name, count in counts.items() if count])

    def _latencies(self) -> str:
        """Return the times from emit to ack of each spout, and the time of a batch."""
        named = [
            (f"emit to ack of {name}", one.latency)
            for name, one in self._statistics.components.items()
            if one.kind == "spout"
        ]
        return ", ".join(
            f"{name} {three_digits(times.p50)} ms p50, {three_digits(times.p99 or 0.0)} ms p99"
            for name, times in [*named, ("a batch", self._statistics.batch_ms)]
            if times.p50 is not None
        )

    def _culprits(self) -> Iterator[str]:
        """Yield what slows the topology down now, the worst first."""
        progress = self._progress
        if self._ended:
            return
        if progress.throttled:
            yield f"throttled by {progress.throttled}"
        if progress.paused:
            yield f"paused {progress.paused}"
        yield from filter(None, (progress.full, progress.down))

    def _first_error(self) -> str:
        """Return the error that has stopped the topology, in one line; an empty string if there is none."""
        error = self._running.error
        if error is None:
            return ""
        return f"{type(error).__name__}: {(str(error).strip().splitlines() or [''])[0]}"

    def _errors(self) -> Iterator[str]:
        """Yield the last error of each component, with its traceback to unfold."""
        for name, one in self._statistics.components.items():
            if one.last_error:
                lines = one.last_error.strip().splitlines()
                last = f"{before_traceback(lines)} {lines[-1].strip()}".lstrip()
                yield details(
                    f"{name}: {one.errors:,} errors, the last one: {last}", paragraph(one.last_error)
                )
            if one.last_failure:
                yield paragraph(
                    f"{name}: {one.failed:,} failed, the last reported failure: {one.last_failure}"
                )

    def _lines(self, one: ComponentPlan) -> tuple[str, ...]:
        """Return what stands in a component's box: how many tasks, how fast, and what waits."""
        old, new = self._counts[0], self._counts[-1]
        if self._is_mean:
            old = _Counts(0.0, {})
        seconds = new.at - old.at
        rate = (new.work[one.id] - old.work.get(one.id, 0)) / seconds if seconds > 0 else 0.0
        queued = self._statistics.components[one.id].queued
        tasks = f"{len(one.tasks)} task{'s' * (len(one.tasks) != 1)}"
        return (tasks, f"{rate:,.0f}/s", *([f"{queued:,} waiting"] if queued else []))

    def _mark(self, component: str) -> str:
        one = self._statistics.components[component]
        if one.errors or one.down:
            return "error"
        return "slow" if not self._ended and component == _culprit(self._statistics) else ""


def _culprit(statistics: TopologyStatistics) -> str | None:
    return None if statistics.before_stop is not None else throttled_by(statistics)


def _whole(error: BaseException) -> str:
    cause = error.__cause__
    return f"{error}" if cause is None else f"{error}\n\nbecause of {type(cause).__name__}: {cause}"
