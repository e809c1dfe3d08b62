"""A topology whose input has an end: it ends by itself, and what bolts hold comes out before."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, cast

import pytest

from stormspark import (
    AsyncBolt,
    AsyncSpout,
    BasicBolt,
    Bolt,
    Count,
    Duration,
    FailedException,
    Fields,
    OutputFieldsDeclarer,
    Spout,
    StatefulBolt,
    Topology,
    TopologyBuilder,
    TupleWindow,
    TwoPhaseStatefulComponent,
    WindowedBolt,
)
from stormspark.connectors import CountSyncPolicy, DeltaBolt, FileBolt, FileSpout
from stormspark.errors import InvalidTopologyError
from stormspark.local import LocalCluster, LocalTopology, SimulatedClock, submit
from stormspark.metrics.shortfalls import Kind, shortfalls
from stormspark.plan import plan_topology
from stormspark.plan.flushing import bolts_in_loops
from stormspark.ui.watch import Idleness
from tests.finite_components import Numbers, Parse, PerWindow
from tests.unit.worker.components import Call

ROWS = 400
WAIT_SECS = 300.0
out: list[tuple[Any, ...]] = []


@pytest.fixture(autouse=True)
def _nothing_is_out() -> None:
    out.clear()
    Later.given.clear()
    flushes.clear()


class Keep(Bolt):
    """Keeps what comes, and fails the first ``fails`` tuples."""

    waits = False

    def __init__(self, fails: int = 0) -> None:
        self.fails = fails

    def prepare(self, conf: Mapping[str, Any], context: Any, collector: Any) -> None:
        self.collector = collector

    def execute(self, tup: Any) -> None:
        if self.fails:
            self.fails -= 1
            self.collector.fail(tup)
        else:
            out.append(tuple(tup.values))
            self.collector.ack(tup)


class OnItsThread(Numbers):
    waits = True


class InCoroutines(AsyncSpout):
    async def open(self, conf: Mapping[str, Any], context: Any, collector: Any) -> None:
        self.collector = collector
        self.left = [*range(7)]

    async def next_tuple(self) -> None:
        await asyncio.sleep(0)
        if self.left:
            n = self.left.pop(0)
            self.collector.emit((n * 10, n), message_id=n)

    def is_done(self) -> bool:
        return not self.left

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("at", "n"))


def windowed(bolt: WindowedBolt, spout: Any, sink: Any = None, tasks: int = 1) -> Topology:
    """Numbers -> windows -> sink."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", spout)
    builder.set_bolt("windows", bolt, tasks).fields_grouping("numbers", Fields("n"))
    builder.set_bolt("sink", sink or Keep()).shuffle_grouping("windows")
    return builder.create_topology("finite")


def by_100() -> WindowedBolt:
    return PerWindow().with_tumbling_window(Duration(100)).with_timestamp_field("at")


def ended(topology: Topology, batches: int = 200, **conf: Any) -> LocalTopology:
    """Run the topology on a simulated clock until it has ended by itself."""
    settings = {key.replace("_", "."): value for key, value in conf.items()}
    running = LocalTopology(plan_topology(topology, settings), SimulatedClock())
    for _ in range(batches):
        if not running.wait(0):
            running.run_batch()
    assert running.wait(0), running.statistics()
    return running


# -- files, windows, a table -----------------------------------------------------------------------------------------


def files(folder: Path) -> Path:
    folder.mkdir()
    for number in range(4):
        rows = range(number, ROWS, 4)
        (folder / f"{number}.txt").write_text("".join(f"{10_000 + n * 125} {n}\n" for n in rows))
    return folder


def from_files(tmp_path: Path, sink: Any, **options: Any) -> Topology:
    builder = TopologyBuilder()
    builder.set_spout("lines", FileSpout(files(tmp_path / "files")))
    builder.set_bolt("parse", Parse(), 2).shuffle_grouping("lines")
    window = PerWindow().with_tumbling_window(Duration.seconds(10)).with_timestamp_field("at")
    builder.set_bolt("windows", window.with_lag(Duration.minutes(10))).global_grouping("parse")
    builder.set_bolt("sink", sink).global_grouping("windows")
    return builder.create_topology("files", options)


