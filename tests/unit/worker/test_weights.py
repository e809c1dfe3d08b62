"""Frames and marks go by what tuples weigh, whatever they are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from stormspark import Bolt, Fields, TopologyBuilder
from stormspark.acker import Outcome, Roots, SpoutAccount, Verdict
from stormspark.acker.ledger import Ledger
from stormspark.acker.tree import Tree
from stormspark.api import TupleSource
from stormspark.wire.frames import Frame, FrameKind
from stormspark.worker import departures
from stormspark.worker.tuples.edges import fail_roots
from stormspark.worker.tuples.weights import weight
from stormspark.worker.vectorised.lanes import BatchLanes, unpack_batches
from stormspark.worker.vectorised.roots import BatchRoots
from tests.unit.worker.components import Collect, Script, acks_of, fails_of
from tests.unit.worker.rig import Rig, two

_KB, _MB = 1024, 1024 * 1024
#: A frame is split where it is more than twice what it should be.
_MOST = 2 * departures.FRAME_BYTES


def flat(kilobytes: int) -> dict[str, str]:
    return {f"key {number}": f"{number:1000}" for number in range(kilobytes)}


def nested(kilobytes: int) -> list[Any]:
    return [[{"a": [f"{number:500}", (f"{-number:500}", number)]}] for number in range(kilobytes)]


def ledger_of(worker: int) -> Ledger:
    random = Random(worker)
    return Ledger(worker, lambda n: [random.getrandbits(64) for _ in range(n)], None)


class Fan(Bolt):
    """Emits so many dicts for each tuple, anchored to it; or the same value as often."""

    def __init__(self, count: int, kilobytes: int, shared: Any = None) -> None:
        self.count, self.kilobytes, self.shared = count, kilobytes, shared

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector = collector

    def execute(self, tup: Any) -> None:
        for _ in range(self.count):
            self.collector.emit((self.shared or flat(self.kilobytes),), anchors=tup)
        self.collector.ack(tup)

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("value"))


class Record:
    """A user's own class."""

    def __init__(self, kilobytes: int) -> None:
        self.name, self.parts = "record", flat(kilobytes)


SHAPES: dict[str, Callable[[int, int], Any]] = {
    "dicts": lambda number, kilobytes: flat(kilobytes),
    "nested lists": lambda number, kilobytes: nested(kilobytes),
    "arrays": lambda number, kilobytes: np.full(kilobytes * 128, number, np.float64),
    "views of arrays": lambda number, kilobytes: np.zeros(kilobytes * 512)[: kilobytes * 128],
    "texts": lambda number, kilobytes: "ä" * (kilobytes * 512),
    "bytes": lambda number, kilobytes: bytes(kilobytes * _KB),
    "lists of floats": lambda number, kilobytes: [float(n) for n in range(kilobytes * 110)],
    "sets": lambda number, kilobytes: set(flat(kilobytes).items()),
    "objects": lambda number, kilobytes: Record(kilobytes),
    "Arrow tables": lambda number, kilobytes: pa.table({"n": pa.array(range(kilobytes * 128))}),
}


def watched(rig: Rig) -> list[Frame]:
    """All frames of tuples or rows that the rig's workers hand out from now on."""
    frames: list[Frame] = []

    def wrapped(run: Any) -> Any:
        def watch(step: Any, inbound: Any) -> Any:
            out = run(step, inbound)
            frames.extend(f for f in out if f.kind in (FrameKind.TUPLES, FrameKind.BATCHES))
            return out

        return watch

    for worker in rig.workers:
        worker.run = wrapped(worker.run)  # type: ignore[method-assign]
    return frames


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_no_frame_is_heavy(shape: str) -> None:
    """120 tuples of 200 KB come in frames of megabytes, not in one of 24, and all arrive in order."""
    values = [SHAPES[shape](number, 200) for number in range(120)]
    rig = Rig(two(Collect(), Script(list(enumerate(values)), ("number", "value"))), 2)
    frames = watched(rig)
    rig.batches(4)
    assert [row[1] for row in rig.users("b")[0].seen] == list(range(120))
    assert len(frames) > 3 and max(len(frame.payload) for frame in frames) <= _MOST
    assert sorted(heard[:2] for heard in rig.users("a")[0].heard) == [("ack", n) for n in range(120)]


