"""The table at the end of a run, with the exact figures of each component."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from stormspark.metrics import ComponentStatistics, TopologyStatistics
from stormspark.ui.figures import three_digits
from stormspark.ui.log_lines import TRACEBACK, before_traceback
from stormspark.ui.printable import printable
from stormspark.ui.throttling import tasks_down, throttling_lines

__all__ = ["print_summary", "summary_table"]


#: How Python says that one error led to another one, whose traceback or text follows.
_CHAINED = (
    "direct cause of the following exception:",
    "handling of the above exception, another exception occurred:",
)
#: The value of a user's metric, and calls that did not return, are printed for at most this many tasks.
_TASKS_SHOWN = 4
#: At most this many bolts are named for which tuples waited at the end.
_BOLTS_SHOWN = 3


class _Column(NamedTuple):
    title: str
    cell: Callable[[ComponentStatistics], str]
    #: A narrow terminal leaves out the columns with the highest rank first. Rank 0 always stays.
    rank: int = 0


def _count(name: str) -> Callable[[ComponentStatistics], str]:
    return lambda component: f"{getattr(component, name):,}"


def _latency(name: str) -> Callable[[ComponentStatistics], str]:
    def cell(component: ComponentStatistics) -> str:
        milliseconds = getattr(component.latency, name)
        return "-" if milliseconds is None else three_digits(milliseconds)

    return cell


def _failed(component: ComponentStatistics) -> str:
    """Format how many tuples failed. For a spout with failures, add in brackets how many were failed by a bolt, timed out, or
    were lost with a worker.
    """
    if component.kind != "spout" or not component.failed:
        return f"{component.failed:,}"
    reasons = (component.failed_by_bolt, component.timed_out, component.worker_lost)
    return f"{component.failed:,} ({'/'.join(f'{reason:,}' for reason in reasons)})"


_COLUMNS = (
    _Column("kind", lambda component: component.kind, rank=2),
    _Column("tasks", _count("tasks"), rank=1),
    _Column("emitted", _count("emitted")),
    _Column("transferred", _count("transferred"), rank=4),
    _Column("executed", _count("executed")),
    _Column("acked", _count("acked")),
    _Column("failed", _failed),
    _Column("late", _count("late")),
    _Column("mean ms", _latency("mean"), rank=3),
    _Column("p50 ms", _latency("p50"), rank=5),
    _Column("p99 ms", _latency("p99"), rank=6),
    _Column("errors", _count("errors")),
)


def summary_table(statistics: TopologyStatistics, leave_out: int = 0) -> Table:
    """Return a table with one row per component. ``leave_out`` is how many of the least important columns are left out."""
    some_late = any(component.late for component in statistics.components.values())
    shown = [column for column in _COLUMNS if column.title != "late" or some_late]
    dispensable = sorted((column for column in shown if column.rank), key=lambda column: -column.rank)
    columns = [column for column in shown if column not in dispensable[:leave_out]]
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("component", no_wrap=True)
    for column in columns:
        table.add_column(column.title, justify="left" if column.title == "kind" else "right", no_wrap=True)
    for name, component in statistics.components.items():
        table.add_row(Text(printable(name)), *(column.cell(component) for column in columns))
    return table


def print_summary(statistics: TopologyStatistics, console: Console) -> None:
    """Print the run's figures: a line for the whole run, the table, and lines on slowed spouts, on calls that did not
    return, and on errors, failures and metrics.
    """
    console.print(Text(printable(_headline(statistics))), soft_wrap=True)
    console.print(_that_fits(statistics, console))
    for line in _footnotes(statistics):
        console.print(Text(printable(line)), soft_wrap=True)


def _that_fits(statistics: TopologyStatistics, console: Console) -> Table:
    table = summary_table(statistics)
    without_limit = console.options.update(max_width=10_000)
    for leave_out in range(1 + max(column.rank for column in _COLUMNS)):
        table = summary_table(statistics, leave_out)
        if Measurement.get(console, without_limit, table).maximum <= console.width:
            break
    return table


def _headline(statistics: TopologyStatistics) -> str:
    batch = statistics.batch_ms
    took = (
        ""
        if batch.p50 is None
        else f" ({three_digits(batch.p50)} ms p50, {three_digits(batch.p99 or 0)} ms p99)"
    )
    return (
        f"{statistics.topology} on {statistics.engine}: {statistics.seconds:,.1f} s, "
        f"{_counted(statistics.batches, 'batch', 'batches')}{took}, {statistics.tuples_per_s:,.0f} tuples/s"
    )


def _footnotes(statistics: TopologyStatistics) -> Iterator[str]:
    yield "ms: for spouts, from the emit until the tree is acked; for bolts, in execute"
    if any(component.kind == "spout" and component.failed for component in statistics.components.values()):
        yield "failed: in brackets, by a bolt/timed out/lost with a worker"
    if any(component.late for component in statistics.components.values()):
        yield (
            "late: came after their window had fired, and are in no window (with_late_tuple_stream emits them, with_lag waits "
            "longer for them)"
        )
    if statistics.taken_back:
        last = statistics.last_taken_back.partition("\n")[0]
        yield f"attempts at batches that were taken back and ran again: {statistics.taken_back:,} (they count above, too)"
        yield f"the last attempt that was taken back: {last}"
    yield from _pending(statistics)
    yield from throttling_lines(statistics)
    for name, component in statistics.components.items():
        calls = sorted(component.not_returned, key=lambda call: -call.seconds)
        for call in calls[:_TASKS_SHOWN]:
            yield f"{name}: {call.left()}, and the topology ended without {call.it}"
        if len(calls) > _TASKS_SHOWN:
            yield f"{name}: more tasks whose calls had not returned: {len(calls) - _TASKS_SHOWN}"
        if component.down:
            yield f"{name}: {tasks_down(component)} at the end"
        if component.last_error:
            errors = _counted(component.errors, "error", "errors")
            which = "" if component.errors == 1 else ", the last one reported"
            yield f"{name}: {errors}{which}: {_error_line(component.last_error)}"
        if component.last_failure:
            failed = f"{component.failed:,} failed, the last reported failure: " if component.failed else ""
            yield f"{name}: {failed}{component.last_failure.splitlines()[0]}"
        for metric, points in component.metrics.items():
            shown = [f"{points[task].value} [{task}]" for task in sorted(points)[:_TASKS_SHOWN]]
            more = f", {len(points) - len(shown)} more tasks" if len(points) > len(shown) else ""
            yield f"{name}: {metric} {', '.join(shown)}{more}"


def _counted(count: int, one: str, several: str) -> str:
    return f"{count:,} {one if count == 1 else several}"


def _pending(statistics: TopologyStatistics) -> Iterator[str]:
    """Yield a line for each spout with messages that nobody has acked or failed, and say where tuples waited at the end."""
    bolts = [
        (one.queued, name) for name, one in statistics.components.items() if one.kind == "bolt" and one.queued
    ]
    waiting = [
        f"{queued:,} tuples waited for {name}" for queued, name in sorted(bolts, reverse=True)[:_BOLTS_SHOWN]
    ]
    where = f" ({', '.join(waiting)})" if waiting else ""
    for name, spout in statistics.components.items():
        if spout.kind == "spout" and spout.pending:
            yield f"{name}: {spout.pending:,} messages still pending at the end, neither acked nor failed{where}"


def _error_line(text: str) -> str:
    r"""Return the error in its text: the line after the traceback, else the last line. Put the line of code before it, if the
    text names one.

    >>> _error_line("split.py:7: Traceback (most recent call last):\n  File ...\nValueError: no number")
    'split.py:7: ValueError: no number'
    """
    lines = text.strip().splitlines()
    began = [number for number, line in enumerate(lines) if line.endswith((TRACEBACK, *_CHAINED))]
    # After a traceback the error begins at the first line that is not indented. It may have more lines, and notes.
    after = (line for line in lines[began[-1] + 1 :] if line and not line[0].isspace()) if began else iter(())
    return f"{before_traceback(lines)} {next(after, lines[-1]).strip()}".lstrip()
