"""What is under way when a topology stops is worked off: calls, what they emit, and the tuples that wait (B1, J2, J15)."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event, Lock
from typing import Any

import pytest

from stormspark import AsyncBolt, AsyncSpout, Bolt, Fields, Spout, TopologyBuilder
from stormspark.connectors.files import FileSpout
from tests.unit.worker.executors.runs import Numbers, Repeat, Told, running, tasks, until

EXECUTORS, TUPLES = 4, 40
_go_on = Event()


class _Counts:
    """Counts its calls, in all copies."""

    begun: list[int] = []  # noqa: RUF012
    returned: list[int] = []  # noqa: RUF012
    lock = Lock()


class Waits(_Counts, Repeat):
    """Each call waits until the topology stops."""

    waits = True

    def execute(self, tup: Any) -> None:
        """Wait."""
        self.begun.append(tup[0])
        _go_on.wait(60)
        time.sleep(0.05)
        super().execute(tup)
        self.returned.append(tup[0])


class WaitsAsync(_Counts, AsyncBolt):
    """The same, on the event loop."""

    capacity = EXECUTORS

    async def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        """Keep the collector."""
        self.collector = collector

    async def execute(self, tup: Any) -> None:
        """Wait."""
        self.begun.append(tup[0])
        while not _go_on.is_set():
            await asyncio.sleep(0.001)
        await asyncio.sleep(0.05)
        self.collector.emit((tup[0],))
        self.returned.append(tup[0])

    def declare_output_fields(self, declarer: Any) -> None:
        """Declare one field."""
        declarer.declare("n")


class Last(Bolt):
    """Acks what it gets."""

    waits = False

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        """Keep the collector."""
        self.collector = collector

    def execute(self, tup: Any) -> None:
        """Ack."""
        self.collector.ack(tup)

    def declare_output_fields(self, declarer: Any) -> None:
        """Declare nothing."""


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("bolt", [Waits(), WaitsAsync()], ids=["threads", "event loop"])
def test_what_they_ack_is_in_the_summary_and_the_spout_hears_of_it(bolt: Any, workers: int) -> None:
    for seen in (_Counts.begun, _Counts.returned):
        seen.clear()
    _go_on.clear()
    told = Told("verdicts at a stop with calls")
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(list(range(TUPLES)), told))
    executors = EXECUTORS if isinstance(bolt, Waits) else 1
    builder.set_bolt("waits", bolt, executors).shuffle_grouping("numbers")
    builder.set_bolt("last", Last(), 2).shuffle_grouping("waits")
    topology = builder.create_topology("calls-at-a-stop")
    conf = {
        "topology.workers": workers,
        "stormspark.executor.threads": "auto",
    }  # `Last` is on the worker's thread
    with running(topology, **conf) as started:
        until(lambda: len(_Counts.begun) == EXECUTORS)
        limit_waiting = started.workers.limit_waiting

        def limit_and_go_on() -> None:
            limit_waiting()
            _go_on.set()

        started.workers.limit_waiting = limit_and_go_on  # type: ignore[method-assign]
    begun, returned = sorted(_Counts.begun), sorted(_Counts.returned)
    counts = started.statistics().components
    emitted = counts["numbers"].emitted
    assert begun == returned == list(range(emitted)), "tuples wait although there was time"
    assert (counts["waits"].executed, counts["waits"].acked) == (emitted, emitted)
    assert (counts["last"].executed, counts["numbers"].acked) == (emitted, emitted)
    assert sorted(told.all) == sorted(("ack", str(n)) for n in begun)


class Now(Numbers):
    """A number now and then, so that no tuples wait."""

    waits = True

    def next_tuple(self) -> None:
        """Wait, and emit."""
        time.sleep(0.003)
        super().next_tuple()


class Short(_Counts, AsyncBolt):
    """Calls of up to 18 ms, one at a time."""

    capacity = 1

    async def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        """Keep the collector."""
        self.collector = collector

    async def execute(self, tup: Any) -> None:
        """Wait for a while, and emit."""
        await asyncio.sleep(tup[0] % 7 * 0.003)
        self.collector.emit((tup[0],))
        self.returned.append(tup[0])

    def declare_output_fields(self, declarer: Any) -> None:
        """Declare one field."""
        declarer.declare("n")


@pytest.mark.slow
def test_calls_that_begin_and_end_in_the_last_round_are_taken_in_too() -> None:
    """At the end of that round no call is under way, but a tree that crosses workers is complete one round later."""
    for _ in range(12):
        _Counts.returned.clear()
        told = Told("verdicts at a stop with short calls")
        builder = TopologyBuilder()
        builder.set_spout("numbers", Now(list(range(10_000)), told))
        builder.set_bolt("short", Short(), 3).shuffle_grouping("numbers")
        builder.set_bolt("last", Last(), 3).shuffle_grouping("short")
        conf = {
            "topology.workers": 3,
            "topology.max.spout.pending": 200,
            "stormspark.executor.threads": "auto",
        }
        with running(builder.create_topology("short-calls"), **conf):
            until(lambda: len(_Counts.returned) > 20)
        acked = sorted(int(number) for _, number in told.all)
        assert acked == sorted(_Counts.returned)


class OwnThread(Repeat):
    """A call waits until the topology stops. A thread of the bolt's own emits in each round after that."""

    waits = True
    begun: list[Any] = []  # noqa: RUF012

    def execute(self, tup: Any) -> None:
        """Wait, and ack."""
        self.begun.append(self.collector)
        _go_on.wait(60)
        self.collector.ack(tup)