@pytest.mark.slow
def test_one_call_that_emits_much_leaves_in_several_frames() -> None:
    """What is emitted between two looks at the lanes is cut when it is packed; its tree has an edge in each frame."""
    builder = TopologyBuilder()
    builder.set_spout("a", Script([(1,)]))
    builder.set_bolt("fan", Fan(200, 200)).shuffle_grouping("a")
    builder.set_bolt("end", Collect(), 2).shuffle_grouping("fan")
    rig = Rig(builder, 2)
    frames = watched(rig)
    rig.batches(4)
    assert sum(len(user.seen) for user in rig.users("end")) == 200
    heavy = [len(frame.payload) for frame in frames if frame.count > 1]
    assert len(heavy) > 3 and max(heavy) <= _MOST
    assert rig.users("a")[0].heard == [("ack", 0)]


@pytest.mark.slow
def test_light_tuples_share_frames_and_a_rare_heavy_one_has_its_own() -> None:
    """One in 300 is 20 MB; all that is light travels as if it were not there."""
    heavy = [flat(10)] * 2000
    rows = [(n, [dict(one) for one in heavy] if n % 300 == 7 else "light") for n in range(1500)]
    rig = Rig(two(Collect(), Script(rows, ("number", "value"))), 2)
    frames = watched(rig)
    rig.batches(3)
    assert [row[1] for row in rig.users("b")[0].seen] == list(range(1500))
    assert len(frames) < 60, "frames of hundreds of tuples between those that are heavy"
    assert all(len(frame.payload) <= _MOST or frame.count == 1 for frame in frames), (
        "none carries a light one too"
    )


@pytest.mark.slow
def test_an_object_that_many_tuples_share_travels_once_a_frame() -> None:
    shared = nested(6000)
    builder = TopologyBuilder()
    builder.set_spout("a", Script([(1,)]))
    builder.set_bolt("fan", Fan(300, 0, shared)).shuffle_grouping("a")
    builder.set_bolt("end", Collect(), 2).shuffle_grouping("fan")
    rig = Rig(builder, 2)
    frames = watched(rig)
    rig.batches(3)
    assert sum(len(user.seen) for user in rig.users("end")) == 300
    assert sum(len(frame.payload) for frame in frames) < 4 * 6000 * _KB


@pytest.mark.slow
def test_a_tuple_that_is_larger_than_a_frame_goes_alone() -> None:
    rows = [("first",), ("x" * (30 * _MB),), ("last",)]
    rig = Rig(two(Collect(), rows), 2)
    frames = watched(rig)
    rig.batches(3)
    assert [len(value) for _, value in rig.users("b")[0].seen] == [5, 30 * _MB, 4]
    assert sorted(frame.count for frame in frames if len(frame.payload) > _MOST) == [1]


@pytest.mark.parametrize("value", ["x" * 60_000, {"text": "y" * 60_000}, 60_000 * b"z"])
def test_a_tuple_beyond_the_limit_fails_with_the_reason_and_the_others_go(value: Any) -> None:
    """It would be a row that Spark's JVM can't hold: its own tree fails, and nothing else."""
    rig = Rig(two(Collect(), [(1,), (value,), (3,)]), 2, stormspark_tuple_max_bytes=50_000)
    rig.batches(3)
    assert [row[1] for row in rig.users("b")[0].seen] == [1, 3]
    (spout,) = rig.users("a")
    (fail,) = fails_of(spout)
    assert (fail.message, sorted(acks_of(spout))) == (1, [0, 2])
    for text in (fail.reason, *rig.errors):
        assert "stream 'default' of 'a' has 60,0" in text and "may have 50,000" in text
        assert "stormspark.tuple.max.bytes" in text and len(text) < 400


class Slow(Collect):
    """Takes a second of a test's clock for a tuple, and notes how many wait."""

    rig: Rig

    def execute(self, tup: Any, collector: Any) -> None:
        self.rig.clock.advance(1.0)
        super().execute(tup, collector)
        self.held = [*getattr(self, "held", ()), self.rig.tasks("b")[0].waiting]


@pytest.mark.slow
def test_marks_in_bytes_count_what_values_hold() -> None:
    """A spout pauses when 10 MB of dicts wait for a slow bolt, which `sys.getsizeof` takes for kilobytes."""
    script = Script([(flat(200),) for _ in range(600)])
    rig = Slow.rig = Rig(two(Slow(), script), 1, stormspark_queue_high_mark_bytes=10 * _MB)
    rig.batches(20)
    held = rig.users("b")[0].held
    assert held and max(held) <= 50 + 64, "50 tuples are 10 MB, and 64 calls are between two looks"
    task = rig.tasks("b")[0]
    assert task.waiting and task.load().queued_bytes > task.waiting * 180 * _KB


