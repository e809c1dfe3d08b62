"""What nimbus takes for dead, and what it waits for: a worker that reads its state, opens its tasks, or is silent."""

from __future__ import annotations

import errno
import pickle
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from stormspark.worker.host.connection import Connection

pytest.importorskip("pyspark")

from stormspark.checkpoint.redistribution import NotDealtOutError
from stormspark.checkpoint.shared_folder import SharedFolder, show_that_it_is_seen
from stormspark.errors import CheckpointError, ComponentError, StormsparkError, UnsupportedEnvironmentError
from stormspark.spark import nimbus as nimbus_module
from stormspark.spark.nimbus import Nimbus
from stormspark.worker.busy import Busy
from stormspark.worker.host.link import Endpoint, dial
from stormspark.worker.host.messages import (
    Beat,
    Closed,
    HeardOfCommit,
    Hello,
    Locate,
    Lost,
    Offer,
    Places,
    ProcessId,
    Ready,
    Refused,
    Sees,
    StartFailed,
    StartHere,
    There,
    Welcome,
)

HERE = Endpoint("/requests")


class Time:
    """`time.monotonic`, plus what a test adds."""

    def __init__(self) -> None:
        self.more = 0.0

    def monotonic(self) -> float:
        return time.monotonic() + self.more


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Time:
    clock = Time()
    monkeypatch.setattr(nimbus_module, "time", clock)
    return clock


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., Nimbus]]:
    made = []

    def new(**options: Any) -> Nimbus:
        settings: dict[str, Any] = {"lease_secs": 30.0, "start_timeout_secs": 60.0} | options
        workers = settings.pop("workers", 1)
        made.append(
            Nimbus(b"plan", workers, folder=tmp_path, address=None, on_trouble=lambda: None, **settings)
        )
        return made[-1]

    yield new
    for one in made:
        one.close()


class Fake:
    """A worker's process and the forwarder that asks for it."""

    def __init__(self, nimbus: Nimbus) -> None:
        self.nimbus = nimbus
        self.forwarder = self._dial()
        self.worker = self._dial()
        self._pool = ThreadPoolExecutor(1)

    def _dial(self) -> Connection:
        return dial(self.nimbus.endpoint, self.nimbus.key)

    def ask(self, attempt: int = 0) -> Any:
        self.forwarder.send(Locate(attempt, 0))
        return self.forwarder.recv()

    def waits(self) -> Future[Any]:
        return self._pool.submit(self.ask)

    def begin(self) -> None:
        order = self.ask()
        assert isinstance(order, StartHere)
        self.worker.send(Hello(0, order.incarnation, ProcessId("host", 1, 1)))
        assert isinstance(self.worker.recv(), Welcome)

    def beat(self, busy: Busy | None = None) -> None:
        self.worker.send(Beat(busy))
        self.worker.recv()

    def ready(self) -> None:
        self.worker.send(Ready(HERE))
        self.worker.recv()


def test_a_worker_may_open_its_tasks_for_as_long_as_it_beats(
    make: Callable[..., Nimbus], clock: Time
) -> None:
    """An hour in prepare, with a start timeout of a minute and a stuck timeout of five."""
    nimbus = make(stuck_timeout_secs=300.0)
    fake = Fake(nimbus)
    fake.begin()
    found = fake.waits()
    for seconds in range(0, 3600, 5):
        clock.more = seconds
        fake.beat(Busy("model[0]", float(seconds), opens=True))
        nimbus.look_for_silence()
    assert nimbus.broken is None and not found.done()
    fake.ready()
    assert found.result(10) == There(HERE, 0)


def test_a_worker_names_the_calls_that_had_not_returned_before_it_ends(make: Callable[..., Nimbus]) -> None:
    """B1, C1: nimbus lets the worker end once it has read them."""
    nimbus = make()
    fake = Fake(nimbus)
    fake.begin()
    calls = (Busy("model[0]", 35.0), Busy("model[1]", 11.0))
    fake.worker.send(Closed(calls))
    assert fake.worker.recv().exit
    assert nimbus.not_returned == [*calls]


