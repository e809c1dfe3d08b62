"""The controller: from what a round cost to what spouts may emit in the next one.

The invariant: **what spouts emit in a round is what the bolts can work off in about one target, and while more than that
waits, less.** So queues, and with them memory and the age of tuples, are bounded by the bolts' own speed, whatever that is.

Why it holds. A round is a closed experiment: so many tuples came in, it took so long, so much more work waits than before.
That gives the cost of a tuple as it is now, of a bolt that sleeps as of one that computes, overhead and all (`_cost`), and
the limit is the time that is to be had divided by it. Spark's own rate estimator for DStreams is the same with the signs
of a PID: the rate that was processed, minus a share of what waits.

What would break it. *Overshoot*: the cost of a small round is mostly overhead, so what it predicts is too high, never too
low, and a limit grows by target / overhead a round at most, some ten times. *Oscillation*: a limit stays as it is while
it is right within a quarter (`_DEAD_BAND`), and a gate that is closed opens only when spouts did not use their limits
up, twice. *A stall for good* (W1): all of it is computed anew from each round's figures; no message that could be lost says
"go on", and a spout that is held keeps at least one tuple a round, so that there always are figures.

Who is slowed: the spouts that the bolt at fault hears of, directly or through others, as in JStorm (F13); Heron
slows all (F10). Which bolts are at fault: those above a water mark (F9: bytes; F7: tuples), and those whose busiest task is
what the round waited for. A long round without such a bolt is Spark's or the exchange's, which the spouts' quantum follows.

A topology that begins is unknown: its first round is a small one (`FIRST_LIMIT` tuples a task of a spout), and the next
ones grow.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from stormspark.backpressure.signals import BoltLoad, Limits, SpoutLoad, TaskLoad
from stormspark.backpressure.water_marks import WaterMarks

__all__ = ["FIRST_LIMIT", "BoltPressure", "Controller", "LimitChange", "Pressure", "SpoutPressure"]

#: Tuples that a task of a spout may emit in a topology's first round.
FIRST_LIMIT = 1000
#: A bolt is at fault where it makes up for this share of a round that is too long.
_SHARE = 0.5
#: A round, with the work that it leaves behind, is too long from this many targets on.
_TOO_LONG = 1.5
#: Between these, in targets, a limit stays as it is.
_DEAD_BAND = (0.75, 1.25)
#: While a bolt is at fault a round may be longer than the target, so that what is not its work is a small share of it.
_OVERHEAD_SHARE = 0.06
_LONGEST = 3.0
#: So many rounds are looked at for what a round takes whatever it does.
_OVERHEADS = 20
#: Rounds without anybody at its limit after which the gate opens.
_CALM_ROUNDS = 2
#: Targets' worth of work above which a source is behind, and below which it is so no longer.
_BEHIND = (2.0, 0.5)
#: How many changes of limits are remembered.
_REMEMBERED = 1000


class LimitChange(NamedTuple):
    """The limit of a spout, all its tasks together, from a moment on; None: no limit. ``seconds`` are the topology's."""

    seconds: float
    spout: str
    limit: int | None
    #: The bolt because of which, None for a topology that begins.
    because_of: str | None


@dataclass(frozen=True)
class SpoutPressure:
    """A spout as the controller sees it. ``limit`` is of a round, for all of its tasks; ``throttled_ms`` by bolt (F6, F11)."""

    limit: int | None
    throttled_by: str | None
    throttled_ms: Mapping[str, float]


@dataclass(frozen=True)
class BoltPressure:
    """A bolt: what waits for it, against its marks, and how long that takes."""

    queued: int
    queued_bytes: int
    high_mark: float
    high_mark_bytes: float
    #: What its busiest task has to do for what waits.
    backlog_seconds: float
    above: bool


@dataclass(frozen=True)
class Pressure:
    """All of it at one moment."""

    spouts: Mapping[str, SpoutPressure]
    bolts: Mapping[str, BoltPressure]
    #: So many times a limit was set, changed or taken away.
    limit_changes: int
    #: The last ones.
    history: Sequence[LimitChange]