def rows_per_window() -> dict[int, int]:
    return dict(Counter(-(-(10_000 + n * 125) // 10_000) * 10_000 for n in range(ROWS)))


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("exactly_once", [False, True])
def test_what_is_there_goes_through_windows_into_a_table(
    tmp_path: Path, workers: int, exactly_once: bool
) -> None:
    """Issue 24: the rows of the last windows were lost, and the topology never ended."""
    from deltalake import DeltaTable

    conf = {"topology.workers": workers, "stormspark.exactly.once": exactly_once}
    topology = from_files(tmp_path, DeltaBolt(tmp_path / "table"), **conf)
    running = submit(topology, trigger="available-now")
    assert running.wait(WAIT_SECS)
    assert running.error is None
    table = DeltaTable(str(tmp_path / "table")).to_pyarrow_table()
    assert (
        dict(zip(*(table[name].to_pylist() for name in ("until", "rows")), strict=True)) == rows_per_window()
    )
    statistics = running.statistics()
    assert statistics.components["lines"].acked == ROWS and statistics.total("late") == 0


def test_new_files_are_left_out_with_available_now(tmp_path: Path) -> None:
    """`available-now` is what is there at the start."""
    topology = from_files(tmp_path, Keep())
    running = LocalTopology(plan_topology(topology), SimulatedClock(), available_now=True)
    (tmp_path / "files" / "later.txt").write_text("99 99\n")
    while not running.wait(0):
        running.simulated_clock.advance(1)
        running.run_batch()
    assert dict(out) == rows_per_window()


def test_the_user_ends_the_input_of_a_topology_without_an_end(tmp_path: Path) -> None:
    """`RunningTopology.end_input`, which ``--until-idle`` calls."""
    running = LocalTopology(plan_topology(from_files(tmp_path, Keep())), SimulatedClock())
    for _ in range(20):
        running.run_batch()
    assert not out and not running.wait(0)
    running.end_input()
    for _ in range(20):
        running.run_batch()
    assert running.wait(0) and dict(out) == rows_per_window()


def test_a_file_bolt_finishes_its_files(tmp_path: Path) -> None:
    """Without a sync, its tuples would be pending for ever."""
    sink = FileBolt(tmp_path / "out").with_sync_policy(CountSyncPolicy(10_000))
    running = ended(windowed(by_100(), Numbers(30), sink))
    assert running.statistics().components["numbers"].acked == 30
    lines = [line for path in (tmp_path / "out").iterdir() for line in path.read_text().splitlines()]
    assert len(lines) == 4


@pytest.mark.parametrize("exactly_once", [False, True])
def test_the_last_of_tumbling_windows_repeats_nothing(exactly_once: bool) -> None:
    """C33: seven rows in windows of three are in three windows, of three, three and one row."""
    bolt = PerWindow().with_tumbling_window(Count(3))
    ended(windowed(bolt, Numbers(7)), stormspark_exactly_once=exactly_once)
    assert [rows for _, rows in out] == [3, 3, 1]


# -- who says that the input has ended ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "spout", [Numbers(7), OnItsThread(7), InCoroutines()], ids=lambda one: type(one).__name__
)
def test_a_topology_ends_once_its_spouts_are_done(spout: Any) -> None:
    running = submit(windowed(by_100(), spout))
    assert running.wait(WAIT_SECS) and running.error is None
    assert sorted(out) == [(0, 1), (100, 6)]
    assert running.statistics().components["numbers"].acked == 7


class Silent(Numbers):
    is_done = Spout.is_done


def test_a_spout_that_does_not_say_so_goes_on() -> None:
    with LocalCluster(simulated_time=True) as cluster:
        running = cluster.submit_topology("silent", {}, windowed(by_100(), Silent(7)))
        running.advance_time(100)
        assert not running.wait(0)
        assert running.statistics().components["numbers"].pending == 7


def test_all_spouts_have_to_be_done() -> None:
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(7))
    builder.set_spout("silent", Silent(2))
    builder.set_bolt("sink", Keep()).shuffle_grouping("numbers").shuffle_grouping("silent")
    running = LocalTopology(plan_topology(builder.create_topology("t")), SimulatedClock())
    for _ in range(20):
        running.run_batch()
    assert not running.wait(0)
    running.stop()


def test_a_spout_that_is_deactivated_is_not_done() -> None:
    running = LocalTopology(plan_topology(windowed(by_100(), Numbers(7))), SimulatedClock(), active=False)
    for _ in range(10):
        running.run_batch()
    assert not running.wait(0)
    running.activate()
    for _ in range(20):
        running.run_batch()
    assert running.wait(0) and sorted(out) == [(0, 1), (100, 6)]


class Wrong(Numbers):
    """Its first answers are errors."""

    errors = 1_000

    def is_done(self) -> bool:
        if self.errors:
            self.errors -= 1
            msg = "no idea"
            raise ValueError(msg)
        return super().is_done()


class WrongOnItsThread(Wrong):
    waits = True


class WrongInCoroutines(InCoroutines):
    def is_done(self) -> bool:
        msg = "no idea"
        raise ValueError(msg)


@pytest.mark.parametrize(
    "spout", [Wrong(7), WrongOnItsThread(7), WrongInCoroutines()], ids=lambda one: type(one).__name__
)
def test_an_error_in_is_done_is_told_once_and_does_not_keep_the_topology_from_ending(spout: Any) -> None:
    """The spout counts as one that does not say whether it is done."""
    running = submit(windowed(by_100(), spout), trigger="available-now")
    assert running.wait(WAIT_SECS) and running.error is None
    assert sorted(out) == [(0, 1), (100, 6)]
    statistics = running.statistics().components["numbers"]
    assert statistics.errors == 1 and statistics.acked == 7
    for words in ("no idea", f"{__file__}:", "does not say whether it is done"):
        assert words in str(statistics.last_error)


def test_a_spout_whose_is_done_has_raised_is_asked_again() -> None:
    spout = Wrong(7)
    spout.errors = 3
    assert ended(windowed(by_100(), spout)).statistics().components["numbers"].errors == 1
    assert sorted(out) == [(0, 1), (100, 6)]


def test_an_error_in_is_done_does_not_end_the_input() -> None:
    """Rows may be left."""
    running = LocalTopology(plan_topology(windowed(by_100(), Wrong(1))), SimulatedClock())
    for _ in range(10):
        running.run_batch()
    assert not running.wait(0)
    running.stop()


def test_an_unknown_trigger_is_refused() -> None:
    with pytest.raises(
        InvalidTopologyError, match="trigger must be one of continuous, available-now, got 'once'"
    ):
        submit(windowed(by_100(), Numbers(1)), trigger="once")


# -- fails, and what is held -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 2])
def test_rows_of_a_window_that_fails_in_the_flush_come_again_and_are_not_late(workers: int) -> None:
    running = ended(windowed(by_100(), Numbers(25), Keep(fails=2)), topology_workers=workers)
    assert sorted(out) == [(0, 1), (100, 10), (200, 10), (300, 4)]
    statistics = running.statistics()
    assert statistics.total("late") == 0 and statistics.components["numbers"].failed > 0


class Later(Bolt):
    """Its results come from a thread, when the test calls `work` there. Those without anchors come after the ack."""

    waits = False
    #: The tuples that wait for the thread, each with its collector.
    given: ClassVar[list[tuple[Any, Any]]] = []

    def __init__(self, anchored: bool) -> None:
        self.anchored = anchored

    def prepare(self, conf: Mapping[str, Any], context: Any, collector: Any) -> None:
        self.collector = collector
        in_a_thread(lambda: None)  # so that the collector checks who calls it

    def execute(self, tup: Any) -> None:
        self.given.append((self.collector, tup))
        if not self.anchored:
            self.collector.ack(tup)

    def work(self) -> None:
        """Emit what was given so far."""
        while self.given:
            collector, tup = self.given.pop()
            collector.emit(tup.values, anchors=[tup] if self.anchored else [])
            if self.anchored:
                collector.ack(tup)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("at", "n"))