def test_a_worker_tells_what_it_has_heard_of_the_last_commit_before_it_ends(
    make: Callable[..., Nimbus],
) -> None:
    """C44, J15: nimbus keeps the report, even if a last call never returns."""
    nimbus = make()
    fake = Fake(nimbus)
    fake.begin()
    fake.worker.send(HeardOfCommit(b"report"))
    fake.worker.send(Closed((), b"an error in cleanup"))
    assert fake.worker.recv().exit
    assert (nimbus.last_reports, nimbus.not_returned) == ([b"report", b"an error in cleanup"], [])


def test_it_knows_what_an_end_of_the_topology_would_cut_off(make: Callable[..., Nimbus]) -> None:
    """J2: a second Ctrl-C names these calls."""
    nimbus = make()
    fake = Fake(nimbus)
    fake.begin()
    calls = (Busy("ask[0]", 2.0, alone=True, others=19), Busy("slow[0]", 3.0, tuples=64))
    fake.worker.send(Beat(calls[0], calls))
    fake.worker.recv()
    assert nimbus.all_calls() == [calls[1], calls[0]] and nimbus.calls() == [calls[0]]
    fake.beat()
    assert nimbus.all_calls() == nimbus.calls() == []


def test_a_start_may_be_bounded(make: Callable[..., Nimbus]) -> None:
    nimbus = make(prepare_timeout_secs=100.0)
    fake = Fake(nimbus)
    fake.begin()
    fake.beat(Busy("model[0]", 99.0, opens=True))
    assert nimbus.broken is None
    fake.beat(Busy("model[0]", 101.0, opens=True))
    assert nimbus.broken is not None
    assert "the code of model[0]" in nimbus.broken and "stormspark.prepare.timeout.secs" in nimbus.broken


def test_a_call_that_does_not_return_later_is_bounded_by_another_time(make: Callable[..., Nimbus]) -> None:
    nimbus = make(stuck_timeout_secs=300.0, prepare_timeout_secs=10.0)
    fake = Fake(nimbus)
    fake.begin()
    fake.ready()
    fake.beat(Busy("model[0]", 299.0))
    assert nimbus.broken is None
    fake.beat(Busy("model[0]", 301.0))
    assert nimbus.broken is not None and "stormspark.stuck.timeout.secs" in nimbus.broken


def test_a_call_that_holds_up_its_own_executor_alone_costs_no_worker(
    make: Callable[..., Nimbus], caplog: pytest.LogCaptureFixture
) -> None:
    """B1, W6: as in Storm. It is named."""
    nimbus = make(stuck_timeout_secs=300.0, stuck_secs=10.0)
    fake = Fake(nimbus)
    fake.begin()
    fake.ready()
    fake.beat(Busy("model[0]", 1000.0, alone=True))
    assert nimbus.broken is None
    assert (
        "the code of model[0] has not returned for 1000 s; only its own executor in worker 0" in caplog.text
    )


def test_a_topology_that_stops_waits_a_minute_for_a_call_that_holds_up_its_last_batch(
    make: Callable[..., Nimbus], clock: Time
) -> None:
    """B1, J2: whatever ``stormspark.stuck.timeout.secs`` allows while the topology runs."""
    nimbus = make(stuck_timeout_secs=0.0)
    fake = Fake(nimbus)
    fake.begin()
    fake.ready()
    fake.beat(Busy("model[0]", 1000.0))
    nimbus.limit_waiting()
    assert fake.worker.recv().stops
    clock.more += 59
    fake.beat(Busy("model[0]", 1059.0))
    assert nimbus.broken is None
    clock.more += 2
    fake.beat(Busy("model[0]", 30.0))
    assert nimbus.broken is None, "this call began after the stop"
    fake.beat(Busy("model[0]", 61.0))
    assert nimbus.broken is not None and "the topology stops" in nimbus.broken


def test_a_process_that_never_says_hello_is_given_up(make: Callable[..., Nimbus]) -> None:
    fake = Fake(make(start_timeout_secs=0.2))
    assert isinstance(fake.ask(), StartHere)
    refused = Fake(fake.nimbus).waits().result(30)
    assert isinstance(refused, Refused) and "did not connect" in refused.reason


def _silent_for(nimbus: Nimbus, clock: Time, seconds: float) -> None:
    """The driver looks every second and hears nothing."""
    begun = clock.more
    while clock.more - begun < seconds:
        clock.more += 1.0
        nimbus.look_for_silence()


