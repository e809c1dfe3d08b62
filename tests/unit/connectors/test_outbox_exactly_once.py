"""The outbox of a sink: what is committed is delivered once and in order, whatever dies and whatever refuses."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from stormspark.checkpoint.key_value_store import KeyValueStore
from stormspark.connectors import Outbox
from stormspark.errors import UnavailableError


class Destination:
    """Has a marker beside what it has; refuses when told so, before or after it has taken a parcel."""

    def __init__(self) -> None:
        self.marker = -1
        self.has: list[str] = []
        self.refuses: str | None = None

    def send(self, txid: int, parcel: list[str]) -> None:
        if self.marker >= txid:
            return
        if self.refuses == "before":
            raise OSError("away")
        self.has += parcel
        self.marker = txid
        if self.refuses == "after":
            raise OSError("the answer is lost")


class Sink(RuleBasedStateMachine):
    """C42: batches that commit or not, processes that die between any two steps, a destination that comes and goes."""

    @initialize()
    def begin(self) -> None:
        self.now = 0.0
        self.txid, self.drawn = 0, 0
        self.destination = Destination()
        self.committed: list[str] = []
        self.names: set[str] = set()
        self.table: dict[Any, Any] = {}
        self.restart()

    @rule()
    def restart(self) -> None:
        self.store = KeyValueStore()
        for key, value in self.table.items():
            self.store.put(key, value)
        self.store.prepare_commit(0)
        self.store.commit(0)
        self.outbox: Outbox[list[str]] = Outbox(self.store, self.destination.send, clock=lambda: self.now)

    def save(self) -> list[str]:
        self.drawn += 1  # another attempt at a batch may bring other things
        parcel = [f"{self.txid}/{self.drawn}"]
        self.outbox.save(self.txid, parcel if self.drawn % 3 else None, 1)
        return parcel if self.drawn % 3 else []

    @rule()
    def aborted(self) -> None:
        self.save()
        self.restart()

    @rule(told=st.booleans())
    def batch(self, told: bool) -> None:
        parcel = self.save()
        self.table, self.committed = dict(self.store), self.committed + parcel
        self.names.add(self.outbox.name)
        self.txid += 1
        if not told:
            self.restart()
            return
        try:
            self.outbox.deliver(self.txid - 1)
        except OSError:
            assert self.destination.refuses

    @rule(how=st.sampled_from([None, "before", "after"]))
    def refuse(self, how: str | None) -> None:
        self.destination.refuses = how
        self.now += 10

    @invariant()
    def what_is_there_is_committed_in_order_and_once(self) -> None:
        has = self.destination.has
        assert has == self.committed[: len(has)]
        assert len(self.names) <= 1

    def teardown(self) -> None:
        if hasattr(self, "txid"):
            self.destination.refuses = None
            for _ in range(2):
                self.now += 10
                self.batch(told=True)
            assert self.destination.has == self.committed
            assert len(self.table) <= 2  # its name, and the last batch's parcel


TestSink = Sink.TestCase


def test_more_than_may_wait_makes_the_batch_fail_and_holds_nothing_back_that_is_committed() -> None:
    """C42: a batch waits for the destination, then it fails; when the destination is back all is delivered in order."""
    now = [0.0]
    destination = Destination()
    destination.refuses = "before"

    def sleep(seconds: float) -> None:
        now[0] += seconds

    store = KeyValueStore()
    outbox: Outbox[list[str]] = Outbox(
        store, destination.send, most_bytes=25, patience_secs=30, clock=lambda: now[0], sleep=sleep
    )
    for txid in range(2):
        outbox.save(txid, [str(txid)], 10)
        now[0] += 60
        with pytest.raises(OSError, match="away"):
            outbox.deliver(txid)
    with pytest.raises(UnavailableError, match="outputs of 2 batches, 20 bytes, wait"):
        outbox.save(2, ["2"], 10)
    assert now[0] >= 150
    destination.refuses = None
    outbox.save(2, ["2"], 10)
    assert destination.has == ["0", "1"]
    outbox.deliver(2)
    assert destination.has == ["0", "1", "2"] and outbox.waiting == 0


def test_a_parcel_larger_than_all_that_may_wait_is_delivered_all_the_same() -> None:
    """A parcel that is larger than the outbox's bound is delivered all the same (C42)."""
    destination = Destination()
    outbox: Outbox[list[str]] = Outbox(KeyValueStore(), destination.send, most_bytes=1)
    outbox.save(0, ["a"], 100)
    outbox.deliver(0)
    assert destination.has == ["a"]


def test_a_destination_that_refuses_is_left_alone_for_longer_and_longer() -> None:
    """C42: not each of many short batches waits for it."""
    now, tries = [0.0], [0]

    def send(txid: int, parcel: str) -> None:
        tries[0] += 1
        raise OSError("away")

    outbox: Outbox[str] = Outbox(KeyValueStore(), send, clock=lambda: now[0])
    for txid in range(300):
        outbox.save(txid, "x", 1)
        now[0] += 0.1
        with contextlib.suppress(OSError):
            outbox.deliver(txid)
    assert 8 <= tries[0] <= 14