def in_a_thread(function: Callable[[], object]) -> None:
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()


class BatchesOf100(Bolt):
    waits = False

    def prepare(self, conf: Mapping[str, Any], context: Any, collector: Any) -> None:
        self.collector = collector
        self.held: list[Any] = []

    def execute(self, tup: Any) -> None:
        self.held.append(tup)

    def end_of_input(self) -> None:
        for tup in self.held:
            out.append(tuple(tup.values))
            self.collector.ack(tup)
        self.held.clear()
        if flushes and Later.given:
            in_a_thread(Later(flushes.pop()).work)


#: Whether the results that come during the first flush have anchors; empty if none comes then.
flushes: list[bool] = []


def results_come_later(anchored: bool) -> LocalTopology:
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(7))
    builder.set_bolt("later", Later(anchored)).shuffle_grouping("numbers")
    builder.set_bolt("batches", BatchesOf100()).shuffle_grouping("later")
    return LocalTopology(plan_topology(builder.create_topology("later")), SimulatedClock())


def test_results_of_a_bolts_thread_may_come_after_the_flush_of_the_bolt_behind_it() -> None:
    running = results_come_later(True)
    for _ in range(20):
        running.run_batch()
    assert not running.wait(0) and len(Later.given) == 7
    in_a_thread(Later(True).work)
    for _ in range(20):
        running.run_batch()
    assert running.wait(0) and len(out) == running.statistics().components["numbers"].acked == 7