def test_silence_is_measured_from_what_was_heard_last(make: Callable[..., Nimbus], clock: Time) -> None:
    nimbus = make()
    fake = Fake(nimbus)
    fake.begin()
    fake.ready()
    nimbus.look_for_silence()
    _silent_for(nimbus, clock, 29)
    assert nimbus.broken is None
    _silent_for(nimbus, clock, 5)
    assert nimbus.broken is not None and "it was silent" in nimbus.broken


def test_imports_that_keep_the_interpreter_are_no_silence(make: Callable[..., Nimbus], clock: Time) -> None:
    """A worker that opens its tasks has the time of a start besides its lease."""
    nimbus = make()
    fake = Fake(nimbus)
    fake.begin()
    nimbus.look_for_silence()
    _silent_for(nimbus, clock, 80)
    assert nimbus.broken is None
    _silent_for(nimbus, clock, 15)
    assert nimbus.broken is not None and "it was silent" in nimbus.broken


@pytest.mark.parametrize("away", [40.0, 4000.0])
def test_a_driver_that_was_stopped_does_not_take_its_workers_for_silent(
    make: Callable[..., Nimbus], clock: Time, away: float
) -> None:
    nimbus = make()
    fake = Fake(nimbus)
    fake.begin()
    fake.ready()
    nimbus.look_for_silence()
    clock.more += away
    nimbus.look_for_silence()
    assert nimbus.broken is None
    _silent_for(nimbus, clock, 40)
    assert nimbus.broken is not None


def _fails_to_start(nimbus: Nimbus, error: BaseException) -> None:
    fake = Fake(nimbus)
    fake.begin()
    fake.worker.send(StartFailed(0, 0, f"Traceback: {error}", pickle.dumps(error)))
    fake.worker.recv()


def test_state_that_can_not_be_read_at_the_first_start_stops_the_topology(
    make: Callable[..., Nimbus],
) -> None:
    nimbus = make()
    _fails_to_start(nimbus, CheckpointError("the table is damaged"))
    assert isinstance(nimbus.error, CheckpointError)


def test_state_that_can_not_be_read_later_is_waited_for(make: Callable[..., Nimbus]) -> None:
    nimbus = make()
    nimbus.begin_attempt(1)
    fake = Fake(nimbus)
    order = fake.ask(attempt=1)
    fake.worker.send(Hello(0, order.incarnation, ProcessId("host", 1, 1)))
    fake.worker.recv()
    error = CheckpointError("the disk is away")
    fake.worker.send(StartFailed(0, order.incarnation, "Traceback", pickle.dumps(error)))
    assert fake.worker.recv().exit
    assert nimbus.error is None and nimbus.broken_outside
    assert nimbus.broken is not None and "the disk is away" in nimbus.broken


def test_state_that_can_not_be_read_after_a_rebalance_is_waited_for(make: Callable[..., Nimbus]) -> None:
    """J3: the topology has run, so an outage in this moment must not end it."""
    nimbus = make(is_first=False)
    _fails_to_start(nimbus, CheckpointError("the disk is away"))
    assert nimbus.error is None and nimbus.broken_outside
    assert nimbus.broken is not None and "the disk is away" in nimbus.broken


def test_keys_that_can_not_be_dealt_out_stop_the_topology_at_any_attempt(make: Callable[..., Nimbus]) -> None:
    """C36: they are the same the next time."""
    nimbus = make(is_first=False)
    _fails_to_start(nimbus, NotDealtOutError("the key 7"))
    assert isinstance(nimbus.error, NotDealtOutError)


def test_prepare_that_raises_stops_the_topology_at_any_attempt(make: Callable[..., Nimbus]) -> None:
    nimbus = make()
    nimbus.begin_attempt(1)
    fake = Fake(nimbus)
    order = fake.ask(attempt=1)
    fake.worker.send(Hello(0, order.incarnation, ProcessId("host", 1, 1)))
    fake.worker.recv()
    fake.worker.send(
        StartFailed(0, order.incarnation, "Traceback", pickle.dumps(ComponentError("no such table")))
    )
    assert fake.worker.recv().exit
    assert isinstance(nimbus.error, StormsparkError) and "no such table" in str(nimbus.error)


