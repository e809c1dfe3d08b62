"""What a topology that ended without an error did not do. A command that runs it says so, and does not end with exit code 0."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

from stormspark.metrics.statistics import TopologyStatistics

__all__ = ["Kind", "Shortfall", "shortfalls"]

#: The calls in which a component writes what it still holds.
_LAST_CALLS = ("end_of_input", "post_save", "deactivate", "close", "cleanup")


class Kind(Enum):
    """What kind of thing a topology did not do. The values are the words of ``stormspark run --allow``."""

    #: Rows of a source were given up.
    DEAD_LETTERS = "dead-letters"
    #: Of a component, nothing but failures is known.
    ALL_FAILED = "all-failed"
    #: Tasks had no instance at the end, because they waited for their restart or it had not ended (W22).
    TASKS_DOWN = "tasks-down"
    #: What a bolt does with the last rows, or what a component does at the end, has raised an error or has not returned.
    UNWRITTEN = "unwritten"
    #: No tuple was emitted, or none was executed.
    NOTHING_DONE = "nothing-done"


class Shortfall(NamedTuple):
    """Something that a topology did not do."""

    kind: Kind
    #: A sentence that names the component, without a full stop.
    text: str


def shortfalls(statistics: TopologyStatistics) -> list[Shortfall]:
    """Return what an ended topology did not do, the most important first. An empty list means that all is well.

    >>> from stormspark.metrics import LatencySummary, TaskCounters, summarise
    >>> spout = summarise("spout", 1, [TaskCounters(emitted=7, transferred=7, failed=7, dead_letters=1)], None)
    >>> for one in shortfalls(TopologyStatistics("orders", "local", 1.0, 3, LatencySummary(), {"lines": spout})):
    ...     print(one.kind.value, "|", one.text)
    dead-letters | lines: 1 row was given up
    all-failed | lines: 7 messages failed, and none was acked
    """
    return [
        *_dead_letters(statistics),
        *_failures(statistics),
        *_tasks_down(statistics),
        *_unwritten(statistics),
        *_nothing_done(statistics),
    ]


def _dead_letters(statistics: TopologyStatistics) -> Iterator[Shortfall]:
    for name, component in statistics.components.items():
        if component.dead_letters:
            rows = "row was" if component.dead_letters == 1 else "rows were"
            yield Shortfall(Kind.DEAD_LETTERS, f"{name}: {component.dead_letters:,} {rows} given up")


def _failures(statistics: TopologyStatistics) -> Iterator[Shortfall]:
    for name, component in statistics.components.items():
        of_spout = component.kind == "spout"
        # A bolt need not ack, so of a bolt all tuples must have failed.
        if component.failed and not component.acked and (of_spout or component.failed >= component.executed):
            what = ("message" if of_spout else "tuple") + "s" * (component.failed > 1)
            none = "was not" if component.failed == 1 else "none was"
            yield Shortfall(Kind.ALL_FAILED, f"{name}: {component.failed:,} {what} failed, and {none} acked")


def _tasks_down(statistics: TopologyStatistics) -> Iterator[Shortfall]:
    for name, component in statistics.components.items():
        if component.down:
            tasks = "its task" if component.tasks == 1 else f"{component.down:,} of {component.tasks:,} tasks"
            yield Shortfall(
                Kind.TASKS_DOWN, f"{name}: {tasks} had raised an error and had not started again at the end"
            )


def _unwritten(statistics: TopologyStatistics) -> Iterator[Shortfall]:
    for name, component in statistics.components.items():
        if component.unwritten:
            tasks = (
                "its task"
                if component.tasks == 1
                else f"{component.unwritten:,} of {component.tasks:,} tasks"
            )
            calls = (
                "deactivate or close"
                if component.kind == "spout"
                else "last end_of_input, post_save or cleanup"
            )
            yield Shortfall(
                Kind.UNWRITTEN,
                f"{name}: the {calls} of {tasks} raised an error, so something may be unwritten",
            )
        for call in component.not_returned:
            if call.code.partition(" ")[0] in _LAST_CALLS:
                yield Shortfall(Kind.UNWRITTEN, f"{name}: {call.left()}, so something may be unwritten")


def _nothing_done(statistics: TopologyStatistics) -> Iterator[Shortfall]:
    spouts = [name for name, component in statistics.components.items() if component.kind == "spout"]
    emitted = statistics.total("emitted", "spout")
    if not emitted:
        yield Shortfall(Kind.NOTHING_DONE, f"nothing was emitted by {', '.join(spouts)}")
    elif len(spouts) < len(statistics.components) and not statistics.total("executed", "bolt"):
        yield Shortfall(
            Kind.NOTHING_DONE,
            f"{', '.join(spouts)}: {emitted:,} {'tuple was' if emitted == 1 else 'tuples were'} emitted, "
            f"and no bolt executed one",
        )
