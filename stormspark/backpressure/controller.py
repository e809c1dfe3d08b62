"""The controller. From what each round costs, it computes how many tuples spouts may emit in the next round.

The *target* is the intended length of a round. The target also serves as a unit of time: "in targets" means in multiples of the
target. The invariant: **in each round, spouts emit as many tuples as the bolts can process in the planned length of a round, and
fewer while tuples wait.** The planned length is about one target, and more if overhead is large. So the bolts' own speed bounds
the queues, the memory that these take, and the age of tuples.

Why it holds. Each round is a measurement: a known number of tuples came in, and the time for processing them is known or can be
computed. That gives the present time per tuple, including all overhead. It makes no difference whether a bolt sleeps or computes
(`_learn`). The limit is the available time divided by the time per tuple. Spark's own rate estimator for DStreams, a PID
controller, is similar. Its next rate is the rate at which tuples were processed, minus a share of the backlog.

What could break it, and why it does not:

- *Overshoot*. A small round is mostly overhead. So the time per tuple that such a round shows may be too high, but is never too
  low. Each round contains its overhead. So from one round to the next a limit grows at most by the factor planned length /
  overhead, which is usually about ten.
- *Oscillation*. `Drift` distinguishes noise from change. A limit that is wrong by a large factor is corrected at once. A limit
  that is wrong by 50 % is corrected only after several such rounds.
- *A spiral*. If rounds are long, but not because of bolts, a lower limit would cost throughput without making rounds shorter. So
  the length of rounds lowers a limit only if bolts are at fault. And a limit is never computed for a round shorter than three
  times the unavoidable overhead, if overhead takes time from the bolts (`_longest`).
- *A permanent stall* (W1). All limits are computed anew from each round's figures, so there is no message "go on" that could
  be lost. A spout that is slowed down may still emit one tuple per round and task, so there are always figures. A round that
  processes earlier tuples shows how fast the bolts are now. That is enough to raise the limit again.

The controller slows the spouts whose tuples reach the bolt at fault, directly or through other bolts, as JStorm does
(F13). Heron slows all spouts (F10). Each of the slowed spouts gets at least an even share of the time of the bolt at fault, if
the spout can use the share. A bolt is at fault if its backlog is above a water mark (F9: bytes; F7: tuples). It is also at fault
if the bolts' work takes up at least half of the round and this bolt is one of the slowest. If a round is long without such a
bolt, Spark or the exchange is the cause, and only the spouts' quantum adapts to it.

An async bolt, or one whose executors have threads of their own, works *alongside*: at the same time as its worker's other bolts,
and also while Spark carries tuples from superstep to superstep. Overhead takes no time from such a bolt, so a tuple costs only
the bolt's own time. But the bolt must not run out of tuples while those of the next round are on their way. So it gets the tuples
of one round in advance.

When a topology begins, nothing is known about it. Its first round is small (`FIRST_LIMIT` tuples per task of a spout). The
next rounds grow until no spout is stopped by its limit, or until a bolt is at fault. During that growth no bolt is named as
the cause of a limit.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from math import exp, log
from statistics import median
from typing import NamedTuple

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

#: The cause that is named, instead of a bolt, if a spout has more open trees than its mark allows. Usually bolts hold the spout's
#: tuples in windows or joins.
OPEN_TREES = "open trees"

#: How many tuples a task of a spout may emit in a topology's first round.
FIRST_LIMIT = 100
#: Bolts are at fault for the length of a round only if their work, done and left, is at least this share of the time that the
#: round took and that the rest of the work would take.
_SHARE = 0.5
#: A bolt that is named as the cause stays named while its work is at least this share of the work of the worst bolt, unless only
#: the worst bolt is above a mark.
_STILL = 0.67
#: While a bolt is at fault or takes a spout's time, a round may be longer than the target: so long that overhead is only this
#: share of the round.
_OVERHEAD_SHARE = 0.05
#: Like `_OVERHEAD_SHARE`, but for all other rounds.
_SPOUTS_OVERHEAD_SHARE = 0.1
#: The share of `_Spout.work` and `_Spout.sent` that is kept from round to round.
_KEPT = 0.7
#: A round is planned no longer than this, in targets, unless `_SHORTEST` demands a longer one.
_LONGEST = 4.0
#: While bolts limit spouts, a round is never planned shorter than this many times its overhead, unless the bolt works alongside.
_SHORTEST = 3.0
#: Thresholds, as differences of logarithms. A limit that a correction has changed by more than `_FAR` is only an estimate. The
#: next round corrects the estimate if it is off by more than `_NEAR`, without waiting for `Drift`. If that round finds that
#: the limit should grow by more than `_GROWS`, the limit stays an estimate for one more round.
_FAR, _NEAR, _GROWS = 1.0, 0.1, 0.5
#: In a new topology a limit that would grow by less than this factor is not raised. Such small growth means that only some of
#: the spout's tasks have reached their share of the limit, and that the others have no more to emit.
_GROWN = 1.01
#: If a spout stops because its time is up, and not because of a limit, the cause is a bolt whose work took at least this share of
#: the round.
_TAKES = 0.75
#: Only rounds of at least this length, in targets, count for `_TAKES`. In a shorter round the spout stopped because its quantum
#: was used up.
_ENDED_BY_TIME = 0.5
#: A bolt that takes a spout's time (`_TAKES`) is named when this has lasted for more than this many targets, and for more than
#: one round. One round is not enough: a spout that has many tuples once, and then none, also runs out of time in that round. Only
#: the next round shows that no tuples are left.
_BURST = 2.0
#: How many rounds are remembered to find the unavoidable overhead, which is the least overhead of these rounds.
_OVERHEADS = 1000
#: How many of the last rounds show the present overhead, and the present length of rounds.
_LATELY = 15
#: A limit is removed when its spout has not reached it for this long, in targets. So a spout keeps its limit if its tuples come
#: in waves that follow each other faster than that.
_CALM = 20.0
#: The least cost of a tuple, in seconds. Without this bound, a tuple would cost nothing while a simulated clock stands still.
_LEAST_COST = 1e-9
#: A limit is removed after this many rounds in a row in which time, and not the limit, stopped the spout.
_OUT_OF_THE_WAY = 2
#: Two lengths of waiting work, in targets. A source is behind from the time when more work than the first waits, until less work
#: than the second waits.
_BEHIND = (2.0, 0.5)
#: How many changes of limits are remembered.
_REMEMBERED = 1000


@dataclass
class _Bolt:
    """A bolt as the controller sees it. Its work is added up per worker.

    A worker does one thing at a time, except for async bolts and those whose executors have threads of their own (`alongside`).
    """

    tasks: Sequence[int]
    tuples: WaterMarks
    bytes: WaterMarks
    #: The workers that host the spouts from which tuples reach this bolt.
    beside: frozenset[int]
    queued: dict[int, int] = field(default_factory=dict)
    queued_bytes: int = 0
    #: Seconds per tuple, by task.
    cost: dict[int, float] = field(default_factory=dict)
    #: By worker, in seconds: the work done, the work that waits, and all work that came in this round.
    busy: dict[int, float] = field(default_factory=dict)
    left: dict[int, float] = field(default_factory=dict)
    came: dict[int, float] = field(default_factory=dict)
    #: How many tuples were emitted in the round by the spouts from which tuples reach this bolt.
    fed: int = 0
    #: How many tuples arrived in the round, by task.
    arrived: dict[int, int] = field(default_factory=dict)
    alongside: bool = False
    #: The tasks that have executed nothing yet. The time that their first calls have lasted so far serves as their cost.
    guessed: set[int] = field(default_factory=set)
    #: What people see. `waiting`: how many tuples wait for each task, without those in calls that are under way. `bytes_waiting`:
    #: their size. `behind`: how many seconds each worker needs for them. `first_call`: see `BoltPressure.first_call_secs`.
    waiting: dict[int, int] = field(default_factory=dict)
    bytes_waiting: int = 0
    behind: dict[int, float] = field(default_factory=dict)
    first_call: float = 0.0

    @property
    def above(self) -> bool:
        return self.tuples.closed or self.bytes.closed

    @property
    def work(self) -> float:
        """The seconds of the bolt's work, done and waiting, on its busiest worker."""
        return max((busy + self.left[worker] for worker, busy in self.busy.items()), default=0.0)

    def observe(self, loads: Mapping[int, TaskLoad], worker_of: Mapping[int, int]) -> None:
        self.busy, self.left, self.came, self.behind = (
            {worker_of[task]: 0.0 for task in self.tasks} for _ in range(4)
        )
        self.queued_bytes = self.bytes_waiting = 0
        self.first_call = 0.0
        for task in self.tasks:
            load, worker = loads.get(task), worker_of[task]
            if not isinstance(load, BoltLoad):
                continue
            self.alongside = load.alongside
            if load.executed:
                self.cost[task] = load.seconds / load.executed
                self.guessed.discard(task)
            elif task in self.guessed or task not in self.cost:
                self.guessed.add(task)
                self.cost[task] = load.under_way
            cost, before = self.cost.get(task, 0.0), self.queued.get(task, 0)
            self.queued[task] = load.queued
            self.arrived[task] = load.executed + load.queued - before
            self.queued_bytes += load.queued_bytes
            self.busy[worker] += load.seconds
            # A tuple in a call does not wait. Calls that last longer than a round would look like work for many rounds.
            self.left[worker] += (load.queued - load.in_calls * load.alongside) * cost
            self.came[worker] += max(0.0, load.seconds + (load.queued - before) * cost)
            self.waiting[task] = waiting = load.queued - load.in_calls
            self.bytes_waiting += load.queued_bytes - load.in_calls_bytes
            if load.pace is None:
                self.behind[worker] += waiting * cost
            else:  # the calls of all tasks go on at the same time
                self.behind[worker] = max(self.behind[worker], waiting * load.pace)
            self.first_call = max(self.first_call, load.first_call)
        self.tuples.observe(sum(self.queued.values()))
        self.bytes.observe(self.queued_bytes)

    def in_turns(self, seconds: Mapping[int, float]) -> float:
        """Return how long the bolt's workers need for their work. ``seconds`` is the work of each worker.

        Workers that host spouts of this bolt (`beside`) get their tuples at once. The bolt's other workers begin when those
        workers have finished. If the bolt works alongside, none of its workers waits for another.
        """
        if self.alongside:
            return max(seconds.values(), default=0.0)
        turns = {False: 0.0, True: 0.0}
        for worker, one in seconds.items():
            turns[worker in self.beside] = max(turns[worker in self.beside], one)
        return sum(turns.values())

    def time_for(self, tuples: Mapping[int, int], worker_of: Mapping[int, int]) -> Mapping[int, float]:
        """Return how many seconds the bolt would need in each worker, if each task got as many tuples as ``tuples`` says."""
        seconds = dict.fromkeys(self.came, 0.0)
        for task in self.tasks:
            seconds[worker_of[task]] += tuples.get(task, 0) * self.cost.get(task, 0.0)
        return seconds