@pytest.mark.parametrize("attempt", [0, 3])
def test_a_host_that_has_no_memory_or_no_folder_for_a_worker_is_waited_for_once_workers_have_been_started(
    make: Callable[..., Nimbus], attempt: int
) -> None:
    """What a forwarder says: no worker has said hello."""
    nimbus = make()
    if attempt:
        nimbus.begin_attempt(attempt)
    fake = Fake(nimbus)
    order = fake.ask(attempt)
    text = str(OSError(errno.ENOMEM, "Cannot allocate memory"))
    fake.forwarder.send(StartFailed(0, order.incarnation, text, outside=True))
    assert isinstance(fake.forwarder.recv(), Refused)
    assert (nimbus.error is not None) is (attempt == 0)
    if attempt:
        assert nimbus.broken_outside and nimbus.broken is not None and text in nimbus.broken
        nimbus.begin_attempt(attempt + 1)
        assert isinstance(fake.ask(attempt + 1), StartHere)


def _shows(nimbus: Nimbus, attempt: int, sees: Sees) -> Nimbus:
    """A worker of that attempt says what it sees of the driver's folder."""
    if attempt:
        nimbus.begin_attempt(attempt)
    fake = Fake(nimbus)
    order = fake.ask(attempt)
    fake.worker.send(Hello(0, order.incarnation, ProcessId("host", 1, 1)))
    fake.worker.recv()
    fake.worker.send(sees)
    fake.beat()
    return nimbus


@pytest.fixture
def shared(tmp_path: Path) -> SharedFolder:
    return SharedFolder(tmp_path / "shared", "do without")


def test_a_folder_that_a_worker_does_not_see_at_the_first_start_stops_the_topology(
    make: Callable[..., Nimbus], shared: SharedFolder
) -> None:
    nimbus = _shows(make(shared=shared), 0, Sees("", "[Errno 116] Stale file handle"))
    assert isinstance(nimbus.error, UnsupportedEnvironmentError)


def test_a_folder_that_a_worker_does_not_see_later_is_waited_for(
    make: Callable[..., Nimbus], shared: SharedFolder
) -> None:
    nimbus = _shows(make(shared=shared), 1, Sees("", "[Errno 116] Stale file handle"))
    assert nimbus.error is None and nimbus.broken_outside
    assert nimbus.broken is not None and "Stale file handle" in nimbus.broken


@pytest.mark.parametrize("attempt", [0, 1])
def test_a_worker_that_has_another_folder_stops_the_topology_at_any_attempt(
    make: Callable[..., Nimbus], shared: SharedFolder, attempt: int
) -> None:
    nimbus = _shows(make(shared=shared), attempt, Sees("written-on-another-host"))
    assert isinstance(nimbus.error, UnsupportedEnvironmentError)
    assert "the driver does not see" in str(nimbus.error)


def test_a_worker_that_reads_what_the_driver_has_not_written_stops_the_topology_at_any_attempt(
    make: Callable[..., Nimbus], shared: SharedFolder
) -> None:
    Path(shared.place, "shown").write_text("another token")
    nimbus = _shows(make(shared=shared), 1, Sees("shown"))
    assert isinstance(nimbus.error, UnsupportedEnvironmentError)


def test_a_driver_whose_own_storage_is_away_waits_for_it(
    make: Callable[..., Nimbus], shared: SharedFolder
) -> None:
    shown = show_that_it_is_seen(shared.place)
    Path(shared.place).rename(Path(shared.place).with_name("away"))
    nimbus = _shows(make(shared=shared), 1, Sees(shown))
    assert nimbus.error is None and nimbus.broken_outside


@pytest.mark.parametrize("outside", [True, False])
def test_a_forwarder_says_whether_the_path_or_the_process_has_ended(
    make: Callable[..., Nimbus], outside: bool
) -> None:
    nimbus = make()
    fake = Fake(nimbus)
    fake.begin()
    fake.ready()
    fake.forwarder.send(Lost(0, 0, "its connection broke", outside))
    assert isinstance(fake.forwarder.recv(), Refused)
    assert nimbus.broken is not None and nimbus.broken_outside is outside


def test_a_worker_that_dies_while_it_opens_is_lost_at_once(make: Callable[..., Nimbus]) -> None:
    nimbus = make()
    fake = Fake(nimbus)
    fake.begin()
    found = fake.waits()
    fake.worker.close()
    refused = found.result(10)
    assert isinstance(refused, Refused) and "its process is gone (how it ended is at" in refused.reason
    assert "worker-0.out, in its folder for logs on host)" in refused.reason
    assert not nimbus.broken_outside