@pytest.mark.parametrize("anchored", [True, False])
def test_results_of_a_bolts_thread_may_come_during_the_flush(anchored: bool) -> None:
    flushes[:] = [anchored]
    running = results_come_later(anchored)
    for _ in range(20):
        running.run_batch()
    assert running.wait(0) and len(out) == 7


def test_results_that_come_after_the_end_are_lost_and_told(caplog: pytest.LogCaptureFixture) -> None:
    """Nobody knows of them before: their tuples are acked."""
    running = results_come_later(False)
    for _ in range(20):
        running.run_batch()
    assert running.wait(0) and not out
    in_a_thread(Later(False).work)
    (said,) = [one.getMessage() for one in caplog.records if "own threads" in one.getMessage()]
    assert said.startswith(
        "later[0]: its own threads still emit, ack or fail tuples at the end of the topology"
    )


class Holds(Bolt):
    waits = False

    def prepare(self, conf: Mapping[str, Any], context: Any, collector: Any) -> None:
        self.held: list[Any] = []

    def execute(self, tup: Any) -> None:
        self.held.append(tup)


def test_what_a_bolt_still_holds_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    running = LocalTopology(plan_topology(windowed(by_100(), Numbers(7), Holds())), SimulatedClock())
    with caplog.at_level(logging.WARNING):
        for _ in range(20):
            running.run_batch()
    assert not running.wait(0)
    running.stop()
    (said,) = [one.getMessage() for one in caplog.records if "has ended" in one.getMessage()]
    assert "7 messages are pending (tuples: 2 that sink holds)" in said and "end_of_input" in said


class InBatches(AsyncBolt):
    """Calls wait until there are five of them, or until the input ends."""

    def __init__(self, *, ordered: bool = False, capacity: int = 100, raises: bool = False) -> None:
        self.ordered, self.capacity, self.raises = ordered, capacity, raises

    async def prepare(self, conf: Mapping[str, Any], context: Any, collector: Any) -> None:
        self.collector, self.waiting = collector, 0
        self.full = asyncio.Event()

    async def execute(self, tup: Any) -> None:
        full = self.full
        self.waiting += 1
        if self.waiting == 5:
            self.let_go()
        await full.wait()
        self.collector.emit(tuple(tup.values))

    def let_go(self) -> None:
        self.full.set()
        self.full, self.waiting = asyncio.Event(), 0

    async def end_of_input(self) -> None:
        await asyncio.sleep(0.01)
        if self.raises and not RaisesOnce.raised:
            RaisesOnce.raised.append(1)
            msg = "the first time"
            raise ValueError(msg)
        self.collector.emit((1_000, -1))
        self.let_go()

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("at", "n"))


