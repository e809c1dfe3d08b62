"""The controller: from what a round cost to what spouts may emit in the next one.

The invariant: **what spouts emit in a round is what the bolts can work off in about one target, and while more than that
waits, less.** So queues, and with them memory and the age of tuples, are bounded by the bolts' own speed, whatever that is.

Why it holds. A round is a closed experiment: so many tuples came in, and what came of them took so long, or will. That
gives the time of a tuple as it is now, of a bolt that sleeps as of one that computes, overhead and all (`_learn`),
and the limit is the time that is to be had divided by it. Spark's own rate estimator for DStreams is the same with the
signs of a PID: the rate that was processed, minus a share of what waits.

What would break it. *Overshoot*: the cost of a small round is mostly overhead, so what it predicts is too high, never too
low, and a limit grows by target / overhead a round at most, some ten times. *Oscillation*: noise is told from change
(`Drift`): a limit that is wrong by a factor is set right at once, one that is wrong by a half when that has lasted. *A spiral*:
if rounds are long for other reasons, less in each makes it worse, so bolts must be to blame for a limit to fall, and a round
is never to be shorter than three times what it takes anyway (`_longest`). *A stall for good* (W1): all of it is computed anew
from each round's figures; no message that could be lost says "go on", and a spout that is held keeps at least one
tuple a round and task, so that there always are figures. A round that works off what was there before shows how fast bolts
are now, which is all that is needed to know what they can take again.

Who is slowed: the spouts that the bolt at fault hears of, directly or through others, as in JStorm (F13); Heron
slows all (F10). Of these none gets less than an even share if it can use it. Which bolts are at fault: those above a water
mark (F9: bytes; F7: tuples), and those whose work, on their busiest worker, makes the round long. A long round without such
a bolt is Spark's or the exchange's, which the spouts' quantum follows.

A topology that begins is unknown: its first round is a small one (`FIRST_LIMIT` tuples a task of a spout), and the next
ones grow until nobody is stopped by them, or by what they show of rounds that nobody was stopped in; no bolt is named for that.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from math import exp, log
from statistics import median

from stormspark.backpressure.drift import Drift
from stormspark.backpressure.pressure import BoltPressure, LimitChange, Pressure, SpoutPressure
from stormspark.backpressure.signals import BoltLoad, Limits, SpoutLoad, TaskLoad
from stormspark.backpressure.water_marks import WaterMarks

__all__ = [
    "FIRST_LIMIT",
    "OPEN_TREES",
    "BoltPressure",
    "Controller",
    "LimitChange",
    "Pressure",
    "SpoutPressure",
]

#: Who is to blame where bolts hold more tuples, in windows or joins, than a spout may have open.
OPEN_TREES = "open trees"

#: Tuples that a task of a spout may emit in a topology's first round.
FIRST_LIMIT = 100
#: Bolts are to blame for a round if their work is this share of it.
_SHARE = 0.5
#: The bolt that was named stays so while it has this share of the worst one's work.
_STILL = 0.67
#: A round may be longer than the target, so that what is not work is a small share of it: this one while a bolt is at fault ...
_OVERHEAD_SHARE = 0.05
#: ... and this one while nobody is. In targets it is this long at most.
_SPOUTS_OVERHEAD_SHARE = 0.1
_LONGEST = 4.0
#: And never shorter than so many times what it takes anyway.
_SHORTEST = 3.0
#: By logarithms. A limit that was set by a round so far off is a rough one: the next round sets it right, if it is off by the
#: second of them, and the round after that too, if it grew by the third.
_FAR, _NEAR, _GROWS = 1.0, 0.1, 0.5
#: A limit that grows less is at its end: one task of a spout is at its share, and the others emit no more than they did.
_GROWN = 1.01
#: Where time, and no limit, is what stops a spout, a bolt has taken it if it had this share of the round.
_TAKES = 0.75
#: And if the round was so long, in targets: what ends a shorter one is the spout's own share of it.
_ENDED_BY_TIME = 0.5
#: And if that went on for more than so many targets, in more rounds than one: whoever had no more than a burst, and emitted all
#: of it, was stopped by time as well, and only the next round tells.
_BURST = 2.0
#: So many rounds are looked at for what a round takes whatever it does.
_OVERHEADS = 1000
#: And so many for what it takes lately.
_LATELY = 15
#: A limit goes when nobody was at it for so long, in targets: sources that come in bursts find it still there.
_CALM = 20.0
#: Nothing is faster; on a clock that stands still nothing takes time.
_LEAST_COST = 1e-9
#: Rounds in which time, and not its limit, stopped a spout, after which its limit goes.
_OUT_OF_THE_WAY = 2
#: Targets' worth of work above which a source is behind, and below which it is so no longer.
_BEHIND = (2.0, 0.5)
#: How many changes of limits are remembered.
_REMEMBERED = 1000


@dataclass
class _Bolt:
    """Seconds are by worker: a worker does one thing at a time."""

    tasks: Sequence[int]
    tuples: WaterMarks
    bytes: WaterMarks
    #: The workers in which the spouts are that it hears of.
    beside: frozenset[int]
    queued: dict[int, int] = field(default_factory=dict)
    queued_bytes: int = 0
    #: Seconds of a tuple, by task.
    cost: dict[int, float] = field(default_factory=dict)
    #: What was done, what waits, and what all that came in this round takes.
    busy: dict[int, float] = field(default_factory=dict)
    left: dict[int, float] = field(default_factory=dict)
    came: dict[int, float] = field(default_factory=dict)
    #: What the spouts that it hears of emitted.
    fed: int = 0
    #: Tuples that came, by task.
    arrived: dict[int, int] = field(default_factory=dict)

    @property
    def above(self) -> bool:
        return self.tuples.closed or self.bytes.closed

    @property
    def work(self) -> float:
        """Seconds for which it is to blame: what it did on its busiest worker, and what is left to do there."""
        return max((busy + self.left[worker] for worker, busy in self.busy.items()), default=0.0)

    def observe(self, loads: Mapping[int, TaskLoad], worker_of: Mapping[int, int]) -> None:
        self.busy, self.left, self.came = ({worker_of[task]: 0.0 for task in self.tasks} for _ in range(3))
        self.queued_bytes = 0
        for task in self.tasks:
            load, worker = loads.get(task), worker_of[task]
            if not isinstance(load, BoltLoad):
                continue
            if load.executed:
                self.cost[task] = load.seconds / load.executed
            cost, before = self.cost.get(task, 0.0), self.queued.get(task, 0)
            self.queued[task] = load.queued
            self.arrived[task] = load.executed + load.queued - before
            self.queued_bytes += load.queued_bytes
            self.busy[worker] += load.seconds
            self.left[worker] += load.queued * cost
            self.came[worker] += max(0.0, load.seconds + (load.queued - before) * cost)
        self.tuples.observe(sum(self.queued.values()))
        self.bytes.observe(self.queued_bytes)

    def in_turns(self, seconds: Mapping[int, float]) -> float:
        """What its workers have of these seconds, one after the other: those beside its spouts have their tuples at once, those
        elsewhere when the first ones have done what they had.
        """
        turns = {False: 0.0, True: 0.0}
        for worker, one in seconds.items():
            turns[worker in self.beside] = max(turns[worker in self.beside], one)
        return sum(turns.values())

    def time_for(self, tuples: Mapping[int, int], worker_of: Mapping[int, int]) -> Mapping[int, float]:
        """Seconds that so many tuples by task would take, by worker."""
        seconds = dict.fromkeys(self.came, 0.0)
        for task in self.tasks:
            seconds[worker_of[task]] += tuples.get(task, 0) * self.cost.get(task, 0.0)
        return seconds


@dataclass
class _Spout:
    tasks: Sequence[int]
    limit: float | None = None
    by_task: dict[int, int] = field(default_factory=dict)
    #: Seconds of a round for a tuple.
    cost: float | None = None
    #: The round that showed it: tuples, and what arrived at tasks of bolts.
    tuples: float = 0.0
    arrived: Mapping[int, int] = field(default_factory=dict)
    #: What of it is left when what waits is taken off.
    brake: float = 1.0
    because_of: str | None = None
    #: Whether its limit was set by a round that was much too long or much too short.
    is_rough: bool = False
    #: Whether that bolt is still to blame.
    named: bool = False
    #: The bolt that takes nearly all of rounds in which time is what stops it, and for how long that has gone on, in seconds.
    crowded_out_by: str | None = None
    crowded: float = 0.0
    drift: Drift = field(default_factory=Drift)
    calm: float = 0.0
    unused: int = 0
    throttled_ms: dict[str, float] = field(default_factory=dict)
    emitted: int = 0
    hungry: bool = False
    limited: bool = False
    loads: Mapping[int, SpoutLoad] = field(default_factory=dict)
    #: Of the work that waits behind it, rows of a source among it, in targets.
    behind: WaterMarks = field(default_factory=lambda: WaterMarks(*_BEHIND))
    #: Of its trees that have not ended.
    trees: WaterMarks = field(default_factory=lambda: WaterMarks(1, 0))

    @property
    def allowed(self) -> int | None:
        """What all its tasks may emit in the next round."""
        if self.trees.closed:  # what holds them may need a tuple to let them go
            return len(self.tasks)
        return None if self.limit is None else max(int(self.limit * self.brake), len(self.tasks))

    def observe(self, loads: Mapping[int, TaskLoad]) -> None:
        self.loads = {task: load for task in self.tasks if isinstance(load := loads.get(task), SpoutLoad)}
        self.emitted = sum(load.emitted for load in self.loads.values())
        self.hungry = any(load.hungry for load in self.loads.values())
        self.limited = any(load.limited for load in self.loads.values())
        self.trees.observe(sum(load.open_trees for load in self.loads.values()))

    @property
    def blamed(self) -> str | None:
        """Who stopped it in this round."""
        if not self.limited:
            return self.crowded_out_by
        return OPEN_TREES if self.trees.closed else self.because_of


class _Round:
    """What a round took, and for what."""

    def __init__(self, seconds: float, bolts: Collection[_Bolt]) -> None:
        self.seconds = seconds
        self._came = _by_worker(bolt.came for bolt in bolts)
        self._left = _by_worker(bolt.left for bolt in bolts)
        #: What it took beside the work of the busiest worker.
        self.overhead = max(0.0, seconds - max(_by_worker(bolt.busy for bolt in bolts).values(), default=0.0))
        #: All bolts one after another, each in its turns.
        self.path = sum(bolt.in_turns(bolt.came) for bolt in bolts)
        self._work = sum(
            bolt.in_turns({worker: busy + bolt.left[worker] for worker, busy in bolt.busy.items()})
            for bolt in bolts
        )
        self._most = max((bolt.work for bolt in bolts), default=0.0)

    def is_because_of(self, bolt: _Bolt) -> bool:
        """Whether bolts made it as long as it was, what they leave to do included, this one among the worst of them."""
        whole = self.seconds + max(self._left.values(), default=0.0)
        return bolt.above or (self._work >= _SHARE * whole and bolt.work >= _SHARE * self._most)

    def came_for(self, bolts: Iterable[_Bolt]) -> float:
        """Seconds of work that came in to the busiest worker that has one of these bolts."""
        return max((self._came[worker] for bolt in bolts for worker in bolt.came), default=0.0)

    def left_for(self, bolts: Iterable[_Bolt]) -> float:
        """And what waits there."""
        return max((self._left[worker] for bolt in bolts for worker in bolt.left), default=0.0)


class Controller:
    """Not thread-safe. ``spouts`` and ``bolts`` are task ids by component, ``upstream`` the spouts whose tuples reach a bolt.

    ``worker_of`` are the workers of tasks; without it each task is taken to have one of its own. Marks are of a bolt, all of
    its tasks together: high and low, in tuples and in bytes; ``tree_marks`` of a spout's open trees, its other limits being
    bolts' (what they hold in windows and joins waits in no queue). Seconds are seconds.

    >>> controller = Controller({"words": [1]}, {"count": [2]}, {"count": {"words"}}, target=1.0)
    >>> controller.limits
    {1: 100}
    >>> controller.observe({1: SpoutLoad(100, True, True), 2: BoltLoad(100, 1.0, 0, 0)}, seconds=1.1)
    >>> controller.limits, controller.pressure().spouts["words"].limit
    ({1: 200}, 200)
    """

    def __init__(
        self,
        spouts: Mapping[str, Sequence[int]],
        bolts: Mapping[str, Sequence[int]],
        upstream: Mapping[str, frozenset[str] | set[str]],
        *,
        target: float,
        worker_of: Mapping[int, int] | None = None,
        tuple_marks: tuple[int, int] = (1_000_000, 500_000),
        byte_marks: tuple[int, int] = (100 * 1024 * 1024, 50 * 1024 * 1024),
        tree_marks: tuple[int, int] = (5_000_000, 2_500_000),
    ) -> None:
        self.target = target
        tasks = [task for component in bolts.values() for task in component]
        self._worker_of = {task: task for task in tasks} if worker_of is None else worker_of
        self._upstream = {bolt: frozenset(upstream.get(bolt, ())) for bolt in bolts}
        self._bolts = {
            name: _Bolt(
                tasks,
                WaterMarks(*tuple_marks),
                WaterMarks(*byte_marks),
                frozenset(
                    self._worker_of.get(task, task)
                    for spout in self._upstream[name]
                    for task in spouts.get(spout, ())
                ),
            )
            for name, tasks in bolts.items()
        }
        self._spouts = {name: _Spout(tasks, trees=WaterMarks(*tree_marks)) for name, tasks in spouts.items()}
        self._downstream = {
            spout: [self._bolts[bolt] for bolt in bolts if spout in self._upstream[bolt]] for spout in spouts
        }
        self._names = {id(bolt): name for name, bolt in self._bolts.items()}
        self._seconds = 0.0
        self._changes = 0
        self._history: deque[LimitChange] = deque(maxlen=_REMEMBERED)
        #: What rounds took beside the work of the busiest worker.
        self._overheads: deque[float] = deque(maxlen=_OVERHEADS)
        self.begin()

    def begin(self) -> None:
        """The topology begins, or begins anew with workers that are new: nothing is known of how fast it is."""
        self._overheads.clear()
        #: The least since the beginning: at full speed it grows with what is done, and would not be told from work.
        self._least_overhead = 0.0
        for bolt in self._bolts.values():
            bolt.queued, bolt.cost, bolt.arrived = {}, {}, {}
        for name, spout in self._spouts.items():
            spout.cost, spout.because_of, spout.named, spout.loads = None, None, False, {}
            spout.crowded_out_by, spout.crowded = None, 0.0
            spout.arrived = {}
            spout.brake, spout.calm, spout.unused = 1.0, 0.0, 0
            spout.drift.reset()
            self._set(name, float(FIRST_LIMIT * len(spout.tasks)))
            self._share_out(spout)

    # -- what follows from a round ---------------------------------------------------------------------------

    def observe(
        self,
        loads: Mapping[int, TaskLoad],
        seconds: float,
        *,
        pause: float = 0.0,
        filled: float = 0.0,
        whole: bool = True,
    ) -> None:
        """A round took ``seconds``, with what each task did in it; ``pause`` is the time before it that was nobody's,
        ``filled`` that in which workers had nothing of the round to do, and went on: it costs what it did without.

        Not ``whole``: these are the workers' seconds only, because what the round took beside them was another thing than usual.
        """
        self._seconds += seconds + pause
        for bolt in self._bolts.values():
            bolt.observe(loads, self._worker_of)
        for spout in self._spouts.values():
            spout.observe(loads)
        for name, bolt in self._bolts.items():
            bolt.fed = sum(self._spouts[spout].emitted for spout in self._upstream[name])
        this = _Round(seconds, self._bolts.values())
        if whole:
            overhead = this.overhead + filled
            self._overheads.append(overhead)
            self._least_overhead = min(overhead, self._least_overhead or overhead)
        for name, spout in self._spouts.items():
            self._steer(name, spout, this)
            self._share_out(spout)
            rows = sum(load.rows_waiting for load in spout.loads.values())
            backlog = max((max(bolt.left.values()) for bolt in self._downstream[name]), default=0.0)
            spout.behind.observe((rows * (spout.cost or 0.0) + backlog) / self.target)

    def _steer(self, name: str, spout: _Spout, this: _Round) -> None:
        held = self._crowd(name, spout, this)
        if spout.blamed is not None:
            before = spout.throttled_ms.get(spout.blamed, 0.0)
            spout.throttled_ms[spout.blamed] = before + held * 1000
        spout.calm = 0.0 if spout.limited else spout.calm + min(this.seconds, self.target)
        spout.unused = 0 if spout.limited or not spout.hungry else spout.unused + 1
        if self._downstream[name]:
            self._follow(name, spout, this)
        if spout.calm >= _CALM * self.target or spout.unused >= _OUT_OF_THE_WAY:
            spout.because_of, spout.named = None, False
            self._set(name, None)

    def _crowd(self, name: str, spout: _Spout, this: _Round) -> float:
        """Whether a bolt takes the time of a spout that no limit stops; returns for how long the spout has been held, if it is.

        Once that is sure, the rounds in which it was not yet sure count, too.
        """
        was, before, spout.crowded_out_by = spout.crowded_out_by, spout.crowded, None
        worst = max(self._downstream[name], key=lambda bolt: bolt.work, default=None)
        ended_by_time = spout.hungry and not spout.limited and this.seconds >= _ENDED_BY_TIME * self.target
        if worst is None or not ended_by_time or worst.work < _TAKES * this.seconds:
            spout.crowded = 0.0
            return this.seconds
        spout.crowded += this.seconds
        if before and spout.crowded > _BURST * self.target:
            spout.crowded_out_by = self._names[id(worst)]
        return this.seconds if was else spout.crowded

    def _follow(self, name: str, spout: _Spout, this: _Round) -> None:
        """What the round says of a spout's limit."""
        bolts = self._downstream[name]
        worst = self._worst(spout, bolts)
        bolts_to_blame = this.is_because_of(worst)
        spout.named = bolts_to_blame and spout.because_of is not None
        longest, least = self._longest(name, worst), float(len(spout.tasks))
        spout.brake = 0.0 if worst.above else max(0.0, 1 - this.left_for(bolts) / longest)
        if not spout.emitted:
            return
        # What the round would have taken if all that came, and no more, had been worked off in it.
        whole = this.overhead + this.came_for(bolts)
        tuples = self._fair(name, spout, worst)
        spout.cost = max(self._learn(name, spout, whole, tuples, worst, this), _LEAST_COST)
        wanted = max(longest / spout.cost, least)
        if spout.because_of is None and spout.limit is not None:
            self._grow(name, spout, wanted, bolts_to_blame, worst)
        else:
            self._correct(name, spout, wanted, tuples, bolts_to_blame, worst)

    def _learn(
        self, name: str, spout: _Spout, whole: float, tuples: float, bolt: _Bolt, this: _Round
    ) -> float:
        """What a tuple costs: the round would have taken ``whole`` for so many."""
        if spout.cost is None or this.path >= _SHARE * whole:
            spout.tuples = tuples
            spout.arrived = {
                task: number for one in self._bolts.values() for task, number in one.arrived.items()
            }
            return whole / tuples
        if spout.arrived and this.is_because_of(bolt):
            # It worked off what was there before. That says nothing of what came, but how fast bolts are now: what would that
            # other round take?
            work = _by_worker(one.time_for(spout.arrived, self._worker_of) for one in self._bolts.values())
            busiest = max(work[worker] for one in self._downstream[name] for worker in one.came)
            return (min(self._overheads) + busiest) / spout.tuples
        # What came was little work, so this is mostly overhead: too high, and never too low.
        return min(spout.cost, whole / tuples)

    def _grow(self, name: str, spout: _Spout, wanted: float, bolts_to_blame: bool, worst: _Bolt) -> None:
        """A topology that began is found out about: ever more, until a bolt or nobody is in its way."""
        assert spout.limit is not None
        if worst.above or (bolts_to_blame and wanted < spout.emitted):
            self._hold(name, spout, wanted, worst)
        elif spout.limited:
            grown = max(2.0 * spout.emitted, wanted)
            if grown > _GROWN * spout.limit:
                self._set(name, grown)
        elif wanted >= 2.0 * spout.limit:  # nobody was at it, but who is some day need not be
            self._set(name, wanted)

    def _correct(
        self, name: str, spout: _Spout, wanted: float, tuples: float, bolts_to_blame: bool, worst: _Bolt
    ) -> None:
        """A limit that is wrong is set right, and a spout that has none gets one where bolts need it."""
        least = float(len(spout.tasks))
        at_limit = spout.limit if spout.limited else None
        if at_limit is not None:
            off = log(wanted / at_limit)
        else:  # judged by what it emitted, which may be too much and is never too little
            off = min(0.0, log(max(wanted * spout.brake, least) / max(tuples, least)))
        off = off if bolts_to_blame else max(0.0, off)
        lasting = spout.drift.observe(off)
        if lasting is None and spout.is_rough and at_limit is not None:
            lasting = off if abs(off) > _NEAR else None
            spout.is_rough = off > _GROWS
        elif lasting is not None:
            spout.is_rough = spout.limit is None or abs(lasting) > _FAR
        if lasting is None:
            return
        if lasting < 0:
            limit = wanted if at_limit is None else at_limit * exp(lasting)
            self._hold(name, spout, limit if spout.limit is None else min(limit, spout.limit), worst)
        elif at_limit is not None:
            self._set(name, at_limit * exp(lasting))

    def _hold(self, name: str, spout: _Spout, limit: float, bolt: _Bolt) -> None:
        spout.because_of = self._names[id(bolt)]
        spout.calm, spout.unused = 0.0, 0
        self._set(name, max(limit, float(len(spout.tasks))))

    def _worst(self, spout: _Spout, bolts: Iterable[_Bolt]) -> _Bolt:
        """The bolt to name. Of several that are equally slow always the same."""
        worst = max(bolts, key=lambda bolt: (bolt.above, bolt.work))
        named = self._bolts.get(spout.because_of or "")
        if named is not None and named.above == worst.above and named.work >= _STILL * worst.work:
            return named
        return worst

    def _fair(self, name: str, spout: _Spout, bolt: _Bolt) -> float:
        """Tuples of this spout, or more, where others had more of that bolt's busiest worker; not suddenly."""
        worker = max(bolt.came, key=bolt.came.__getitem__)
        works = {
            other_name: other.emitted
            * sum(each.came.get(worker, 0.0) / each.fed for each in self._downstream[other_name] if each.fed)
            for other_name, other in self._spouts.items()
        }
        having = [work for work in works.values() if work]
        if not works[name]:
            return float(spout.emitted)
        return spout.emitted * min(max(1.0, sum(having) / len(having) / works[name]), 2.0)

    def _longest(self, name: str, bolt: _Bolt) -> float:
        """How long a round should be: the target, or so long that a round's own time is a small share of it.

        Not longer where spouts that nobody holds would have to wait for a bolt that does not hear of them.
        """
        overhead = min(self._overheads, default=0.0)
        others = any(
            other.emitted
            and other.because_of is None
            and other_name not in self._upstream[self._names[id(bolt)]]
            for other_name, other in self._spouts.items()
        )
        longest = self.target if others else _LONGEST * self.target
        return min(max(self.target, overhead / _OVERHEAD_SHARE), max(longest, _SHORTEST * overhead))

    def _set(self, name: str, limit: float | None) -> None:
        spout = self._spouts[name]
        if limit != spout.limit:
            self._changes += 1
            rounded = None if limit is None else int(limit)
            self._history.append(LimitChange(self._seconds, name, rounded, spout.because_of))
            spout.limit = limit

    def _share_out(self, spout: _Spout) -> None:
        """A spout's limit over its tasks: those that have little need what they had and some more, the others share the rest."""
        if spout.allowed is None:
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
        left, by_task = spout.allowed or 0, {}
        for others, task in zip(range(len(order), 0, -1), order, strict=True):
            want = wants[task]
            even = -(-left // others)
            by_task[task] = even if want is None else min(want, even)
            left -= by_task[task]
        # What nobody asked for is for whoever has more next time.
        spout.by_task = {task: limit + left // len(order) for task, limit in by_task.items()}

    # -- what it says ----------------------------------------------------------------------------------------

    @property
    def limits(self) -> Limits:
        """What tasks of spouts may emit in the next round."""
        return {task: limit for spout in self._spouts.values() for task, limit in spout.by_task.items()}

    @property
    def round_target(self) -> float:
        """How long the next round should be, in seconds, where nobody is held: the target, or so long that what a round takes
        whatever it does is a tenth of it; less of it where a bolt is what holds up the others.
        """
        overhead, share = self._least_overhead, _SPOUTS_OVERHEAD_SHARE
        if self._overheads and any(spout.crowded_out_by for spout in self._spouts.values()):
            # Spouts have little of such a round, so what is not the bolts' work is no work: it may be taken as it is.
            overhead, share = median(islice(reversed(self._overheads), _LATELY)), _OVERHEAD_SHARE
        return min(max(self.target, overhead / share), _LONGEST * self.target)

    def limit_of(self, spout: str) -> int | None:
        """What all tasks of a spout together may emit in the next round."""
        return self._spouts[spout].allowed

    def is_behind(self, spout: str) -> bool:
        """Whether so much waits between a source and the end of its topology that no more should be read of it now."""
        return self._spouts[spout].behind.closed

    def pressure(self) -> Pressure:
        """A frozen snapshot."""
        return Pressure(
            spouts={
                name: SpoutPressure(
                    self.limit_of(name),
                    spout.blamed if spout.named or spout.trees.closed or spout.crowded_out_by else None,
                    dict(spout.throttled_ms),
                )
                for name, spout in self._spouts.items()
            },
            bolts={
                name: BoltPressure(
                    sum(bolt.queued.values()),
                    bolt.queued_bytes,
                    bolt.tuples.high,
                    bolt.bytes.high,
                    max(bolt.left.values(), default=0.0),
                    bolt.above,
                )
                for name, bolt in self._bolts.items()
            },
            limit_changes=self._changes,
            history=tuple(self._history),
        )


def _by_worker(seconds: Iterable[Mapping[int, float]]) -> Mapping[int, float]:
    """What all bolts of a worker have together: it does one thing at a time."""
    total: dict[int, float] = defaultdict(float)
    for of_bolt in seconds:
        for worker, one in of_bolt.items():
            total[worker] += one
    return total
