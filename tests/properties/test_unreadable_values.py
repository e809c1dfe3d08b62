"""Whatever a value raises while it is unpickled, its tuple fails, with its reason, and all others of the frame arrive."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterator
from enum import Enum
from random import Random
from typing import Any

import cloudpickle
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormspark import Fields
from stormspark.acker import Outcome, SpoutAccount, Verdict
from stormspark.acker.ledger import Ledger
from stormspark.acker.tree import Tree
from stormspark.api import TupleSource
from stormspark.worker.tuples.edges import close_edges, fail_roots
from stormspark.worker.tuples.lanes import Lanes
from stormspark.worker.tuples.salvage import salvage
from stormspark.worker.tuples.unpacking import unpack
from tests.unit.worker.unreadable import LEFT, UNREADABLE, Fine, Node, Raises, Sometimes

_SOURCES = {
    (task, stream): TupleSource("bolt", task, stream, Fields(*fields))
    for task in (1, 2)
    for stream, fields in (("default", ["value"]), ("pairs", ["n", "value"]))
}


def ledger_of(worker: int) -> Ledger:
    random = Random(worker)
    return Ledger(worker, lambda n: [random.getrandbits(64) for _ in range(n)], None)


class Wires:
    """Lanes from worker 0 to worker 1, and what becomes of a frame there."""

    def __init__(self) -> None:
        self.home, self.there, self.account = ledger_of(0), ledger_of(1), SpoutAccount(1)
        self.lanes = Lanes(1, self.home, lambda task, roots, reason: pytest.fail(reason))
        self.inboxes = {
            (*key, target): self.lanes.inbox(key[0], target) for key in _SOURCES for target in (7, 8)
        }
        self.arrived: dict[int, list[Any]] = {7: [], 8: []}
        self.refused: list[tuple[int | None, Any, str]] = []

    def tree(self, message_id: Any) -> Tree:
        tree = Tree(self.account, message_id, 0.0)
        self.home.begin(tree)
        return tree

    def emit(self, task: int, stream: str, target: int, values: tuple[Any, ...], roots: Any) -> None:
        for branch in roots if isinstance(roots, tuple) else (roots,):
            if branch is not None:
                branch.count += 1
        self.inboxes[task, stream, target].append((values, _SOURCES[task, stream], roots))

    def travel(self, after: list[Any]) -> None:
        sealed = self.lanes.seal()
        for undo in after:
            undo()
        for count, payload in sealed:
            assert unpack(payload, self.there, _SOURCES, self.arrived, None, self.refuse) == count

    def refuse(self, target: int | None, roots: Any, reason: str) -> None:
        self.refused.append((target, roots, reason))
        if target is not None:
            fail_roots(self.there, roots, Verdict(Outcome.FAILED, reason, "bolt", target))

    def ack_all(self) -> None:
        for inbox in self.arrived.values():
            for _, _, roots in inbox:
                close_edges(self.there, roots)
        for parts in self.there.parts_to_send.values():
            self.home.take_parts(pickle.loads(pickle.dumps(parts)))
        self.home.validate()
        self.there.validate()


@pytest.mark.parametrize("what", UNREADABLE)
@pytest.mark.parametrize(
    "where", [0, pytest.param(250, marks=pytest.mark.slow), pytest.param(499, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("stream", ["default", "pairs"])
def test_one_of_500_fails_and_the_others_arrive(what: str, where: int, stream: str) -> None:
    """Each with its own tree: 499 are acked, one fails, with component, task, stream, field, type and reason."""
    wires, after = Wires(), list[Any]()
    for n in range(500):
        value = UNREADABLE[what](after) if n == where else Fine(n)
        wires.emit(1, stream, 7, (n, value) if stream == "pairs" else (value,), wires.tree(n))
    wires.travel(after)
    assert [values[-1].n for values, _, _ in wires.arrived[7]] == [n for n in range(500) if n != where]
    (refused,) = wires.refused
    assert refused[0] == 7
    assert refused[2].startswith("field 'value' (")
    assert f"of a tuple on stream '{stream}' of 'bolt', task 1, can't be unpickled: " in refused[2]
    wires.ack_all()
    ended = {tree.message_id: tree.verdict for tree in wires.account.ended}
    assert len(ended) == len(wires.account.ended) == 500 and wires.account.pending == 0
    assert [n for n, verdict in ended.items() if verdict and verdict.outcome is Outcome.FAILED] == [where]


class Shape:
    """What is emitted: (task, stream, target, kind of value, which trees)."""

    strategy = st.lists(
        st.tuples(
            st.sampled_from((1, 2)),
            st.sampled_from(("default", "pairs")),
            st.sampled_from((7, 8)),
            st.sampled_from(["text", "number", "object", "shared", "bad", "bad", "knows the shared bad"]),
            st.sampled_from(["none", "own", "shared", "both"]),
        ),
        max_size=40,
    )


@given(Shape.strategy, st.sampled_from(sorted(UNREADABLE)))
def test_streams_stay_in_order_and_trees_end_once(emits: list[Any], what: str) -> None:
    """E31, E21: any mixture, with objects that several values share, with trees that several tuples have."""
    wires, after = Wires(), list[Any]()
    shared, shared_bad = Fine(-1), UNREADABLE[what](after) if "gone" not in what else Raises(ValueError, "no")
    together = wires.tree("together")
    together.count += 1
    expected: dict[tuple[int, int], list[Any]] = {}
    failed: set[Any] = set()
    trees: dict[Any, Tree] = {"together": together}
    for n, (task, stream, target, kind, tracked) in enumerate(emits):
        value = {
            "text": f"text {n}",
            "number": n,
            "object": Fine(n),
            "shared": [shared, shared],
            "bad": shared_bad,
            "knows the shared bad": Node("knows", shared_bad),
        }[kind]
        own = trees[n] = wires.tree(n)
        own.count += 1  # the spout's own, which is closed at the end
        roots = {"none": None, "own": own, "shared": together, "both": (own, together)}[tracked]
        wires.emit(task, stream, target, (n, value) if stream == "pairs" else (value,), roots)
        if "bad" in kind:
            hit: dict[str, set[Any]] = {
                "none": set(),
                "own": {n},
                "shared": {"together"},
                "both": {n, "together"},
            }
            failed |= hit[tracked]
        else:
            expected.setdefault((task, target), []).append((stream, value))
    wires.travel(after)
    for target, inbox in wires.arrived.items():
        for task in (1, 2):
            got = [(source.stream, values[-1]) for values, source, _ in inbox if source.task == task]
            assert got == expected.get((task, target), [])
    assert len(wires.refused) == sum("bad" in emit[3] for emit in emits)
    for tree in trees.values():
        close_edges(wires.home, tree)
    wires.ack_all()
    ended = Counter(tree.message_id for tree in wires.account.ended)
    assert ended == Counter(list(trees)), "each once"
    verdicts = {tree.message_id: tree.verdict.outcome for tree in wires.account.ended if tree.verdict}
    assert {n for n, outcome in verdicts.items() if outcome is Outcome.FAILED} == failed


def test_what_raises_at_times_arrives_when_it_does_not() -> None:
    """A frame is read twice before a tuple of it fails."""
    wires = Wires()
    for n in range(10):
        wires.emit(1, "default", 7, (Sometimes() if n == 5 else n,), wires.tree(n))
    LEFT[0] = 1
    wires.travel([])
    assert len(wires.arrived[7]) == 10 and wires.refused == []


def test_a_ctrl_c_is_not_a_bad_value() -> None:
    wires = Wires()
    wires.emit(1, "default", 7, (Raises(KeyboardInterrupt),), None)
    with pytest.raises(KeyboardInterrupt):
        wires.travel([])


def test_a_frame_that_is_no_pickle_fails_all_of_its_trees_once() -> None:
    """Nobody knows what was in it, and nobody waits for it for ever."""
    wires = Wires()
    trees = [wires.tree(n) for n in range(3)]
    for n in range(9):
        wires.emit(1, "default", 7, (Fine(n),), trees[n % 3])
    ((_, payload),) = wires.lanes.seal()
    unpack(payload[:-40], wires.there, _SOURCES, wires.arrived, None, wires.refuse)
    assert [target for target, _, _ in wires.refused] == [None] and "can't be read" in wires.refused[0][2]
    wires.ack_all()
    assert {tree.message_id for tree in wires.account.ended} == {0, 1, 2} and wires.account.pending == 0
    assert wires.there.statistics().parts == 0


class Colour(Enum):
    RED = 1
    BLUE = 2


def values_of_any_kind() -> Iterator[Any]:
    """Objects that pickle takes all of its ways for."""
    from array import array
    from collections import OrderedDict, defaultdict, deque
    from datetime import UTC, datetime
    from decimal import Decimal
    from fractions import Fraction
    from pathlib import PurePosixPath
    from uuid import UUID

    import numpy as np
    import pandas as pd
    import pyarrow as pa

    def local(x: int) -> Any:
        class Local:
            def __init__(self, y: int) -> None:
                self.y, self.kind = y, type(self)

            def __eq__(self, other: object) -> bool:
                return type(other).__name__ == "Local" and other.y == self.y  # type: ignore[attr-defined]

            __hash__ = None  # type: ignore[assignment]

        return Local(x)

    yield from (
        None,
        True,
        1,
        1 << 80,
        1.5,
        2j,
        "text",
        b"bytes",
        bytearray(b"more"),
        (),
        [],
        {},
        set(),
        frozenset(),
    )
    yield from (
        range(3),
        slice(1, 2),
        ...,
        NotImplemented,
        int,
        len,
        Fine,
        [1, [2, [3]]],
        {1: {2: 3}},
        {1, 2},
        frozenset({1}),
    )
    yield from (
        OrderedDict(a=1),
        defaultdict(list, a=[1]),
        deque([1, 2], 5),
        Counter("storm"),
        array("d", [1.0, 2.0]),
    )
    yield from (
        datetime(2026, 1, 1, tzinfo=UTC),
        Decimal("1.5"),
        Fraction(1, 3),
        PurePosixPath("/a/b"),
        UUID(int=7),
    )
    yield from (
        np.arange(5),
        np.float64(2.5),
        pd.Timestamp("2026-01-01"),
        pa.array([1, None]),
        pa.schema([("a", pa.int64())]),
    )
    yield from (
        ValueError("plain"),
        KeyError("key"),
        Outcome.FAILED,
        local(3),
        Colour.RED,
    )
    yield Verdict(Outcome.FAILED, "a dataclass")


def test_values_that_can_be_read_are_read_alike() -> None:
    """By the reader of damaged frames: its own steps do what the unpickler in C does."""
    values = list(values_of_any_kind())
    read = salvage(cloudpickle.dumps(values, 5))
    assert len(read.whole) == len(values)
    for before, after in zip(values, read.whole, strict=True):
        assert read.damage_of(after) is None, before
        assert type(after).__qualname__ == type(before).__qualname__
        assert repr(after) == repr(before) or after == before


def test_who_contains_himself_is_read() -> None:
    recursive: list[Any] = [1]
    recursive.append(recursive)
    tree = Node("root", Node("left"), Node("right"))
    read = salvage(pickle.dumps([recursive, tree]))
    assert read.whole[0][1] is read.whole[0] and read.whole[1].children[0].parent is read.whole[1]
    assert all(read.damage_of(value) is None for value in read.whole)


def test_damage_reaches_all_that_can_be_reached_from_it() -> None:
    """A sibling of what is damaged knows its parent, and so has lost a part of itself."""
    root = Node("root", Node("fine"), Raises(ValueError, "no"))
    alone = Node("alone")
    read = salvage(pickle.dumps([root.children[0], alone, root]))
    assert [read.damage_of(value) is None for value in read.whole] == [False, True, False]


def test_damage_in_a_class_of_a_script_is_seen() -> None:
    """Such a class is made first and filled later, by a function whose result nobody looks at."""

    def make() -> Any:
        class OfAScript:
            table = Raises(ValueError, "no table")

        return OfAScript()

    read = salvage(cloudpickle.dumps([make(), Fine(1)], 5))
    assert "ValueError: no table" in str(read.damage_of(read.whole[0]))
    assert read.damage_of(read.whole[1]) is None


@given(st.binary(max_size=200), st.integers(0, 300))
def test_it_raises_for_no_bytes(data: bytes, cut: int) -> None:
    salvage(data)
    salvage(pickle.dumps([Fine(1), Node("a", Node("b")), {1: (2, 3)}])[:cut])
