"""An attempt sees one life of each worker, or it fails; under any sequence of events."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

pytest.importorskip("pyspark")

from stormspark.spark.assignments import Assignments, SeatState
from stormspark.worker.link import Endpoint
from stormspark.worker.messages import ProcessId, Refused, StartHere, There

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