@pytest.mark.parametrize(
    "bolt",
    [InBatches(), InBatches(ordered=True), InBatches(capacity=5), InBatches(raises=True)],
    ids=["plain", "ordered", "at its capacity", "raises once"],
)
def test_an_async_bolt_flushes_while_its_calls_wait_for_more(bolt: InBatches) -> None:
    """Windows behind it wait for its calls."""
    RaisesOnce.raised.clear()
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(12))
    builder.set_bolt("batches", bolt).shuffle_grouping("numbers")
    builder.set_bolt("windows", by_100()).shuffle_grouping("batches")
    builder.set_bolt("sink", Keep()).shuffle_grouping("windows")
    running = submit(builder.create_topology("batches"))
    assert running.wait(WAIT_SECS) and running.error is None
    assert sorted(out) == [(0, 1), (100, 10), (200, 1), (1000, 1)]
    statistics = running.statistics()
    assert statistics.components["numbers"].acked == 12
    assert statistics.components["batches"].restarts == bolt.raises
    if bolt.raises:
        assert "end_of_input" in str(statistics.components["batches"].last_error)


def test_end_of_input_of_an_async_bolt_must_be_a_coroutine() -> None:
    class Plain(InBatches):
        def end_of_input(self) -> None:  # type: ignore[override]
            pass

    with pytest.raises(InvalidTopologyError, match="end_of_input must be a coroutine"):
        TopologyBuilder().set_bolt("plain", Plain())


class RaisesOnce(PerWindow):
    """Raises in its first flush."""

    raised: list[int] = []  # noqa: RUF012 - of all instances

    def execute(self, window: TupleWindow) -> None:
        if not self.raised:
            self.raised.append(1)
            msg = "the first time"
            raise ValueError(msg)
        super().execute(window)


def test_a_bolt_that_raises_in_its_flush_starts_again_and_gets_its_tuples_again() -> None:
    RaisesOnce.raised.clear()
    bolt = RaisesOnce().with_tumbling_window(Duration(100)).with_timestamp_field("at")
    running = ended(windowed(bolt, Numbers(25)))
    assert sorted(out) == [(0, 1), (100, 10), (200, 10), (300, 4)]
    assert running.statistics().components["windows"].restarts == 1


class Writes(BasicBolt):
    """What it wrote last is lost if that raises, because its tuples are acked."""

    def __init__(self, raises: int) -> None:
        self.raises = raises

    def execute(self, tup: Any, collector: Any) -> None:
        pass

    def end_of_input(self, collector: Any) -> None:
        if len(RaisesOnce.raised) < self.raises:
            RaisesOnce.raised.append(1)
            msg = "the disk is full"
            raise OSError(msg)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        pass


class Delivers(StatefulBolt, TwoPhaseStatefulComponent):
    """Its table is away after the first batches."""

    def prepare(self, conf: Mapping[str, Any], context: Any, collector: Any) -> None:
        self.collector = collector

    def init_state(self, state: Any) -> None:
        self.state = state

    def execute(self, tup: Any) -> None:
        self.collector.ack(tup)

    def pre_save(self, checkpoint_id: int) -> None:
        pass

    def pre_restore(self, checkpoint_id: int) -> None:
        pass

    def post_save(self, checkpoint_id: int) -> None:
        msg = "the table is away"
        raise OSError(msg)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        pass


@pytest.mark.parametrize(
    ("bolt", "exactly_once", "found"),
    [
        (Writes(1), False, [Kind.UNWRITTEN]),
        (Writes(0), False, []),
        (Writes(1), True, []),
        (Delivers(), True, [Kind.UNWRITTEN]),
    ],
    ids=["raises", "writes", "the batch runs again", "can't deliver"],
)
def test_what_could_not_be_written_at_the_end_is_a_shortfall(
    bolt: Any, exactly_once: bool, found: list[Kind]
) -> None:
    """All messages are acked, so nothing else would say it."""
    RaisesOnce.raised.clear()
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(7))
    builder.set_bolt("bolt", bolt).shuffle_grouping("numbers")
    running = ended(builder.create_topology("writes"), stormspark_exactly_once=exactly_once)
    statistics = running.statistics()
    assert statistics.components["numbers"].acked == 7
    assert [one.kind for one in shortfalls(statistics)] == found


