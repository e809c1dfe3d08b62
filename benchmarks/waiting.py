"""How much bolts that wait get done, and what a spout that waits costs a spout that does not.

    python -m benchmarks.waiting waiting [--engine spark] [--workers 2] [--seconds 15] [--warmup 15] [--rounds 3] [--vs-storm]

Three cases; in each, a spout at full speed emits numbers with message ids:

- ``waiting``: a bolt with 40 executors sleeps for 5 ms over each tuple. All together can do 40 / 5 ms = 8,000 tuples a second.
- ``waiting_chain``: three such bolts with 10 executors each, one after the other. Counted is what the last one executes, which
  can be 10 / 5 ms = 2,000 tuples a second.
- ``polling``: the spout feeds a counting bolt, alone and beside a second spout. Each ``next_tuple`` of the second spout sleeps
  for half a second and emits nothing, as if it asked a service that has nothing new. Counted is how fast the bolt is.
  Alone and beside are measured in turn. On Spark the turns are alone, beside, beside, alone. Each turn is a topology of its
  own, and takes half of the seconds and of the warm-up. One more topology comes first and is not counted: it warms up what all
  of them use. On the local engine, two processes have one topology each, and a turn takes a quarter of a second
  (`benchmarks.in_turn`). The share is the median of the shares of all pairs of turns, because a shared machine is slow for
  seconds at a time.

``share`` is what was done of what is possible. With ``--vs-storm``, Storm runs the same case in each round, after ours.
Prints one JSON line for each measurement, then the minimum, the median and the maximum of the shares of all rounds.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from benchmarks.asynchronous import Numbers
from benchmarks.in_turn import Case, Prepared, in_turn, opened
from benchmarks.storm_peer import run_storm
from benchmarks.word_count import measure_on, spread
from stormspark import BasicBolt, Fields, Spout, TopologyBuilder
from stormspark.api import Topology
from stormspark.plan import plan_topology

__all__ = ["CASES", "run", "storm"]

CASES = ("waiting", "waiting_chain", "polling")

_WAIT_SECS = 0.005
_POLL_SECS = 0.5
_EXECUTORS = {"waiting": 40, "waiting_chain": 10}
_CHAIN = ("first", "second", "third")
#: Whether the polling spout is there, turn by turn: what changes steadily meanwhile hurts both alike.
_TURNS = (False, True, True, False)
#: How much of the seconds and of the warm-up a turn takes.
_TURN = 0.5
#: The seconds of a turn of two processes. They are short, because what slows a shared machine should hurt both alike.
_SHORT_TURN_SECS = 0.25


class Polls(Spout):
    """Asks a service that never has anything new: waits, and emits nothing."""

    def open(self, conf: Any, context: Any, collector: Any) -> None:
        pass

    def next_tuple(self) -> None:
        time.sleep(_POLL_SECS)

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("number"))


class Waits(BasicBolt):
    """Waits for 5 ms, as for a database, and passes the tuple on."""

    def execute(self, tup: Any, collector: Any) -> None:
        time.sleep(_WAIT_SECS)
        collector.emit((tup[0],))

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("number"))


class Count(BasicBolt):
    """Counts."""

    def prepare(self, conf: Any, context: Any) -> None:
        self.count = 0

    def execute(self, tup: Any, collector: Any) -> None:
        self.count += 1


def _waiting(case: str) -> tuple[Topology, str]:
    """The topology of a case with waiting bolts, and the bolt that counts."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers())
    before = "numbers"
    for bolt in _CHAIN if case == "waiting_chain" else _CHAIN[:1]:
        builder.set_bolt(bolt, Waits(), _EXECUTORS[case]).shuffle_grouping(before)
        before = bolt
    return builder.create_topology(case), before


