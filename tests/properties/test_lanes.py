"""What goes into lanes comes out of the frame: all of it, in order, however many streams and tasks it is of."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from stormspark import Fields
from stormspark.acker import Outcome, Roots, SpoutAccount, Verdict
from stormspark.acker.ledger import Ledger
from stormspark.acker.tree import Tree
from stormspark.api import TupleSource
from stormspark.worker.tuples.edges import fail_roots
from stormspark.worker.tuples.lanes import Lanes
from stormspark.worker.tuples.unpacking import unpack

_SENDERS, _TARGETS, _STREAMS = (1, 2, 3), (7, 8), ("default", "late", "errors")
_SOURCES = {
    (task, stream): TupleSource("bolt", task, stream, Fields("value"))
    for task in _SENDERS
    for stream in _STREAMS
}


class Local:
    """Can't be pickled."""

    def __reduce__(self) -> Any:
        raise TypeError("not this one")


emits = st.lists(
    st.tuples(
        st.sampled_from(_SENDERS),
        st.sampled_from(_STREAMS),
        st.sampled_from(_TARGETS),
        st.sampled_from(["text", "also a text", 5, 2.5, None, "x" * 1000]),
        st.booleans(),
    ),
    max_size=60,
)


def connected(ledger: Ledger, complaints: list[str]) -> tuple[Lanes, dict[Any, list[Any]]]:
    """Lanes to worker 1, task 1 with one stream to task 7, all others with all streams to all."""

    def fail(task: int, roots: Iterable[Roots], reason: str) -> None:
        complaints.append(reason)
        for of_one in roots:
            fail_roots(ledger, of_one, Verdict(Outcome.FAILED, reason, "bolt", task))

    lanes = Lanes(1, ledger, fail)
    inboxes = {
        (sender, stream, target): lanes.inbox(sender, target)
        for sender, stream in _SOURCES
        for target in _TARGETS
        if (sender, target) != (1, 7) or stream == "default"
    }
    return lanes, inboxes


def ledger_of(worker: int) -> Ledger:
    random = Random(worker)
    return Ledger(worker, lambda n: [random.getrandbits(64) for _ in range(n)], None)


@given(emits=emits, unpicklable=st.sets(st.integers(0, 59), max_size=3))
def test_all_arrives_in_order_with_its_tree(emits: list[Any], unpicklable: set[int]) -> None:
    """E31, C8: of one task for one task, over all of its streams; what can't be pickled fails, and only that."""
    home, there, account = ledger_of(0), ledger_of(1), SpoutAccount(1)
    complaints: list[str] = []
    lanes, inboxes = connected(home, complaints)
    expected: dict[int, list[Any]] = {target: [] for target in _TARGETS}
    sent = []
    for number, (sender, stream, target, value, tracked) in enumerate(emits):
        inbox = inboxes.get((sender, stream, target))
        if inbox is None:
            continue
        tree = None
        if tracked:
            tree = Tree(account, number, 0.0)
            tree.count = 1
            home.begin(tree)
        bad = number in unpicklable
        inbox.append(((Local() if bad else value,), _SOURCES[sender, stream], tree))
        if not bad:
            expected[target].append((sender, stream, value))
        sent.append((tree, bad))
    assert lanes.is_full(1, 1) == bool(sent)
    sealed = lanes.seal()
    assert (len(lanes), lanes.tuples, lanes.bytes) == (0, 0, 0)
    arrived: dict[int, list[Any]] = {target: [] for target in _TARGETS}
    for count, payload in sealed:
        assert unpack(payload, there, _SOURCES, arrived) == count
    for target in _TARGETS:
        for task in _SENDERS:
            got = [(s.task, s.stream, *v) for v, s, _ in arrived[target] if s.task == task]
            assert got == [one for one in expected[target] if one[0] == task]
    assert len(complaints) == sum(bad for _, bad in sent)
    trees = sum(roots is not None for of in arrived.values() for _, _, roots in of)
    assert trees == sum(tree is not None and not bad for tree, bad in sent)
    for tree, bad in sent:
        if tree is not None and bad:
            assert tree.verdict is not None and "can't be pickled" in str(tree.verdict)


@given(emits=emits, looks=st.data())
def test_a_look_at_each_that_emitted_knows_all_that_waits(emits: list[Any], looks: st.DataObject) -> None:
    lanes, inboxes = connected(ledger_of(0), [])
    for sender, stream, target, value, _ in emits:
        if (inbox := inboxes.get((sender, stream, target))) is not None:
            inbox.append(((value,), _SOURCES[sender, stream], None))
            lanes.is_full(100, 1 << 20, sender)
            assert lanes.tuples == len(lanes)
        if looks.draw(st.integers(0, 9)) == 0:
            lanes.seal()
            assert lanes.tuples == lanes.bytes == len(lanes) == 0
    seen = lanes.tuples, lanes.bytes
    lanes.is_full(1, 1)
    assert (lanes.tuples, lanes.bytes) == seen, "to look at all of them finds nothing more"
    assert lanes.is_full(len(lanes) + 1, 1 << 40) is False
    assert lanes.is_full(len(lanes), 1 << 40) is True