@dataclass
class _Spout:
    """A spout as the controller sees it."""

    tasks: Sequence[int]
    limit: float | None = None
    by_task: dict[int, int] = field(default_factory=dict)
    #: How many seconds of a round one tuple costs.
    cost: float | None = None
    #: The number of the spout's tuples from which this cost was computed.
    tuples: float = 0.0
    #: `work`: the seconds of work that came to the spout's bolts. `sent`: the number of tuples that caused this work. Both are
    #: sums over many rounds, of which recent rounds count most. They show what a tuple costs a bolt that works alongside. A
    #: single round does not show that, because such a bolt gets most tuples in a later round.
    work: float = 0.0
    sent: float = 0.0
    #: How many tuples arrived at each task of a bolt in the round that showed `cost`.
    arrived: Mapping[int, int] = field(default_factory=dict)
    #: The share of the limit that remains after waiting tuples are subtracted.
    brake: float = 1.0
    because_of: str | None = None
    #: Whether the limit is only an estimate, because it was just set for the first time or changed by a large factor.
    is_rough: bool = False
    #: Whether a bolt was at fault in the last round. If so, `because_of` is shown to users.
    named: bool = False
    #: `crowded_out_by`: the bolt that takes most of the time, if the spout stops because its time is up, and not because of a
    #: limit. `crowded`: for how many seconds a bolt has taken most of the time in this way.
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
    #: The marks, in targets, of the work that waits because of this spout: its tuples, and the rows of its source.
    behind: WaterMarks = field(default_factory=lambda: WaterMarks(*_BEHIND))
    #: The marks of the spout's open trees.
    trees: WaterMarks = field(default_factory=lambda: WaterMarks(1, 0))

    @property
    def allowed(self) -> int | None:
        """How many tuples all tasks of the spout together may emit in the next round; None if there is no limit."""
        if self.trees.closed:  # a bolt may need another tuple to release those that it holds
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
        """What kept the spout from emitting more in this round: a bolt, or `OPEN_TREES`. None if nothing did, or if the limit of
        a new topology still grows.
        """
        if not self.limited:
            return self.crowded_out_by
        return OPEN_TREES if self.trees.closed else self.because_of