def _polling(polls: bool, tasks: int) -> Topology:
    """A spout at full speed and its bolt, with so many tasks each, and the polling spout if it is asked for."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(), tasks)
    count = builder.set_bolt("count", Count(), tasks).shuffle_grouping("numbers")
    if polls:
        builder.set_spout("polls", Polls())
        count.shuffle_grouping("polls")
    return builder.create_topology("polling" if polls else "polling_alone")


class _Speed(NamedTuple):
    """What a bolt executed in a window, and whose CPU was used meanwhile."""

    tuples: int
    wall_s: float
    cpu_s: float
    other_cpu_s: float
    batches: int

    @property
    def per_s(self) -> float:
        return self.tuples / self.wall_s


def _speed(
    topology: Topology, counted: str, engine: str, workers: int, seconds: float, warmup: float
) -> _Speed:
    """Run a topology and measure one of its bolts, from the end of a batch to the end of another."""
    first, last = measure_on(engine, topology, {"topology.workers": workers}, warmup, seconds, counted)
    cpu_s = sum(last.cpu.values()) - sum(first.cpu.values())
    return _Speed(
        last.statistics.components[counted].executed - first.statistics.components[counted].executed,
        last.at - first.at,
        cpu_s,
        max(0.0, last.machine - first.machine - cpu_s),
        last.statistics.batches - first.statistics.batches,
    )


def run(case: str, engine: str, workers: int, seconds: float, warmup: float) -> dict[str, Any]:
    """Measure one case once."""
    told = {"engine": f"stormspark-{engine}", "case": case, "workers": workers}
    if case != "polling":
        topology, last = _waiting(case)
        speed = _speed(topology, last, engine, workers, seconds, warmup)
        return {**told, **_of_possible(case, speed.per_s), **_costs([speed])}

    if engine == "local":
        return {**told, **_polling_in_turn(workers, seconds)}

    def turn(polls: bool, measured: float) -> _Speed:
        return _speed(_polling(polls, workers), "count", engine, workers, measured, _TURN * warmup)

    turn(polls=True, measured=0)
    speeds = [turn(polls, _TURN * seconds) for polls in _TURNS]
    return {**told, **_of_alone([speed.per_s for speed in speeds]), **_costs(speeds)}


def _of_possible(case: str, per_s: float) -> dict[str, Any]:
    """What waiting bolts did, and what they can do at most: all they do is wait."""
    possible = _EXECUTORS[case] / _WAIT_SECS
    return {
        "executed_per_s": round(per_s, 1),
        "possible_per_s": round(possible),
        "share": round(per_s / possible, 4),
        "executors": _EXECUTORS[case],
    }


def _of_alone(turns: list[float]) -> dict[str, Any]:
    """What the bolt of `_TURNS` did beside the polling spout, and alone: the means of the turns."""
    means = {}
    for polls in (True, False):
        of_these = [per_s for per_s, there in zip(turns, _TURNS, strict=True) if there is polls]
        means[polls] = sum(of_these) / len(of_these)
    return {
        "beside_per_s": round(means[True], 1),
        "alone_per_s": round(means[False], 1),
        "share": round(means[True] / means[False], 4),
        "turns_per_s": [round(per_s, 1) for per_s in turns],
    }


def _prepare(polls: bool, workers: int) -> Prepared:
    """Make the topology of `_polling`, with its workers in this process."""
    conf = {"topology.workers": workers, "stormspark.batch.target.ms": 500}
    plan = plan_topology(_polling(polls, workers), conf)
    return Prepared(opened(plan), ("count",))


def _polling_in_turn(workers: int, seconds: float) -> dict[str, Any]:
    """What the bolt does beside the polling spout and alone, in pairs of turns that take ``seconds`` together."""
    pairs = max(2, round(seconds / (2 * _SHORT_TURN_SECS)))
    cases = [Case(_prepare, (polls, workers)) for polls in (True, False)]
    beside, alone = (
        [turn.tuples / turn.wall_s for turn in turns] for turns in in_turn(cases, pairs, _SHORT_TURN_SECS)
    )
    shares = sorted(one / other for one, other in zip(beside, alone, strict=True))
    return {
        "beside_per_s": round(statistics.median(beside), 1),
        "alone_per_s": round(statistics.median(alone), 1),
        "share": round(statistics.median(shares), 4),
        "shares": [round(shares[0], 3), round(shares[-1], 3)],
        "pairs": pairs,
    }


def _costs(speeds: list[_Speed]) -> dict[str, Any]:
    """Time, CPU and batches of all turns together."""
    wall, batches = sum(speed.wall_s for speed in speeds), sum(speed.batches for speed in speeds)
    return {
        "cpu_s": round(sum(speed.cpu_s for speed in speeds), 2),
        "wall_s": round(wall, 2),
        "other_cpu_s": round(sum(speed.other_cpu_s for speed in speeds), 2),
        "batches": batches,
        "batch_ms_mean": round(wall / batches * 1000, 1) if batches else None,
    }


def storm(case: str, seconds: float, warmup: float) -> dict[str, Any]:
    """Measure Storm once, with the keys of `run`. Raises FileNotFoundError where there is no peer, or it lacks the case.

    Storm's turns of ``polling`` are processes of their own, so none of them warms up another.
    """

    def measured(name: str, part: float = 1) -> dict[str, Any]:
        return run_storm(name, max(1.0, part * seconds), part * warmup, source="Waiting.java")

    if case != "polling":
        lines = [measured(case)]
        figures = _of_possible(case, lines[0]["words_per_s"])
    else:
        lines = [measured("polling" if polls else "polling_alone", _TURN) for polls in _TURNS]
        figures = _of_alone([line["words_per_s"] for line in lines])
    costs = {key: round(sum(line[key] for line in lines), 2) for key in ("cpu_s", "wall_s", "other_cpu_s")}
    return {"engine": "storm", "case": case, "workers": 1, **figures, **costs}


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("case", choices=CASES)
    parser.add_argument("--engine", choices=("spark", "local"), default="spark")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--warmup", type=float, default=15)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--vs-storm", action="store_true", help="run Storm, too, in turn")
    args = parser.parse_args()
    sides: dict[str, Callable[[], dict[str, Any]]] = {
        "ours": lambda: run(args.case, args.engine, args.workers, args.seconds, args.warmup)
    }
    if args.vs_storm:
        sides["storm"] = lambda: storm(args.case, args.seconds, args.warmup)
    shares: dict[str, list[float]] = {side: [] for side in sides}
    for _ in range(args.rounds):
        for side, measured in sides.items():
            figures = measured()
            shares[side].append(figures["share"])
            print(json.dumps(figures), flush=True)
    told = {side: spread(values) for side, values in shares.items()}
    print(json.dumps({"case": args.case, "share": told, "rounds": args.rounds}))


if __name__ == "__main__":
    main()