def test_a_stop_does_not_wait_for_emits_of_a_bolts_own_thread() -> None:
    """Such emits complete no tree, so no further round follows."""
    OwnThread.begun.clear()
    _go_on.clear()
    told, rounds = Told("verdicts beside a thread that emits for ever"), 0
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers([1, 2], told))
    builder.set_bolt("own", OwnThread()).shuffle_grouping("numbers")
    conf = {"stormspark.superstep.deadline.ms": 60_000, "stormspark.batch.target.ms": 60_000}
    with ThreadPoolExecutor(1) as thread, running(builder.create_topology("own-thread"), **conf) as started:
        (own,) = tasks(started, "own")
        until(lambda: OwnThread.begun and own.queue.waiting)
        limit_waiting, run_round = started.workers.limit_waiting, started.workers.run_round

        def limit_and_go_on() -> None:
            limit_waiting()
            _go_on.set()

        def emit_and_run_round(orders: Any) -> Any:
            nonlocal rounds
            rounds += (
                len(told.all) == 2
            )  # the spout has heard of all, but its last call may still be about to return
            assert rounds < 200, "the stop goes on for as long as the thread emits"
            thread.submit(OwnThread.begun[0].emit, (1,)).result()
            return run_round(orders)

        started.workers.limit_waiting = limit_and_go_on  # type: ignore[method-assign]
        started.workers.run_round = emit_and_run_round  # type: ignore[method-assign]
    assert told.all == [("ack", "1"), ("ack", "2")]
    assert started.error is None


@pytest.mark.parametrize("bolt", [Last(), Repeat()], ids=["worker's thread", "thread"])
def test_no_tick_comes_after_a_stop_has_begun(bolt: Any) -> None:
    """If calls for ticks last long, one would follow the other for as long as the stop works off what waits."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers([], Told("nothing")))
    builder.set_bolt("ticks", bolt).shuffle_grouping("numbers").add_configuration(
        "topology.tick.tuple.freq.secs", 1000
    )
    with running(
        builder.create_topology("ticks-at-a-stop"), **{"stormspark.executor.threads": "auto"}
    ) as started:
        (own,) = tasks(started, "ticks")
        started.workers.limit_waiting()
        own._tick()
    assert own.queue.executed + own.queue.waiting == 0


class Beside(Repeat):
    """Has a thread."""

    waits = True


class Loops(Last):
    """Passes what it gets on, also to itself."""

    def execute(self, tup: Any) -> None:
        """Emit and ack."""
        self.collector.emit(tup.values)
        self.collector.ack(tup)

    def declare_output_fields(self, declarer: Any) -> None:
        """Declare one field."""
        declarer.declare("n")


@pytest.mark.slow
def test_a_loop_on_the_workers_thread_gets_no_time_of_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls that have ended give those under way more time, but if there are none, no round follows."""
    monkeypatch.setattr("stormspark.worker.executors.executors.STOP_SECS", 1.0)
    rounds = 0
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers([1], Told("nothing")))
    builder.set_bolt("loops", Loops()).shuffle_grouping("numbers").shuffle_grouping("loops")
    builder.set_bolt("beside", Beside()).shuffle_grouping("loops")
    conf = {"stormspark.executor.threads": "auto", "stormspark.batch.target.ms": 20}
    with running(builder.create_topology("loop"), **conf) as started:
        (beside,) = tasks(started, "beside")
        until(lambda: beside.queue.executed > 10)
        run_round = started.workers.run_round

        def count_and_run(orders: Any) -> Any:
            nonlocal rounds
            rounds += started.workers.workers[0]._executors.has_worked_off
            return run_round(orders)

        started.workers.run_round = count_and_run  # type: ignore[method-assign]
    assert rounds <= 5  # a few take in what the last call has done


class Raises(Repeat):
    """Waits until the topology stops. Then every call raises."""

    waits = True
    begun: list[int] = []  # noqa: RUF012

    def execute(self, tup: Any) -> None:
        """Raise."""
        self.begun.append(tup[0])
        _go_on.wait(60)
        raise ValueError(tup[0])


def test_a_bolt_that_raises_gets_the_tuples_that_wait_behind() -> None:
    """Its instance stays, so it can execute them."""
    Raises.begun.clear()
    _go_on.clear()
    told = Told("verdicts of a bolt that raises at a stop")
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers([1, 2, 3], told))
    builder.set_bolt("raises", Raises()).shuffle_grouping("numbers")
    with running(builder.create_topology("raises-at-a-stop")) as started:
        (own,) = tasks(started, "raises")
        until(lambda: Raises.begun and own.queue.waiting == 2)
        limit_waiting = started.workers.limit_waiting

        def limit_and_go_on() -> None:
            limit_waiting()
            _go_on.set()

        started.workers.limit_waiting = limit_and_go_on  # type: ignore[method-assign]
    assert Raises.begun == [1, 2, 3] and not own.begins_no_call
    assert [what[:2] for what in told.all] == [("fail", "1"), ("fail", "2"), ("fail", "3")]
    assert started.error is None