class _Work(NamedTuple):
    """The work of several bolts, in seconds.
    ``in_turn`` is the sum for the bolts that work in turn. ``alongside`` is the greatest work of a bolt that works alongside.
    """

    in_turn: float
    alongside: float

    def seconds(self, share: float = 1.0) -> float:
        """Return the time that the bolts need for this work. Of the work that is done alongside, only this ``share`` counts.

        A worker does one thing at a time. But bolts that work alongside take no time from each other, nor from the other bolts.
        """
        return max(self.in_turn, self.alongside * share)


class _Round:
    """How long one round took, and which bolts made it long."""

    def __init__(self, seconds: float, bolts: Collection[_Bolt]) -> None:
        self.seconds = seconds
        self._came = _by_worker((bolt, bolt.came) for bolt in bolts)
        self._left = _by_worker((bolt, bolt.left) for bolt in bolts)
        busy = _by_worker((bolt, bolt.busy) for bolt in bolts).values()
        busiest = max(busy, key=_Work.seconds, default=_Work(0.0, 0.0))
        #: The time of the round, minus the work of the busiest worker.
        self.overhead = max(0.0, seconds - busiest.seconds())
        #: Whether `overhead` is what this round had. Calls of a bolt that works alongside may have begun many rounds ago, so
        #: those that end in one round may have taken more time than this round. And if bolts that work in turn took most of the
        #: round, overhead is what they left, whatever went on beside them.
        self.shows_overhead = busiest.alongside <= busiest.in_turn or (
            busiest.alongside <= seconds and busiest.in_turn < _SHARE * seconds
        )
        #: How long the work that came would take if the bolts ran one after another. For a single bolt see `_Bolt.in_turns`.
        self.path = _work((bolt, bolt.in_turns(bolt.came)) for bolt in bolts).seconds()
        self._work = _work(
            (bolt, bolt.in_turns({worker: busy + bolt.left[worker] for worker, busy in bolt.busy.items()}))
            for bolt in bolts
        ).seconds()
        self._most = max((bolt.work for bolt in bolts), default=0.0)

    def is_because_of(self, bolt: _Bolt) -> bool:
        """Return whether the bolt is at fault.

        A bolt above a mark is at fault. If bolts are at fault for the length of the round (`_SHARE`), each bolt with at least
        half of the worst bolt's work is at fault.
        """
        whole = self.seconds + max((work.seconds() for work in self._left.values()), default=0.0)
        return bolt.above or (self._work >= _SHARE * whole and bolt.work >= _SHARE * self._most)

    def came_for(self, bolts: Iterable[_Bolt], share: float = 1.0) -> float:
        """Return the seconds of work that came to the busiest of these bolts' workers.

        If a bolt works alongside, only this ``share`` of its work counts.
        """
        return max((self._came[at].seconds(share) for bolt in bolts for at in bolt.came), default=0.0)

    def left_for(self, bolts: Iterable[_Bolt], share: float = 1.0) -> float:
        """Return the seconds of work that wait at the busiest of these bolts' workers. ``share``: see `came_for`."""
        return max((self._left[at].seconds(share) for bolt in bolts for at in bolt.left), default=0.0)


