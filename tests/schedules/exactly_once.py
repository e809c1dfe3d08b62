"""Runs of topologies whose batches are transactions, held against a plain sequential run."""

from __future__ import annotations

from collections import Counter
from typing import Any

from tests.schedules.components import copies_of
from tests.schedules.engine import Engine, in_small_pieces
from tests.schedules.schedule import Schedule
from tests.schedules.shapes import Feed, Pieces, Shape, draw_shape, plan_of
from tests.schedules.world import Moment, ViolationError, World, world

__all__ = ["run", "run_with_kept"]


def run(schedule: Schedule) -> None:
    """One run; raises `ViolationError`."""
    _run(schedule, *draw_shape(schedule))


def run_with_kept(schedule: Schedule) -> None:
    """The same where a bolt keeps tuples of a source over the end of their batch."""
    shape, pieces = draw_shape(schedule)
    _run(schedule, shape._replace(between=3, numbers=0, max_pending=0), pieces)


def _run(schedule: Schedule, shape: Shape, pieces: Pieces) -> None:
    feed = Feed(schedule, shape)
    here = world()
    here.poison, here.numbers_until = feed.poison, feed.numbers_until
    engines: list[Engine] = []
    with in_small_pieces(pieces, lambda barrier: engines[0].reached(barrier) if engines else None):
        engine = Engine(plan_of(shape), feed)
        engines.append(engine)
        engine.run()
    _compare(shape, feed, here)
    for host in engine.hosts:
        left = host.worker.ledger.statistics()
        if host.worker.backlog or left.open or left.parts:
            raise ViolationError("something is left", f"worker {host.index}: {host.worker.backlog}, {left}")


def _compare(shape: Shape, feed: Feed, here: World) -> None:
    """What the sequential run comes to: each row but those that were given up is drawn for once, each of its copies is in each
    sink once, with what was drawn, and it was acked, unless who was to hear of it had died.
    """
    given_up = {row for moment, rows in here.gave_up.items() if _was_committed(moment, here) for row in rows}
    for row in given_up:
        failed = max((len(here.attempts_failed[g, row]) for g in range(here.now.generation + 1)), default=0)
        if failed < shape.attempts:
            raise ViolationError("a row was given up too early", f"row {row} after {failed} attempts")
    expected = [row for row in feed.everything if row not in given_up]
    drawn = here.storage.state("work")
    # One that was kept may be done with in one batch, fail in a later one, and then be given up.
    lost, too_many = set(expected) - drawn.keys(), drawn.keys() - set(expected) - here.kept
    if lost or too_many:
        raise ViolationError("rows in the state", f"lost {sorted(lost)}, too many {sorted(too_many)}")
    tuples = Counter((row, copy, drawn[row]) for row in expected for copy in range(copies_of(row)))
    for name in ("outbox", "staging"):
        if shape.sinks >> ("outbox", "staging").index(name) & 1:
            got = Counter(one for key, parcel in here.delivered.items() if key[0] == name for one in parcel)
            _equal(f"rows in the sink ({name})", tuples, got)
    if shape.sinks & 4:
        _equal("rows in the sink's state", tuples, Counter(here.storage.state("total")))


def _was_committed(moment: Moment, here: World) -> bool:
    return here.commits.get(moment.batch) == moment


def _equal(rule: str, expected: Counter[Any], got: Counter[Any]) -> None:
    """Of rows that were kept there may be more: of another attempt, with another number."""
    too_many = [one for one in (got - expected).elements() if one[0] not in world().kept]
    if expected - got or too_many:
        raise ViolationError(rule, f"lost {sorted(expected - got)}, too many {sorted(too_many)}")
