"""What a batch pays for what does not change in it: a million open trees, ten million keys of state. It should be nothing.

    python -m benchmarks.unchanged open_trees [--size 1000000] [--rounds 7]
    python -m benchmarks.unchanged state_keys [--size 10000000] [--rounds 7]

Two workers, a process each, run in turn (`benchmarks.in_turn`): one that has so much beside its work, and one that has
nothing. Both do the same work. Counted is the CPU a word, the least of all turns of either.

*open_trees*: the acked word count, beside a bolt that holds tuples of as many trees. *state_keys*: a bolt that counts ten
thousand keys in its state, in batches that are transactions; in the one worker these are all of its keys, in the other they are
spread over as many. Not counted is the driver's commit: `benchmarks.state_table` has that.
"""

from __future__ import annotations

import argparse
import json
import pickle
import time
from collections.abc import Callable, Iterator, Mapping
from random import Random
from typing import Any

import pyarrow as pa

from benchmarks.in_turn import Case, Prepared, in_this_process, in_turn, opened
from benchmarks.topologies import Count, Items, Split
from stormspark import Bolt, Fields, Spout, TopologyBuilder
from stormspark.api.state import KeyValueState, StatefulBolt
from stormspark.checkpoint.ordered_keys import encode_key
from stormspark.local import InProcessWorkers
from stormspark.plan import plan_topology

__all__ = ["open_trees", "state_keys", "with_trees"]

_HOT_KEYS = 10_000
_LOADED_AT_ONCE = 100_000


class Many(Spout):
    """Emits so many tuples at once, each with an id, and then nothing."""

    def __init__(self, size: int) -> None:
        self.size = size

    def open(self, conf: Mapping[str, Any], context: Any, collector: Any) -> None:
        """Begin at 0."""
        self.collector, self.emitted = collector, 0

    def next_tuple(self) -> None:
        """Emit all of them."""
        while self.emitted < self.size:
            self.emitted += 1
            self.collector.emit((self.emitted,), message_id=self.emitted)

    def declare_output_fields(self, declarer: Any) -> None:
        """One field."""
        declarer.declare(Fields("item"))


class Hold(Bolt):
    """Holds what it gets."""

    def prepare(self, conf: Mapping[str, Any], context: Any, collector: Any) -> None:
        """Nothing yet."""
        self.held: list[Any] = []

    def execute(self, tup: Any) -> None:
        """Hold it."""
        self.held.append(tup)

    def declare_output_fields(self, declarer: Any) -> None:
        """No streams."""


class Keys(Spout):
    """Keys that lie ``apart``, in no order."""

    def __init__(self, apart: int) -> None:
        self.apart = apart

    def open(self, conf: Mapping[str, Any], context: Any, collector: Any) -> None:
        """Draw by the same seed everywhere."""
        self.collector, self.random, self.emitted = collector, Random(3).random, 0

    def next_tuple(self) -> None:
        """Emit one."""
        self.emitted += 1
        self.collector.emit((int(self.random() * _HOT_KEYS) * self.apart,), message_id=self.emitted)

    def declare_output_fields(self, declarer: Any) -> None:
        """The key."""
        declarer.declare(Fields("key"))


class CountInState(StatefulBolt[KeyValueState[int, int]]):
    """Counts keys in its state."""

    def prepare(self, conf: Mapping[str, Any], context: Any, collector: Any) -> None:
        """The collector is all."""
        self.collector = collector

    def init_state(self, state: KeyValueState[int, int]) -> None:
        """Counts go here."""
        self.counts = state

    def execute(self, tup: Any) -> None:
        """Count."""
        key = tup.values[0]
        self.counts.put(key, self.counts.get(key, 0) + 1)
        self.collector.ack(tup)


def with_trees(size: int) -> Prepared:
    """The word count, beside ``size`` open trees."""
    builder = TopologyBuilder()
    builder.set_spout("spout", Items(False, True))
    builder.set_bolt("split", Split()).shuffle_grouping("spout")
    builder.set_bolt("count", Count()).fields_grouping("split", Fields("item"))
    builder.set_spout("many", Many(size))
    builder.set_bolt("hold", Hold()).shuffle_grouping("many")
    conf = {"topology.message.timeout.secs": 3600, "stormspark.batch.target.ms": 100}
    cluster = opened(plan_topology(builder.create_topology("trees"), conf))
    while cluster.workers[0].statistics().open < size:
        cluster.run_batch()
    return Prepared(cluster, ("count",))


def with_keys(size: int) -> Prepared:
    """Counting in a state of ``size`` keys; at least the hot ones."""
    size = max(size, _HOT_KEYS)
    builder = TopologyBuilder()
    builder.set_spout("spout", Keys(size // _HOT_KEYS))
    builder.set_bolt("count", CountInState()).fields_grouping("spout", Fields("key"))
    plan = plan_topology(builder.create_topology("keys"), {"stormspark.batch.target.ms": 500})
    cluster = InProcessWorkers(plan, time.monotonic, Random(5))
    for task in cluster.workers[0].tasks.values():
        if task.state is not None:
            task.state.load(_rows(size))
    cluster.open()
    return Prepared(cluster, ("count",))


def _rows(size: int) -> Iterator[pa.RecordBatch]:
    value = pickle.dumps(1)
    for begin in range(0, size, _LOADED_AT_ONCE):
        keys = [encode_key(key) for key in range(begin, min(size, begin + _LOADED_AT_ONCE))]
        yield pa.record_batch({"key": keys, "value": [value] * len(keys)})


def _figures(make: Callable[[int], Prepared], size: int, rounds: int) -> dict[str, Any]:
    cases = [Case(make, (0,)), Case(make, (size,))]
    turns = in_turn(cases, rounds) if rounds else [[in_this_process(case, 0.0)] for case in cases]
    empty, full = (min(turn.ns for turn in of_case) for of_case in turns)
    return {"size": size, "empty_ns": round(empty, 1), "full_ns": round(full, 1), "turns": rounds}


def open_trees(size: int, rounds: int = 0) -> dict[str, Any]:
    """CPU a word beside ``size`` open trees (``full_ns``) and beside none (``empty_ns``).

    Without ``rounds`` both run for a batch in this process, which says only that they do.
    """
    return _figures(with_trees, size, rounds)


def state_keys(size: int, rounds: int = 0) -> dict[str, Any]:
    """CPU a word with ``size`` keys of state (``full_ns``), and with no more than are counted (``empty_ns``)."""
    return _figures(with_keys, size, rounds)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("open_trees", "state_keys"))
    parser.add_argument("--size", type=int)
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()
    if args.what == "open_trees":
        figures = open_trees(args.size or 1_000_000, args.rounds)
    else:
        figures = state_keys(args.size or 10_000_000, args.rounds)
    print(
        json.dumps(
            {"case": args.what, **figures, "ratio": round(figures["full_ns"] / figures["empty_ns"], 3)}
        )
    )


if __name__ == "__main__":
    main()