class Controller:
    """The controller of one topology, which computes the spouts' limits. It is not thread-safe.

    ``spouts`` and ``bolts`` are task ids by component. ``upstream`` has for each bolt the spouts from which tuples reach it.
    ``worker_of`` maps tasks to workers; without it each task counts as having a worker of its own. Marks are pairs of a high
    and a low mark, in tuples and in bytes, for all tasks of a bolt together. ``tree_marks`` limit a spout's open trees, because
    the tuples that bolts hold in windows and joins are in no queue. ``target`` is the intended length of a round. All times are
    in seconds.

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
        #: The overhead of each of the last rounds: the time that is not work of the busiest worker.
        self._overheads: deque[float] = deque(maxlen=_OVERHEADS)
        #: How long the last rounds took.
        self._lengths: deque[float] = deque(maxlen=_LATELY)
        self.begin()

    def begin(self) -> None:
        """Begin without knowledge of the bolts' speed, because the topology begins, or begins again with new workers."""
        self._overheads.clear()
        #: The least overhead of a round since this call. At full speed overhead grows with the work, and then a part of the
        #: overhead is avoidable.
        self._least_overhead = 0.0
        for bolt in self._bolts.values():
            bolt.queued, bolt.cost, bolt.arrived = {}, {}, {}
        for name, spout in self._spouts.items():
            spout.cost, spout.because_of, spout.named, spout.loads = None, None, False, {}
            spout.crowded_out_by, spout.crowded = None, 0.0
            spout.arrived, spout.work, spout.sent = {}, 0.0, 0.0
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
        """Learn from a round that took ``seconds``, and from the loads of the tasks in it.

        ``pause`` is the time between the last round and this one. ``filled`` is the time that workers spent on other tuples
        between supersteps, when they had nothing of the round to do. This time counts as overhead. If the round is not ``whole``,
        ``seconds`` is only the time in which workers were at work, because the rest of the round was unusual. The overhead of
        such a round is not remembered.
        """
        self._seconds += seconds + pause
        for bolt in self._bolts.values():
            bolt.observe(loads, self._worker_of)
        for spout in self._spouts.values():
            spout.observe(loads)
        for name, bolt in self._bolts.items():
            bolt.fed = sum(self._spouts[spout].emitted for spout in self._upstream[name])
        this = _Round(seconds, self._bolts.values())
        self._lengths.append(seconds)
        if whole and this.shows_overhead:
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
        """Check whether a bolt takes the time of a spout that no limit stops.

        Return how many seconds to count as time in which a limit or a bolt slowed the spout down, if one did. When a bolt is
        named for the first time, these seconds include earlier rounds, in which it was not yet certain that the bolt was at
        fault.
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
        """Set or correct a spout's limit, if the round shows that this is necessary."""
        bolts = self._downstream[name]
        worst = self._worst(spout, bolts)
        bolts_to_blame = this.is_because_of(worst)
        if bolts_to_blame and spout.because_of is not None:
            # The bolt for which the limit was set may be fast by now.
            spout.because_of = self._names[id(worst)]
        spout.named = bolts_to_blame and spout.because_of is not None
        longest, least = self._longest(name, worst), float(len(spout.tasks))
        share = longest / self._ahead(longest)
        spout.brake = 0.0 if worst.above else max(0.0, 1 - this.left_for(bolts, share) / longest)
        if not spout.emitted:
            return
        tuples = self._fair(name, spout, worst)
        came = this.came_for(bolts, share)
        spout.work, spout.sent = _KEPT * spout.work + came, _KEPT * spout.sent + tuples
        if worst.alongside and spout.work:
            cost = spout.work / spout.sent
        else:
            # The time that the round would have taken if bolts had processed exactly the tuples that came in it.
            cost = self._learn(name, spout, this.overhead + came, tuples, worst, this)
        spout.cost = max(cost, _LEAST_COST)
        wanted = max(longest / spout.cost, least)
        if spout.because_of is None and spout.limit is not None:
            self._grow(name, spout, wanted, bolts_to_blame, worst)
        else:
            self._correct(name, spout, wanted, tuples, bolts_to_blame, worst)

    def _learn(
        self, name: str, spout: _Spout, whole: float, tuples: float, bolt: _Bolt, this: _Round
    ) -> float:
        """Return the cost of a tuple, from a round that would have taken ``whole`` seconds for this many ``tuples``."""
        if spout.cost is None or this.path >= _SHARE * whole:
            spout.tuples = tuples
            spout.arrived = {
                task: number for one in self._bolts.values() for task, number in one.arrived.items()
            }
            return whole / tuples
        if spout.arrived and this.is_because_of(bolt):
            # The round processed earlier tuples. It shows nothing about the new tuples, but it shows how fast bolts are now. So
            # the cost is estimated from the round that showed the last cost: how long would that round take at this speed?
            work = _by_worker(
                (one, one.time_for(spout.arrived, self._worker_of)) for one in self._bolts.values()
            )
            busiest = max(work[at].seconds() for one in self._downstream[name] for at in one.came)
            return (min(self._overheads, default=0.0) + busiest) / spout.tuples
        # Little work came in, so the round is mostly overhead. Its time per tuple may be too high, but never too low.
        return min(spout.cost, whole / tuples)

    def _grow(self, name: str, spout: _Spout, wanted: float, bolts_to_blame: bool, worst: _Bolt) -> None:
        """Explore the speed of a new topology: raise the limit until a bolt is at fault, or until no limit stops the spout."""
        assert spout.limit is not None
        # A round's overhead hides how fast bolts are, unless they work alongside.
        is_known = worst.alongside and spout.work > 0
        # How long the first calls have lasted may be next to nothing of what they will take. Some tasks may never have one.
        is_guessed = is_known and worst.guessed.issuperset(worst.cost)
        most = _GROWN * spout.limit if is_known else spout.emitted
        if worst.above or (bolts_to_blame and wanted < most):
            self._hold(name, spout, wanted, worst)
        elif spout.limited:
            grown = wanted if is_known else max(2.0 * spout.emitted, wanted)
            if is_guessed:
                grown = min(grown, 2.0 * spout.emitted)
            if grown > _GROWN * spout.limit:
                self._set(name, grown)
        # Such a limit is too low if the spout emits more later.
        elif wanted >= 2.0 * spout.limit and not is_guessed:
            self._set(name, wanted)

    def _correct(
        self, name: str, spout: _Spout, wanted: float, tuples: float, bolts_to_blame: bool, worst: _Bolt
    ) -> None:
        """Correct a wrong limit. If the spout has no limit and bolts need one, set it."""
        least = float(len(spout.tasks))
        at_limit = spout.limit if spout.limited else None
        if at_limit is not None:
            off = log(wanted / at_limit)
        else:  # No limit has stopped the spout. It may have emitted too much. If it emitted little, no limit is the cause.
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
        """Return the bolt to name: the worst one, or the one that is named already if it is nearly as bad."""
        worst = max(bolts, key=lambda bolt: (bolt.above, bolt.work))
        named = self._bolts.get(spout.because_of or "")
        if named is not None and named.above == worst.above and named.work >= _STILL * worst.work:
            return named
        return worst

    def _fair(self, name: str, spout: _Spout, bolt: _Bolt) -> float:
        """Return how many tuples the spout emitted. If it got less than an even share, return up to twice that number.

        For an even share, the time of ``bolt``'s busiest worker is divided evenly among the spouts that use this time. With more
        tuples the cost per tuple looks lower, so the spout's limit grows towards an even share.
        """
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
        """Return how long a round should be while ``bolt`` limits the spout.
        This is the target, or so long that overhead is a small share of the round.

        A longer round also delays spouts from which no tuples reach ``bolt``. If there are such spouts, and no bolt limits them,
        the round lasts at most one target. Otherwise it lasts at most `_LONGEST` targets. But a round may always last `_SHORTEST`
        times its overhead.
        """
        if bolt.alongside:
            return self.target  # overhead takes no time from such a bolt
        overhead = min(self._overheads, default=0.0)
        others = any(
            other.emitted
            and other.because_of is None
            and other_name not in self._upstream[self._names[id(bolt)]]
            for other_name, other in self._spouts.items()
        )
        longest = self.target if others else _LONGEST * self.target
        return min(max(self.target, overhead / _OVERHEAD_SHARE), max(longest, _SHORTEST * overhead))

    def _ahead(self, longest: float) -> float:
        """Return how many seconds of work, including new tuples, a bolt that works alongside should have after a round.

        Such a bolt goes on working while a round's tuples are on their way, which takes up to a round. So it needs work for the
        planned round, and for one more round. The planned round takes ``longest``, or as long as rounds take at present, if that
        is longer.
        """
        usual = median(self._lengths)
        return max(longest, usual) + usual

    def _set(self, name: str, limit: float | None) -> None:
        spout = self._spouts[name]
        if limit != spout.limit:
            self._changes += 1
            rounded = None if limit is None else int(limit)
            self._history.append(LimitChange(self._seconds, name, rounded, spout.because_of))
            spout.limit = limit

    def _share_out(self, spout: _Spout) -> None:
        """Divide a spout's limit evenly among its tasks.

        A task that had no more to emit in this round needs at most about twice what it emitted. The others share the rest.
        """
        if spout.allowed is None:
            spout.by_task = {}
            return
        wants = {
            task: None
            if task not in spout.loads or spout.loads[task].hungry
            else 2 * spout.loads[task].emitted + 1
            for task in spout.tasks
        }
        # Begin with the tasks that want least. The unused rest of a task's even share goes to the tasks after it.
        order = sorted(wants, key=lambda task: (wants[task] is None, wants[task] or 0, task))
        left, by_task = spout.allowed or 0, {}
        for others, task in zip(range(len(order), 0, -1), order, strict=True):
            want = wants[task]
            even = -(-left // others)
            by_task[task] = even if want is None else min(want, even)
            left -= by_task[task]
        # The tasks also share what none of them wants, because they may have more to emit in the next round.
        spout.by_task = {task: limit + left // len(order) for task, limit in by_task.items()}

    # -- results ---------------------------------------------------------------------------------------------

    @property
    def limits(self) -> Limits:
        """How many tuples each task of a spout may emit in the next round. Tasks without a limit are left out."""
        return {task: limit for spout in self._spouts.values() for task, limit in spout.by_task.items()}

    @property
    def round_target(self) -> float:
        """The intended length of the next round in seconds, if no spout is slowed down.

        This length is the target, or more if unavoidable overhead would otherwise take more than a tenth of the round. If a bolt
        takes most of a spout's time, the usual overhead may take at most a twentieth. The length is never more than `_LONGEST`
        targets.
        """
        overhead, share = self._least_overhead, _SPOUTS_OVERHEAD_SHARE
        if self._overheads and any(spout.crowded_out_by for spout in self._spouts.values()):
            # Spouts have little time in such a round, so all time that is not the bolts' work is overhead.
            overhead, share = median(islice(reversed(self._overheads), _LATELY)), _OVERHEAD_SHARE
        return min(max(self.target, overhead / share), _LONGEST * self.target)

    def limit_of(self, spout: str) -> int | None:
        """Return how many tuples all tasks of a spout together may emit in the next round; None if there is no limit."""
        return self._spouts[spout].allowed

    def is_behind(self, spout: str) -> bool:
        """Return whether so many rows and tuples of a source wait that no more of its rows should be read now."""
        return self._spouts[spout].behind.closed

    def pressure(self) -> Pressure:
        """Return a frozen snapshot of all spouts and bolts, and of the last changes of limits."""
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
                    sum(bolt.waiting.values()),
                    bolt.bytes_waiting,
                    bolt.tuples.high,
                    bolt.bytes.high,
                    max(bolt.behind.values(), default=0.0),
                    bolt.above,
                    bolt.first_call,
                )
                for name, bolt in self._bolts.items()
            },
            limit_changes=self._changes,
            history=tuple(self._history),
        )


def _work(seconds: Iterable[tuple[_Bolt, float]]) -> _Work:
    """Return the work of bolts, given the seconds of each."""
    in_turn = alongside = 0.0
    for bolt, one in seconds:
        if bolt.alongside:
            alongside = max(alongside, one)
        else:
            in_turn += one
    return _Work(in_turn, alongside)


def _by_worker(seconds: Iterable[tuple[_Bolt, Mapping[int, float]]]) -> Mapping[int, _Work]:
    """Return for each worker the work of all its bolts. The seconds of each bolt are given by worker."""
    of_worker: dict[int, list[tuple[_Bolt, float]]] = defaultdict(list)
    for bolt, by_worker in seconds:
        for worker, one in by_worker.items():
            of_worker[worker].append((bolt, one))
    return {worker: _work(of_bolts) for worker, of_bolts in of_worker.items()}