@pytest.mark.slow
def test_bolts_that_make_much_of_little_wait_until_it_has_left() -> None:
    """50 tuples that become 400 KB each: what a superstep hands out is bounded by the mark, and all of it arrives."""
    builder = TopologyBuilder()
    builder.set_spout("a", Script([(n,) for n in range(50)]))
    builder.set_bolt("fan", Fan(4, 100)).shuffle_grouping("a")
    builder.set_bolt("end", Collect(), 2).shuffle_grouping("fan")
    rig = Rig(builder, 2, stormspark_queue_high_mark_bytes=5 * _MB)
    sizes: list[int] = []
    frames = watched(rig)
    for _ in range(30):
        rig.batches(1)
        sizes.append(sum(len(frame.payload) for frame in frames))
        frames.clear()
    assert sum(len(user.seen) for user in rig.users("end")) == 200
    # A chunk of an unknown bolt is 16 tuples, 3.2 MB for the other worker, and there are four supersteps at most.
    assert max(sizes) < 40 * _MB and sum(sizes) > 9 * _MB
    assert sorted(heard[:2] for heard in rig.users("a")[0].heard) == [("ack", n) for n in range(50)]


@pytest.mark.parametrize("shape", SHAPES)
def test_the_weight_of_a_value_is_about_what_it_takes(shape: str) -> None:
    value = SHAPES[shape](3, 300)
    assert 150 * _KB < weight((value,)) < 1200 * _KB
    assert weight((1, value)) > weight((value,))


class Strange(dict[str, int]):
    def items(self) -> Any:
        raise RuntimeError("not now")


class Endless:
    def __init__(self) -> None:
        self.me = [self]


@pytest.mark.parametrize(
    "value", [Strange(a=1), Endless(), [], {}, (), iter([1]), object(), Endless, np.float64(1), range(10**12)]
)
def test_no_value_is_too_strange_to_be_weighed(value: Any) -> None:
    assert 0 <= weight((value,)) < 100_000


def test_a_value_that_is_deep_or_wide_is_weighed_at_once() -> None:
    """By its first items: no more than some hundred objects are looked at."""
    looked_at = 0

    class Item:
        @property
        def nbytes(self) -> int:
            nonlocal looked_at
            looked_at += 1
            return 1000

    wide: Any = Item()
    for _ in range(7):
        wide = [wide] * 20
    assert weight((wide,)) > 1_000_000
    assert weight(([Item() for _ in range(100_000)],)) > 50_000_000
    assert looked_at < 300


@pytest.mark.slow
@pytest.mark.parametrize("by_row", [False, True])
def test_batches_of_rows_are_cut_as_well(by_row: bool) -> None:
    """A batch of 32 MB leaves as several frames, in order, with its trees; a row that is too large fails alone."""
    home, away, account = ledger_of(0), ledger_of(1), SpoutAccount(1)
    complaints: list[str] = []

    def fail(task: int, roots: Iterable[Roots], reason: str) -> None:
        complaints.append(reason)
        for of_one in roots:
            fail_roots(home, of_one, Verdict(Outcome.FAILED, reason, "a", task))

    lanes = BatchLanes(1, home, fail, 1 * _MB, 3 * _MB)
    values = [f"{number:1000}" for number in range(32 * _KB)]
    values[5000] = "x" * (4 * _MB)
    batch = pa.record_batch([pa.array(values)], ["text"])
    trees = [Tree(account, number, 0.0) for number in range(2 if by_row else 1)]
    roots = BatchRoots.of(trees[number % len(trees)] for number in range(len(values)))
    roots.open_edges(len(values))
    for tree in trees:
        home.begin(tree)
    source = TupleSource("a", 1, "default", Fields("text"))
    lanes.inbox(7)(batch, source, roots)
    sealed = lanes.seal()
    assert len(sealed) > 25 and max(len(payload) for _, payload in sealed) < 3 * _MB
    arrived: list[str] = []
    edges = 0
    for count, payload in sealed:

        def receive(rows: pa.RecordBatch, of: Any, its: Any) -> None:
            nonlocal edges
            arrived.extend(rows.column(0).to_pylist())
            edges += sum(1 for _ in zip(range(rows.num_rows), its.each(), strict=False))

        received = unpack_batches(
            payload,
            away,
            {(1, "default"): source},
            lambda _: pa.schema([("text", pa.string())]),
            {7: receive},
        )
        assert received == count
    assert arrived == values[:5000] + values[5001:] and edges == len(arrived)
    assert len(complaints) == 1 and "a row on stream 'default' of 'a' has 4,19" in complaints[0]
    assert [tree.verdict is not None for tree in trees] == [True, False][: len(trees)]
