"""Very many executors in one worker: they wait at once, advice says what it costs, and a refusal of the system is named (A16)."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from stormspark import BasicBolt, Topology, TopologyBuilder
from stormspark.errors import ComponentError
from stormspark.local import submit
from stormspark.plan import advice, plan_topology
from stormspark.worker import foreign_calls
from tests.unit.worker.executors.runs import Numbers, Told, running, until

MANY = 2_000


class Meeting:
    """Lets calls wait until all are there."""

    def __init__(self) -> None:
        self.lock, self.all_here, self.here = threading.Lock(), threading.Event(), 0

    def wait(self) -> None:
        """Come, and wait for the others."""
        with self.lock:
            self.here += 1
        if self.here == MANY:
            self.all_here.set()
        self.all_here.wait(60)


meeting = Meeting()


class Meets(BasicBolt):
    """Waits for all other executors."""

    waits = True

    def execute(self, tup: Any, collector: Any) -> None:
        """Wait."""
        meeting.wait()


def topology(executors: int, told: Told, values: int = 0) -> Topology:
    """Return a topology with so many executors that wait."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(list(range(values)), told))
    builder.set_bolt("meets", Meets(), executors).shuffle_grouping("numbers")
    return builder.create_topology("many")


@pytest.mark.slow
def test_two_thousand_executors_of_one_worker_wait_at_once() -> None:
    told = Told("verdicts of many")
    before = threading.active_count()
    with running(topology(MANY, told, MANY), **{"topology.workers": 1}) as local:
        until(lambda: len(told.all) == MANY or local.error)
        # By name, because a thread of an earlier test may end meanwhile.
        assert sum(thread.name.startswith("meets:") for thread in threading.enumerate()) == MANY
    assert local.error is None
    assert {verdict for verdict, *_ in told.all} == {"ack"}
    until(lambda: threading.active_count() <= before + 1)


@pytest.mark.parametrize(
    ("executors", "workers", "named"), [(501, 1, True), (500, 1, False), (1000, 2, False)]
)
def test_advice_names_a_worker_with_very_many_threads(executors: int, workers: int, named: bool) -> None:
    plan = plan_topology(topology(executors, Told("none")), {"topology.workers": workers})
    about_threads = [one for one in advice(plan) if "threads of their own" in one]
    assert len(about_threads) == named
    if named:
        assert (
            "bolt 'meets': worker 0 has 501 executors with threads of their own, 501 of them for this bolt"
            in (about_threads[0])
        )
        assert "Make the component asynchronous" in about_threads[0]


def refuse_after(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """Let only so many threads of the bolt's executors start, as a limit of the operating system does."""
    start, started = foreign_calls._start, []

    def start_some(thread: threading.Thread) -> None:
        if thread.name.startswith("meets:"):
            if len(started) == count:
                msg = "can't start new thread"
                raise RuntimeError(msg)
            started.append(thread)
        start(thread)

    monkeypatch.setattr(foreign_calls, "_start", start_some)


def test_if_the_system_refuses_a_thread_the_error_names_the_component_and_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    refuse_after(monkeypatch, 3)
    before = threading.active_count()
    with pytest.raises(ComponentError) as caught:
        submit(topology(5, Told("refused")))
    text = str(caught.value)
    assert "test_many_threads.py:" in text
    assert (
        "bolt 'meets': the operating system starts no thread for executor meets:3: can't start new thread"
        in text
    )
    assert "Its worker has 3 threads of executors already" in text
    for what in ("fewer executors", "set_num_tasks", "topology.workers", "asynchronous", "ulimit -u"):
        assert what in text
    until(lambda: threading.active_count() <= before)  # those that had started have ended