@dataclass
class _Bolt:
    tasks: Sequence[int]
    tuples: WaterMarks
    bytes: WaterMarks
    queued: int = 0
    queued_bytes: int = 0
    #: Of the busiest task: in this round, and for what waits.
    seconds: float = 0.0
    backlog: float = 0.0
    before: float = 0.0
    #: Seconds of a tuple: by task, and of the busiest one.
    cost: dict[int, float] = field(default_factory=dict)
    mean: float = 0.0

    @property
    def above(self) -> bool:
        return self.tuples.closed or self.bytes.closed

    def observe(self, loads: Mapping[int, TaskLoad]) -> None:
        self.before, self.queued, self.queued_bytes = self.backlog, 0, 0
        self.seconds = self.backlog = 0.0
        for task in self.tasks:
            load = loads.get(task)
            if not isinstance(load, BoltLoad):
                continue
            if load.executed:
                self.cost[task] = load.seconds / load.executed
            self.queued += load.queued
            self.queued_bytes += load.queued_bytes
            backlog = load.queued * self.cost.get(task, 0.0)
            if load.seconds + backlog > self.seconds + self.backlog:
                self.mean = self.cost.get(task, 0.0)
            self.seconds = max(self.seconds, load.seconds)
            self.backlog = max(self.backlog, backlog)
        self.tuples.observe(self.queued)
        self.bytes.observe(self.queued_bytes)


@dataclass
class _Spout:
    tasks: Sequence[int]
    limit: float | None
    by_task: dict[int, int] = field(default_factory=dict)
    #: Seconds of a round for a tuple, and seconds in ``execute`` of the bolt at fault when that was learnt.
    cost: float | None = None
    mean: float = 0.0
    because_of: str | None = None
    calm: int = 0
    throttled_ms: dict[str, float] = field(default_factory=dict)
    emitted: int = 0
    hungry: bool = False
    limited: bool = False
    loads: Mapping[int, SpoutLoad] = field(default_factory=dict)
    #: Of the work that waits behind it, rows of a source among it, in targets.
    behind: WaterMarks = field(default_factory=lambda: WaterMarks(*_BEHIND))

    def observe(self, loads: Mapping[int, TaskLoad]) -> None:
        self.loads = {task: load for task in self.tasks if isinstance(load := loads.get(task), SpoutLoad)}
        self.emitted = sum(load.emitted for load in self.loads.values())
        self.hungry = any(load.hungry for load in self.loads.values())
        self.limited = any(load.limited for load in self.loads.values())


