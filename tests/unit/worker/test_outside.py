"""Bolts that have something at work outside of their worker: they are given what they have room for, waited for, and let go."""

from __future__ import annotations

import fcntl
import os
import resource
import select
from typing import Any

import pytest

from stormspark import Bolt, TopologyBuilder
from stormspark.api import TICK_SOURCE, SourceSpout
from stormspark.errors import FailedException
from stormspark.local import LocalCluster, submit
from stormspark.spi import KeepsOutside, WorksOutside
from tests.unit.worker.components import Script
from tests.unit.worker.executors.runs import until
from tests.unit.worker.rig import Rig, two

ROWS = [(n,) for n in range(20)]


class Outside(Bolt, WorksOutside):
    """What it executes is at work until it is taken in; two tuples at a time, of which one is done by each `take_in`.

    It says nothing while ``closed``: then it is waited for in vain. Raises in `take_in` at the numbers in ``raises``, once each.
    """

    closed = False

    def __init__(self, raises: tuple[int, ...] = ()) -> None:
        self.raises = set(raises)

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector = collector
        self.context = context
        self.at_work: list[Any] = []
        self.read, self.write = os.pipe()
        self.let_go_calls = self.in_vain = self.sent = 0
        RUNNING.append(self)

    def execute(self, tup: Any) -> None:
        assert self.room > 0
        self.at_work.append(tup)

    @property
    def room(self) -> int:
        return 2 - len(self.at_work)

    @property
    def outside(self) -> int:
        return len(self.at_work)

    def fileno(self) -> int:
        return self.read

    def send(self) -> None:
        self.sent += 1
        if not Outside.closed:
            os.write(self.write, b"x" * len(self.at_work))

    def take_in(self) -> int:
        if not select.select([self.read], [], [], 0)[0]:
            self.in_vain += 1
            return 0
        os.read(self.read, 1)
        if not self.at_work:
            return 0
        tup = self.at_work[0]
        if tup[0] in self.raises and tup[0] not in RAISED:
            RAISED.add(tup[0])
            raise KeyError(tup[0])
        del self.at_work[0]
        self.collector.ack(tup)
        return 1

    def let_go(self) -> None:
        self.let_go_calls += 1
        self.at_work.clear()
        for file in (self.read, self.write):
            if file >= 0:
                os.close(file)
        self.read = self.write = -1


class Keeping(Outside, KeepsOutside):
    """The same, which is given what tuples are made of, some at a time; raises for the numbers in ``refuses``."""

    def __init__(self, raises: tuple[int, ...] = (), refuses: tuple[int, ...] = ()) -> None:
        super().__init__(raises)
        self.refuses = set(refuses)

    def connected(self, sender: Any, ack: Any) -> None:
        assert sender("nothing") is None
        self.ack = ack

    def execute_all(self, given: Any, now: float) -> int:
        assert 0 < len(given) <= self.room
        for taken, one in enumerate(given):
            if one[0][0] in self.refuses:
                if taken:
                    return taken
                raise FailedException(one[0][0])
            self.at_work.append(one)
        return len(given)

    def kept(self) -> list[tuple[Any, float]]:
        return [(one, 7.0) for one in self.at_work]

    def take_in(self) -> int:
        while select.select([self.read], [], [], 0)[0]:
            os.read(self.read, 1)
        if not self.at_work:
            return 0
        if (number := self.at_work[-1][0][0]) in self.raises and number not in RAISED:
            RAISED.add(number)
            raise KeyError(number)
        done, self.at_work = self.at_work, []
        self.ack(done)
        return len(done)


class Hung(Outside):
    """Nothing ever comes of it."""

    def send(self) -> None:
        self.sent += 1


class Quiet(Outside):
    """It waits for no answers."""

    waits_for_answer = False


def heard(rig: Rig, what: str) -> list[int]:
    """The ids of the messages that the spout heard this of."""
    return sorted(message[1] for message in rig.users("a")[0].heard if message[0] == what)


RUNNING: list[Outside] = []
RAISED: set[int] = set()


def setup_function() -> None:
    RUNNING.clear()
    RAISED.clear()
    Outside.closed = False


def test_it_is_given_what_it_has_room_for_and_waited_for() -> None:
    """F3, I14: the rest waits in its queue; one batch does them all."""
    for workers in (1, 2):
        rig = Rig(two(Outside(), ROWS), workers)
        rig.batches(2)
        assert heard(rig, "ack") == list(range(20))
        (task,) = rig.tasks("b")
        assert task.counters.executed == 20
        rig.cluster.abandon()