class ForEver(Numbers):
    """Emits for ever in one call of next_tuple."""

    waits = True

    def next_tuple(self) -> None:
        """Emit for ever."""
        number = 0
        while True:
            number += 1
            self.collector.emit((number,), message_id=number)


class Slow(Repeat):
    """Takes its time."""

    waits = True

    def execute(self, tup: Any) -> None:
        """Wait a moment."""
        time.sleep(0.002)
        super().execute(tup)


@pytest.mark.slow
def test_a_call_that_emits_for_ever_gets_no_room_for_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """So the bolts work off what it has emitted."""
    monkeypatch.setattr("stormspark.worker.executors.spout_task.STOP_SECS", 0.0)  # it has lasted long enough
    builder = TopologyBuilder()
    builder.set_spout("for_ever", ForEver([], Told("verdicts of a call that emits for ever")))
    builder.set_bolt("slow", Slow()).shuffle_grouping("for_ever")
    with running(builder.create_topology("emits-for-ever")) as started:
        (slow,) = tasks(started, "slow")
        until(lambda: slow.queue.executed > 5)
    counts = started.statistics().components
    assert not slow.begins_no_call, "the stop has taken all of its time"
    assert counts["for_ever"].emitted == counts["slow"].acked


def test_beside_a_source_a_stop_waits_for_no_emit(tmp_path: Path) -> None:
    """Nothing is worked off there, so a call that waits in an emit never goes on."""
    builder = TopologyBuilder()
    builder.set_spout("lines", FileSpout(tmp_path, "text"))
    builder.set_spout("for_ever", ForEver([], Told("verdicts beside a source")))
    builder.set_bolt("last", Last()).shuffle_grouping("for_ever").shuffle_grouping("lines")
    with running(builder.create_topology("beside-a-source")) as started:
        (spout,) = tasks(started, "for_ever")
        until(lambda: spout.is_under_way and started.workers.workers[0]._executors.spouts_go_on)
        started.workers.limit_waiting()
        assert spout.is_under_way and not started.workers.workers[0]._executors.spouts_go_on


class SendsOnLoop(AsyncSpout):
    """Emits numbers for ever, and counts them."""

    sent = 0

    async def open(self, conf: Any, context: Any, collector: Any) -> None:
        """Keep the collector."""
        self.collector = collector

    async def next_tuple(self) -> None:
        """Emit."""
        SendsOnLoop.sent += 1
        self.collector.emit((SendsOnLoop.sent,), message_id=SendsOnLoop.sent)

    def declare_output_fields(self, declarer: Any) -> None:
        """Declare one field."""
        declarer.declare("n")


@pytest.mark.parametrize("workers", [1, 2])
def test_what_coroutines_of_a_spout_have_emitted_is_worked_off(workers: int) -> None:
    """B3: up to a hundred emits wait for the worker's thread at any time, also between its last round and the stop."""
    for _ in range(5):
        SendsOnLoop.sent = 0
        builder = TopologyBuilder()
        builder.set_spout("numbers", SendsOnLoop())
        builder.set_bolt("last", Last(), 2).shuffle_grouping("numbers")
        with running(builder.create_topology("on-loop"), **{"topology.workers": workers}) as started:
            until(lambda: SendsOnLoop.sent > 500)
        numbers = started.statistics().components["numbers"]
        assert (numbers.emitted, numbers.acked, numbers.pending) == (SendsOnLoop.sent, SendsOnLoop.sent, 0)


class Burst(Spout):
    """Emits thousands of numbers in one call, which is suspended meanwhile."""

    waits = False
    calls = 0

    def open(self, conf: Any, context: Any, collector: Any) -> None:
        """Keep the collector."""
        self.collector = collector

    def next_tuple(self) -> None:
        """Emit them."""
        Burst.calls += 1
        for number in range(3000):
            self.collector.emit((number,), message_id=number)

    def declare_output_fields(self, declarer: Any) -> None:
        """Declare one field."""
        declarer.declare(Fields("n"))


def test_a_next_tuple_that_is_suspended_emits_the_rest_and_no_other_call_begins() -> None:
    """B3: its limit is a hundred per round at first."""
    for _ in range(3):
        Burst.calls = 0
        builder = TopologyBuilder()
        builder.set_spout("numbers", Burst())
        builder.set_bolt("last", Last()).shuffle_grouping("numbers")
        with running(builder.create_topology("burst"), **{"stormspark.executor.threads": "auto"}) as started:
            until(lambda: Burst.calls)
        numbers = started.statistics().components["numbers"]
        assert numbers.emitted == numbers.acked == 3000 * Burst.calls and not numbers.pending