def test_windows_stay_open_if_the_setting_says_so() -> None:
    running = ended(windowed(by_100(), Numbers(25)), stormspark_flush_at_end=False)
    assert out == []
    assert running.statistics().components["numbers"].pending == 25


# -- late tuples, and streams that are idle ------------------------------------------------------------------------------


class Timed(Spout):
    """Emits rows (second, at): at the given second of simulated time."""

    waits = False

    def __init__(self, *rows: tuple[float, int]) -> None:
        self.rows = list(rows)

    def open(self, conf: Mapping[str, Any], context: Any, collector: Any) -> None:
        self.context, self.collector, self.failed = context, collector, []  # type: ignore[var-annotated]

    def next_tuple(self) -> None:
        if self.failed:
            at = self.failed.pop()
            self.collector.emit((at, at), message_id=at)
        elif self.rows and self.context.now_ms() >= self.rows[0][0] * 1000:
            at = self.rows.pop(0)[1]
            self.collector.emit((at, at), message_id=at)

    def fail(self, message_id: Any) -> None:
        self.failed.append(message_id)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("at", "n"))


def keep_late(bolt: Any, tup: Any) -> None:
    out.append(tup["late_tuple"]["n"])


def test_late_tuples_are_counted_and_go_to_their_stream() -> None:
    """C31: in the statistics and in JSON."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", Timed((0, 50), (0, 250), (2, 20), (3, 260)))
    builder.set_bolt("windows", by_100().with_late_tuple_stream("late")).shuffle_grouping("numbers")
    builder.set_bolt("late", Call(keep_late)).shuffle_grouping("windows", "late")
    with LocalCluster(simulated_time=True) as cluster:
        running = cluster.submit_topology("late", {}, builder.create_topology("late"))
        running.advance_time(5)
        statistics = running.statistics()
    assert out == [20]
    assert statistics.components["windows"].late == 1
    assert statistics.as_json()["components"]["windows"]["late"] == 1


def test_tuples_that_wait_for_a_watermark_do_not_time_out(caplog: pytest.LogCaptureFixture) -> None:
    """They would come again, behind the watermark, and the last window would have them twice or never (C30, E10)."""
    topology = windowed(by_100(), Timed((0, 50), (0, 150), (0, 160), (60, 250)))
    with LocalCluster(simulated_time=True) as cluster:
        running = cluster.submit_topology("waits", {"topology.message.timeout.secs": 5}, topology)
        with caplog.at_level(logging.WARNING):
            running.advance_time(50)
        assert running.statistics().components["numbers"].failed == 0
        said = [
            one.getMessage() for one in caplog.records if "watermark has not advanced" in one.getMessage()
        ]
        assert len(said) == 1 and "'default' of 'numbers'" in said[0]
        running.advance_time(20)
        assert out == [(100, 1), (200, 2)]
        assert running.statistics().total("late") == 0


def test_a_row_that_comes_again_is_not_late_while_its_window_is_open() -> None:
    """C31: by Storm's rule it would be, because it is behind the watermark."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", Timed((0, 50), (0, 120), (0, 190), (5, 250)))
    builder.set_bolt("fork", Passes()).shuffle_grouping("numbers")
    builder.set_bolt("windows", by_100()).shuffle_grouping("fork")
    builder.set_bolt("sink", Keep()).shuffle_grouping("windows")
    with LocalCluster(simulated_time=True) as cluster:
        running = cluster.submit_topology("again", {}, builder.create_topology("again"))
        running.advance_time(8)
        assert running.statistics().total("late") == 0
        assert running.statistics().components["numbers"].failed > 0
    assert out == [(100, 1), (200, 2)]


class Passes(BasicBolt):
    """Lets a tuple pass only the second time it comes, two seconds later."""

    def prepare(self, conf: Mapping[str, Any], context: Any) -> None:
        self.context = context

    def execute(self, tup: Any, collector: Any) -> None:
        if tup["at"] == 120 and self.context.now_ms() < 3000:
            msg = "not yet"
            raise FailedException(msg)
        collector.emit(tup.values)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("at", "n"))