class Controller:
    """Not thread-safe. ``spouts`` and ``bolts`` are task ids by component, ``upstream`` the spouts whose tuples reach a bolt.

    Marks are of a bolt, all of its tasks together: high and low, in tuples and in bytes. Seconds are seconds.

    >>> controller = Controller({"words": [1]}, {"count": [2]}, {"count": {"words"}}, target=1.0)
    >>> controller.limits
    {1: 1000}
    >>> controller.observe({1: SpoutLoad(1000, True, True), 2: BoltLoad(1000, 10.0, 0, 0)}, seconds=10.1)
    >>> controller.limits, controller.pressure().spouts["words"].throttled_by
    ({1: 165}, 'count')
    """

    def __init__(
        self,
        spouts: Mapping[str, Sequence[int]],
        bolts: Mapping[str, Sequence[int]],
        upstream: Mapping[str, frozenset[str] | set[str]],
        *,
        target: float,
        tuple_marks: tuple[int, int] = (1_000_000, 500_000),
        byte_marks: tuple[int, int] = (100 * 1024 * 1024, 50 * 1024 * 1024),
    ) -> None:
        self.target = target
        self._upstream = upstream
        self._bolts = {
            name: _Bolt(tasks, WaterMarks(*tuple_marks), WaterMarks(*byte_marks))
            for name, tasks in bolts.items()
        }
        self._spouts = {name: _Spout(tasks, None) for name, tasks in spouts.items()}
        self._seconds = 0.0
        self._changes = 0
        self._history: deque[LimitChange] = deque(maxlen=_REMEMBERED)
        #: What rounds took beside the work of the bolt that they waited for.
        self._overheads: deque[float] = deque(maxlen=_OVERHEADS)
        self.begin()

    def begin(self) -> None:
        """The topology begins, or begins anew with workers that are new: nothing is known of how fast it is."""
        for name, spout in self._spouts.items():
            spout.cost, spout.because_of, spout.loads = None, None, {}
            self._set(name, float(FIRST_LIMIT * len(spout.tasks)))
            self._share_out(spout)

    # -- what follows from a round ---------------------------------------------------------------------------

    def observe(self, loads: Mapping[int, TaskLoad], seconds: float, *, pause: float = 0.0) -> None:
        """A round took ``seconds``, with what each task did in it; ``pause`` is the time before it that was nobody's."""
        self._seconds += seconds + pause
        for bolt in self._bolts.values():
            bolt.observe(loads)
        for spout in self._spouts.values():
            spout.observe(loads)
        self._overheads.append(
            seconds - min(seconds, max((b.seconds for b in self._bolts.values()), default=0.0))
        )
        at_fault = self._at_fault(seconds)
        for name, spout in self._spouts.items():
            mine = [bolt for bolt in at_fault if name in self._upstream.get(bolt, ())]
            if spout.limited and spout.because_of is not None:
                throttled = spout.throttled_ms
                throttled[spout.because_of] = throttled.get(spout.because_of, 0.0) + seconds * 1000
            self._learn(spout, seconds, max((self._bolts[bolt] for bolt in mine), key=_work, default=None))
            if mine:
                spout.because_of, spout.calm = mine[0], 0
                self._adjust(name, spout, self._bolts[mine[0]])
            elif spout.limit is not None:
                self._release(name, spout)
            self._share_out(spout)
            self._look_behind(name, spout)

    def _look_behind(self, name: str, spout: _Spout) -> None:
        rows = sum(load.rows_waiting for load in spout.loads.values())
        downstream = (
            bolt for bolt_name, bolt in self._bolts.items() if name in self._upstream.get(bolt_name, ())
        )
        work = rows * (spout.cost or 0.0) + max((bolt.backlog for bolt in downstream), default=0.0)
        spout.behind.observe(work / self.target)

    def _at_fault(self, seconds: float) -> list[str]:
        """The bolts because of which spouts are held, the worst first."""
        long = [name for name, bolt in self._bolts.items() if self._is_long(bolt, seconds)]
        most = max((_work(self._bolts[name]) for name in long), default=0.0)
        long = [name for name in long if _work(self._bolts[name]) >= _SHARE * most]
        above = [name for name, bolt in self._bolts.items() if bolt.above and name not in long]
        return sorted([*long, *above], key=lambda name: -_work(self._bolts[name]))

    def _is_long(self, bolt: _Bolt, seconds: float) -> bool:
        """Whether a round, with the work that is left, was too long because of it; while spouts are held, sooner."""
        held = any(spout.limited for spout in self._spouts.values())
        mark = _DEAD_BAND[0] if held else _TOO_LONG
        left = max((one.backlog for one in self._bolts.values()), default=0.0)
        whole = seconds + left
        return whole > mark * self.target and _work(bolt) >= _SHARE * whole * (1 if not held else 0.5)

    def _learn(self, spout: _Spout, seconds: float, bolt: _Bolt | None) -> None:
        """What a tuple costs."""
        if not spout.emitted:
            return
        more = 0.0
        if bolt is not None:
            more = bolt.backlog - bolt.before
            if bolt.seconds + more < bolt.seconds / 2:
                # It worked off what was there before, which says nothing of what came; only that it has become slower since.
                if spout.cost is not None and bolt.mean > spout.mean > 0:
                    spout.cost, spout.mean = spout.cost * bolt.mean / spout.mean, bolt.mean
                return
        cost = (seconds + more) / spout.emitted
        # A round that came to its end for want of tuples is mostly overhead: it can only show that tuples are cheaper.
        if spout.cost is None or spout.hungry or cost < spout.cost:
            spout.cost = cost
            spout.mean = bolt.mean if bolt is not None else 0.0

    def _adjust(self, name: str, spout: _Spout, bolt: _Bolt) -> None:
        """A bolt is at fault: as much as it can work off."""
        if spout.cost is None:
            return
        wanted = max((self._target() - bolt.backlog) / spout.cost, float(len(spout.tasks)))
        if bolt.above:  # it drains first
            wanted = float(len(spout.tasks))
        elif spout.limit is not None and not bolt.backlog > self.target:
            low, high = _DEAD_BAND
            if low * spout.limit <= wanted <= high * spout.limit:
                return
        self._set(name, wanted)

    def _target(self) -> float:
        """How long a round should be: the target, or so long that a round's own time is a small share of it."""
        return min(max(self.target, min(self._overheads) / _OVERHEAD_SHARE), _LONGEST * self.target)

    def _release(self, name: str, spout: _Spout) -> None:
        """Nobody is at fault: let it grow, and go once it is not in the way any more."""
        assert spout.limit is not None
        spout.calm = 0 if spout.limited else spout.calm + 1
        if spout.calm >= _CALM_ROUNDS or (spout.hungry and not spout.limited):
            spout.because_of = None
            self._set(name, None)
        elif spout.limited and spout.cost is not None:
            self._set(name, max(spout.limit, self.target / spout.cost))

    def _set(self, name: str, limit: float | None) -> None:
        spout = self._spouts[name]
        if limit != spout.limit:
            self._changes += 1
            rounded = None if limit is None else int(limit)
            self._history.append(LimitChange(self._seconds, name, rounded, spout.because_of))
            spout.limit = limit

    def _share_out(self, spout: _Spout) -> None:
        """A spout's limit over its tasks: those that have little need what they had and some more, the others share the rest."""
        if spout.limit is None:
            spout.by_task = {}
            return
        wants = {
            task: None
            if task not in spout.loads or spout.loads[task].hungry
            else 2 * spout.loads[task].emitted + 1
            for task in spout.tasks
        }
        # From those that want least on: what one leaves of its even share is for those after it.
        order = sorted(wants, key=lambda task: (wants[task] is None, wants[task] or 0, task))
        left, by_task = max(int(spout.limit), len(order)), {}
        for others, task in zip(range(len(order), 0, -1), order, strict=True):
            want = wants[task]
            even = -(-left // others)
            by_task[task] = even if want is None else min(want, even)
            left -= by_task[task]
        spout.by_task = by_task

    # -- what it says ----------------------------------------------------------------------------------------

    @property
    def limits(self) -> Limits:
        """What tasks of spouts may emit in the next round."""
        return {task: limit for spout in self._spouts.values() for task, limit in spout.by_task.items()}

    def limit_of(self, spout: str) -> int | None:
        """What all tasks of a spout together may emit in the next round."""
        limit = self._spouts[spout].limit
        return None if limit is None else max(int(limit), len(self._spouts[spout].tasks))

    def is_behind(self, spout: str) -> bool:
        """Whether so much waits between a source and the end of its topology that no more should be read of it now."""
        return self._spouts[spout].behind.closed

    def pressure(self) -> Pressure:
        """A frozen snapshot."""
        return Pressure(
            spouts={
                name: SpoutPressure(
                    self.limit_of(name),
                    spout.because_of if spout.limited else None,
                    dict(spout.throttled_ms),
                )
                for name, spout in self._spouts.items()
            },
            bolts={
                name: BoltPressure(
                    bolt.queued,
                    bolt.queued_bytes,
                    bolt.tuples.high,
                    bolt.bytes.high,
                    bolt.backlog,
                    bolt.above,
                )
                for name, bolt in self._bolts.items()
            },
            limit_changes=self._changes,
            history=tuple(self._history),
        )


def _work(bolt: _Bolt) -> float:
    """Seconds of a round that it is to blame for: what its busiest task did, and what is left for it to do."""
    return bolt.seconds + bolt.backlog