class ManyFiles(Outside):
    """In a process that has so many files open that `select.select` takes no further one."""

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        super().prepare(conf, context, collector)
        low, self.read = self.read, fcntl.fcntl(self.read, fcntl.F_DUPFD, 1500)
        os.close(low)

    def take_in(self) -> int:
        poll = select.poll()
        poll.register(self.read, select.POLLIN)
        if not poll.poll(0):
            self.in_vain += 1
            return 0
        os.read(self.read, 1)
        self.collector.ack(self.at_work.pop(0))
        return 1


def test_it_is_waited_for_in_a_replay_too_whatever_the_number_of_its_file() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard not in (-1, resource.RLIM_INFINITY) and hard < 2000:
        pytest.skip("this host lets a process have too few files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2000), hard))
    try:
        rig = Rig(two(ManyFiles(), []), 1)
        rig.batches(1)
        (bolt,), (task,) = RUNNING, rig.tasks("b")
        task.execute_one(((7,), TICK_SOURCE, None))
        while task.outside:
            task.take_in_soon()
        assert (bolt.outside, bolt.in_vain) == (0, 0)
        rig.cluster.abandon()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.slow
def test_what_is_not_done_counts_as_waiting_and_goes_on_in_a_later_batch() -> None:
    """F3: a batch does not wait for ever; what is outside is in the backlog and in what backpressure hears of."""
    Outside.closed = True
    rig = Rig(two(Outside(), ROWS), 1)
    report = rig.cluster.run_batch()[0]
    (bolt,) = RUNNING
    assert bolt.in_vain > 0
    assert report.backlog == 20
    (task,) = rig.tasks("b")
    assert report.loads[task.id].queued == 20  # type: ignore[union-attr]
    Outside.closed = False
    bolt.send()
    rig.batches(1)
    assert len(heard(rig, "ack")) == 20
    assert rig.cluster.run_batch()[0].backlog == 0
    rig.cluster.abandon()


@pytest.mark.slow
def test_what_asks_nothing_goes_on_while_another_one_asks_or_hangs() -> None:
    """F3, I14: what comes of it is taken in some milliseconds later, and its tuples after that."""
    builder = TopologyBuilder()
    builder.set_spout("a", Script(ROWS))
    builder.set_bolt("b", Hung()).shuffle_grouping("a")
    builder.set_bolt("c", Quiet()).shuffle_grouping("a")
    rig = Rig(builder, 1)
    rig.batches(2)
    (hung,), (quiet,) = rig.tasks("b"), rig.tasks("c")
    assert quiet.counters.acked == 20
    assert (hung.counters.executed, hung.counters.acked) == (2, 0)
    rig.cluster.abandon()


def test_what_it_raises_begins_its_task_anew_and_lets_the_old_instance_go() -> None:
    """B14, W22: as if execute had raised; what it had at work fails."""
    rig = Rig(two(Outside(raises=(7,)), ROWS), 1)
    rig.batches(2)
    first, second = RUNNING
    assert (first.let_go_calls, second.let_go_calls) == (1, 0)
    failed = heard(rig, "fail")
    assert 7 in failed and len(failed) <= 2
    assert sorted([*heard(rig, "ack"), *failed]) == list(range(20))
    assert "KeyError: 7" in rig.errors[0]
    rig.cluster.abandon()
    assert second.let_go_calls == 1


def test_one_that_keeps_its_tuples_settles_many_at_a_time() -> None:
    """E5, B14, W22: each tuple once, with the counts of one that does so one by one, ticks left out (J15)."""
    rig = Rig(two(Keeping(), ROWS), 1, topology_tick_tuple_freq_secs=1)
    rig.advance(0, 2)
    rig.advance(5, 2)
    (task,) = rig.tasks("b")
    assert heard(rig, "ack") == list(range(20))
    assert (task.counters.executed, task.counters.acked, task.counters.failed) == (20, 20, 0)
    rig.cluster.abandon()


def test_what_it_refuses_fails_alone_and_what_it_keeps_fails_with_it() -> None:
    """C5, B14: a tuple that raises does so at its place in the chunk; who held what is known (W4)."""
    rig = Rig(two(Keeping(refuses=(4, 5, 18)), ROWS), 1)
    rig.batches(2)
    assert heard(rig, "fail") == [4, 5, 18]
    assert heard(rig, "ack") == [n for n in range(20) if n not in (4, 5, 18)]
    rig.cluster.abandon()
    Outside.closed = True
    rig = Rig(two(Keeping(raises=(1,)), ROWS[:2]), 1)
    rig.batches(1)
    (task,) = rig.tasks("b")
    assert [(tup.values, since) for tup, since in task.held()] in ([], [((0,), 7.0), ((1,), 7.0)])
    assert heard(rig, "fail") == [0, 1] and task.counters.failed == 2
    rig.cluster.abandon()


def test_to_execute_is_no_success() -> None:
    """W22: only what is done ends a row of errors; so one that never gets anything done stops the topology."""
    rig = Rig(two(Outside(raises=tuple(range(20))), ROWS), 1, stormspark_task_max_restarts_in_row=3)
    rig.batches(1)
    (task,) = rig.tasks("b")
    assert task.fatal is not None and "raised 4 times in a row" in task.fatal.text
    rig.cluster.abandon()


def test_a_batch_that_is_a_transaction_ends_when_nothing_is_at_work() -> None:
    """C39: rounds until then."""
    builder = TopologyBuilder()
    builder.set_spout("a", Script(ROWS))
    builder.set_bolt("b", Outside()).shuffle_grouping("a")
    rig = Rig(builder, 1, stormspark_exactly_once=True)
    report = rig.cluster.run_batch()[0]
    assert report.backlog == 0 and not RUNNING[-1].at_work
    rig.batches(1)
    assert len(heard(rig, "ack")) == 20
    rig.cluster.abandon()


def test_a_topology_that_is_killed_lets_it_go() -> None:
    """W9: and so does one that is stopped; whose cleanup it was."""
    for end in ("kill", "stop"):
        RUNNING.clear()
        with LocalCluster() as cluster:
            running = cluster.submit_topology("outside", {}, two(Outside(), ROWS).create_topology("outside"))
            running.run_until_idle()
            getattr(running, end)()
            running.wait(120)
        assert all(bolt.let_go_calls for bolt in RUNNING) and RUNNING


def test_its_latency_is_the_time_that_it_costs_the_worker_and_has_no_percentiles() -> None:
    """J15: the time of a hand-over is that of no tuple, and nobody knows which tuples the worker waited for."""
    rig = Rig(two(Outside(), ROWS), 1)
    rig.batches(20)
    (task,) = rig.tasks("b")
    task.waited(1.0)
    latency = task.counters.latency
    assert latency.count == task.counters.executed > 0
    assert latency.summary().mean == pytest.approx(1000 / latency.count, rel=0.5)
    assert (latency.summary().p50, latency.summary().p99) == (None, None)


def _stopped_in_the_middle(answers_in_round: int) -> Any:
    """Stop a topology that has two tuples outside. Their answers come in this round after the stop began."""
    Outside.closed = True
    running = submit(
        two(Outside(), ROWS).create_topology("outside"), conf={"stormspark.superstep.deadline.ms": 5}
    )
    until(lambda: RUNNING and RUNNING[-1].outside == 2)
    workers, rounds = running.workers, 0
    run_round = workers.run_round

    def count_rounds(orders: Any) -> Any:
        nonlocal rounds
        rounds += not orders.asks_spouts
        if rounds == answers_in_round:
            Outside.closed = False
            RUNNING[-1].send()
        return run_round(orders)

    workers.run_round = count_rounds  # type: ignore[method-assign]
    running.stop()
    return running.statistics().components


def test_a_stop_works_off_what_waits_for_what_is_outside() -> None:
    """B1, J2: however many rounds pass before an answer comes."""
    found = _stopped_in_the_middle(answers_in_round=4)
    assert (found["b"].executed, found["b"].acked, found["a"].acked) == (20, 20, 20)
    assert found["b"].not_returned == ()


def test_a_stop_gives_up_what_is_outside_after_some_time_and_names_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """B1, C1."""
    monkeypatch.setattr("stormspark.worker.executors.executors.STOP_SECS", 0.05)
    found = _stopped_in_the_middle(answers_in_round=-1)
    assert (found["b"].executed, found["b"].acked) == (2, 0)
    (call,) = found["b"].not_returned
    assert (call.code, call.tuples) == ("the child of b[0]", 2)
    assert "the child of b[0] has 2 tuples left after 0 s, and the topology stops without them" in caplog.text


class Poisoned(Outside):
    """What is at work ends each time that 7 is among it."""

    def take_in(self) -> int:
        if any(tup[0] == 7 for tup in self.at_work):
            raise KeyError(7)
        return super().take_in()


class Rows(SourceSpout):
    def __init__(self) -> None:
        super().__init__(["row"])

    def stream(self, spark: Any) -> Any:
        raise AssertionError


def test_in_a_transaction_what_was_at_work_when_it_failed_is_what_has_failed() -> None:
    """C44: nobody knows which tuple it was, and without a dead letter the topology would stop at a row for ever."""
    builder = TopologyBuilder()
    builder.set_spout("a", Rows())
    builder.set_bolt("b", Poisoned()).shuffle_grouping("a")
    rig = Rig(builder, 1, stormspark_exactly_once=True)
    (spout,) = rig.tasks("a")
    rig.cluster.add_rows(spout.id, 0, ROWS)
    rig.batches(2)
    assert spout.counters.dead_letters in (1, 2)  # 7, and what was beside it
    assert spout.counters.dead_letters + rig.tasks("b")[0].counters.acked >= len(ROWS)
    rig.cluster.abandon()
