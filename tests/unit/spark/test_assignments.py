"""An attempt sees one life of each worker, or it fails; under any sequence of events."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

pytest.importorskip("pyspark")

from stormspark.spark.assignments import Assignments, SeatState
from stormspark.worker.host.link import Endpoint
from stormspark.worker.host.messages import ProcessId, Refused, StartHere, There

WORKERS = 2


def test_one_forwarder_starts_a_worker_the_others_wait():
    assignments = Assignments(1)
    assert assignments.locate(0, 0) == StartHere(0, None)
    assert assignments.locate(0, 0) is None


def test_a_forwarder_that_goes_away_leaves_the_start_to_another():
    assignments = Assignments(1)
    assignments.locate(0, 0)
    assignments.promise_broken(0, 0)
    assert assignments.locate(0, 0) == StartHere(1, None)
    assert not assignments.hello(0, 0, ProcessId("host", 1, 1)), "what it started after all is not wanted"
    assert assignments.hello(0, 1, ProcessId("host", 2, 1))


def test_nothing_is_found_any_more_once_the_topology_ends():
    assignments = Assignments(1)
    assignments.end("stopped")
    assignments.end("killed")
    assert assignments.locate(0, 0) == Refused("stopped")


def executor(number: int, host: str = "host") -> ProcessId:
    return ProcessId(host, number, 1)


@given(
    workers=st.integers(1, 12),
    hosts=st.lists(st.sampled_from("abc"), min_size=1, max_size=6),
    lost=st.sets(st.integers(0, 11)),
    more=st.lists(st.sampled_from("abcd"), max_size=3),
)
def test_missing_workers_are_dealt_out_evenly(workers, hosts, lost, more):
    """J23: at the start, and again after some were lost, to executors that may be others; nobody who lives is moved."""
    assignments = Assignments(workers)
    executors = [executor(number, host) for number, host in enumerate(hosts)]
    dealt = assignments.deal(0, executors)
    shares = [len(orders) for orders in dealt.values()]
    assert sum(shares) == workers and max(shares) - min(shares) <= 1
    for one, orders in dealt.items():
        for worker, order in orders:
            assert assignments.hello(worker, order.incarnation, ProcessId(one.host, 100 + worker, 1), one)
            assignments.ready(worker, order.incarnation, Endpoint("/socket"))
    for worker in (gone := lost & set(range(workers))):
        assignments.lost(worker, 0, "killed")
    assignments.begin_attempt(1)
    assignments.validate()
    stayed = Counter(seat.executor for worker, seat in enumerate(assignments.seats) if worker not in gone)
    every = executors + [executor(100 + number, host) for number, host in enumerate(more)]
    again = assignments.deal(1, every)
    assert sorted(worker for orders in again.values() for worker, _ in orders) == sorted(gone)
    shares = [stayed[one] + len(again[one]) for one in every]
    highest = max([stayed[one] for one in every])
    assert max(shares) <= max(highest, -(-workers // len(every))), "whoever had most before has no more now"


def test_workers_of_one_host_are_spread_over_its_executors_and_hosts_come_first():
    """Two executors on host a, one on host b: b is not the last to be asked."""
    dealt = Assignments(2).deal(0, [executor(1, "a"), executor(2, "a"), executor(3, "b")])
    assert {one.host: [worker for worker, _ in orders] for one, orders in dealt.items() if orders} == {
        "a": [0],
        "b": [1],
    }


def test_nothing_is_dealt_out_once_the_attempt_is_over():
    assignments = Assignments(2)
    assert not any(assignments.deal(1, [executor(1)]).values())
    assignments.end("stopped")
    assert not any(assignments.deal(0, [executor(1)]).values())
    assert assignments.deal(0, []) == {}


class AssignmentsMachine(RuleBasedStateMachine):
    """Forwarders and workers do what they like, in any order, also too late."""

    def __init__(self):
        super().__init__()
        self.assignments = Assignments(WORKERS)
        self.lives: dict[tuple[int, int], set[int]] = {}  # (attempt, worker) -> incarnations that were found
        self.started: list[tuple[int, int]] = []

    @rule(late=st.integers(0, 2), worker=st.integers(0, WORKERS - 1))
    def locate(self, late, worker):
        attempt = self.assignments.attempt - late
        answer = self.assignments.locate(attempt, worker)
        if late:
            assert isinstance(answer, Refused)
        elif isinstance(answer, There):
            self.lives.setdefault((attempt, worker), set()).add(answer.incarnation)
        elif isinstance(answer, StartHere):
            assert (worker, answer.incarnation) not in self.started
            self.started.append((worker, answer.incarnation))

    @rule(data=st.data(), event=st.sampled_from(["hello", "ready", "lost", "promise_broken"]))
    def worker(self, data, event):
        if not self.started:
            return
        worker, incarnation = data.draw(st.sampled_from(self.started))
        arguments = {
            "hello": (ProcessId("host", incarnation + 1, 1),),
            "ready": (Endpoint(f"/{worker}-{incarnation}"),),
            "lost": ("killed",),
            "promise_broken": (),
        }[event]
        getattr(self.assignments, event)(worker, incarnation, *arguments)

    @rule()
    def next_attempt(self):
        self.assignments.begin_attempt(self.assignments.attempt + 1)

    @invariant()
    def valid(self):
        self.assignments.validate()

    @invariant()
    def one_life_an_attempt(self):
        assert all(len(incarnations) == 1 for incarnations in self.lives.values())

    @invariant()
    def a_lost_worker_breaks_the_attempt(self):
        lost = any(seat.state is SeatState.LOST for seat in self.assignments.seats)
        assert not lost or self.assignments.refusal(self.assignments.attempt) is not None


TestAssignments = AssignmentsMachine.TestCase