#: A task that hangs up has gone, and what it was to start is left to others.
_tasks: list[Connection] = []


def _offers(nimbus: Nimbus, executor: ProcessId, pool: ThreadPoolExecutor) -> Future[Any]:
    connection = dial(nimbus.endpoint, nimbus.key)
    _tasks.append(connection)

    def offer() -> Any:
        connection.send(Offer(0, executor))
        return connection.recv()

    return pool.submit(offer)


def test_executors_wait_for_each_other_and_share_the_workers(make: Callable[..., Nimbus]) -> None:
    """J23: three executors, one of them with two tasks that offer it; five workers."""
    nimbus = make(workers=5)
    nimbus.gather(3, 9, 60.0)
    with ThreadPoolExecutor(8) as pool:
        first = [_offers(nimbus, ProcessId("a", 1, 1), pool), _offers(nimbus, ProcessId("a", 1, 1), pool)]
        second = _offers(nimbus, ProcessId("a", 2, 1), pool)
        assert not any(one.done() for one in (*first, second)), "the third has not offered"
        third = _offers(nimbus, ProcessId("b", 3, 1), pool)
        shares = [len(first[0].result(10).orders) + len(first[1].result(10).orders)]
        shares += [len(second.result(10).orders), len(third.result(10).orders)]
        assert sorted(shares) == [1, 2, 2]
        assert nimbus.missing() == 0
        late = _offers(nimbus, ProcessId("b", 4, 1), pool)
        assert late.result(10) == Places(())


def test_an_executor_that_does_not_offer_is_not_waited_for_long(make: Callable[..., Nimbus]) -> None:
    nimbus = make(workers=2)
    nimbus.gather(2, 2, 0.3)
    with ThreadPoolExecutor(1) as pool:
        assert len(_offers(nimbus, ProcessId("a", 1, 1), pool).result(10).orders) == 2


def test_a_task_that_is_killed_before_it_starts_its_workers_leaves_them_to_others(
    make: Callable[..., Nimbus],
) -> None:
    nimbus = make(workers=2)
    nimbus.gather(1, 1, 60.0)
    connection = dial(nimbus.endpoint, nimbus.key)
    connection.send(Offer(0, ProcessId("a", 1, 1)))
    assert len(connection.recv().orders) == 2
    connection.close()
    answer = Fake(nimbus).waits().result(10)
    assert answer == StartHere(1, None)


def test_the_end_of_a_topology_ends_the_wait_of_executors(make: Callable[..., Nimbus]) -> None:
    nimbus = make(workers=2)
    nimbus.gather(2, 2, 60.0)
    with ThreadPoolExecutor(1) as pool:
        waits = _offers(nimbus, ProcessId("a", 1, 1), pool)
        nimbus.kill_workers()
        answer = waits.result(10)
    assert isinstance(answer, Refused) or not answer.orders


def test_two_tasks_of_one_executor_do_not_wait_for_another_one(make: Callable[..., Nimbus]) -> None:
    nimbus = make(workers=2)
    nimbus.gather(2, 2, 600.0)
    with ThreadPoolExecutor(2) as pool:
        both = [_offers(nimbus, ProcessId("a", 1, 1), pool) for _ in range(2)]
        assert sum(len(one.result(60).orders) for one in both) == 2


def test_tasks_that_come_again_wait_until_they_have_reached_all_executors(
    make: Callable[..., Nimbus],
) -> None:
    """J23: one that has registered and is starting up takes its first task late; the others do not take its share."""
    nimbus = make(workers=3)
    with ThreadPoolExecutor(2) as pool:
        for _ in range(2):
            nimbus.gather(2, 2, 600.0, again=True)
            vain = [_offers(nimbus, ProcessId("a", 1, 1), pool) for _ in range(2)]
            assert [one.result(60) for one in vain] == [Places(()), Places(())]
            assert nimbus.missing() == 3
        nimbus.gather(2, 2, 600.0, again=True)
        shares = [_offers(nimbus, ProcessId("a", executor, 1), pool) for executor in (1, 2)]
        assert sorted(len(one.result(60).orders) for one in shares) == [1, 2]