@pytest.mark.parametrize("idle", [False, True])
def test_an_idle_stream_holds_up_nothing_if_it_may_be_idle(idle: bool) -> None:
    """C30: as Flink's withIdleness; off by default."""
    bolt = by_100()
    if idle:
        bolt = bolt.with_idleness(Duration.seconds(10), "quiet")
    builder = TopologyBuilder()
    builder.set_spout("busy", Timed(*((second, second * 50) for second in range(60))))
    builder.set_spout("quiet", Timed((0, 10), (50, 2450)))
    builder.set_bolt("windows", bolt).shuffle_grouping("busy").shuffle_grouping("quiet")
    builder.set_bolt("sink", Keep()).shuffle_grouping("windows")
    with LocalCluster(simulated_time=True) as cluster:
        running = cluster.submit_topology("idle", {}, builder.create_topology("idle"))
        running.advance_time(30)
        fired = [until for until, _ in out]
        assert fired == ([0, *range(100, 1401, 100)] if idle else [0])
        running.advance_time(25)
        assert [until for until, _ in out][-1] == 2400


@pytest.mark.parametrize(
    ("bolt", "message"),
    [
        (
            lambda: by_100().with_idleness(Duration(5), "quite"),
            "with_idleness names 'quite', but the bolt subscribes to numbers",
        ),
        (
            lambda: PerWindow().with_tumbling_window(Count(2)).with_idleness(Duration(5)),
            "idleness is about watermarks",
        ),
        (lambda: by_100().with_idleness(Duration(5), stream="s"), "stream 's' needs its component"),
        (lambda: by_100().with_idleness(cast("Any", 5)), "with_idleness: after must be a Duration"),
    ],
    ids=["unknown", "no timestamps", "no component", "no duration"],
)
def test_idleness_that_makes_no_sense_is_refused(bolt: Any, message: str) -> None:
    with pytest.raises(InvalidTopologyError, match=message):
        plan_topology(windowed(bolt(), Numbers(1)))


# -- the order -----------------------------------------------------------------------------------------------------------


class PassesOn(BasicBolt):
    waits = False

    def execute(self, tup: Any, collector: Any) -> None:
        collector.emit(tup.values)

    def end_of_input(self, collector: Any) -> None:
        pass

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("at", "n"))


def test_a_topology_is_not_idle_before_its_last_bolt_has_flushed() -> None:
    """Else ``--until-idle`` stops it then. There are no trees, which would keep it from being idle."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(7))
    builder.set_bolt("first", PassesOn()).shuffle_grouping("numbers")
    builder.set_bolt("second", PassesOn()).shuffle_grouping("first")
    builder.set_bolt("batches", BatchesOf100()).shuffle_grouping("second")
    plan = plan_topology(builder.create_topology("t"), {"topology.acker.executors": 0})
    running = LocalTopology(plan, SimulatedClock())
    idleness = Idleness(0.0)
    while not running.wait(0):
        running.run_batch()
        assert running.wait(0) or not idleness.reached(running.statistics())
    assert running.statistics().flushes == 3 and len(out) == 7


def test_bolts_flush_one_after_another() -> None:
    """Those nearer to the spouts first; the bolts of a loop at once."""
    builder = TopologyBuilder()
    builder.set_spout("spout", Numbers(1))
    inputs = {"first": ["spout"], "second": ["first"], "plain": ["spout"]}
    inputs |= {"loop": ["second", "back"], "back": ["loop"], "last": ["loop", "plain"]}
    for name, sources in inputs.items():
        window = PerWindow().with_tumbling_window(Count(2))
        declarer = builder.set_bolt(name, Parse() if name == "plain" else window)
        for source in sources:
            declarer.shuffle_grouping(source)
    plan = plan_topology(builder.create_topology("t"))
    assert plan.flush_turns == {"first": 1, "second": 2, "back": 3, "loop": 3, "last": 4}
    assert bolts_in_loops(plan) == ["back", "loop"]
