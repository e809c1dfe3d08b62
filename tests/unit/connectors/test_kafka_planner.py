"""The planner of a Kafka spout with brokers that a test drives."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from stormspark.api import SourceProgress
from stormspark.connectors import KafkaSpout, KafkaSpoutConfig
from stormspark.connectors.kafka.brokers import EndsWatch
from stormspark.connectors.kafka.offsets import ASKED, Committed, Document, Partition, Positions, ranges
from stormspark.connectors.kafka.planner import KafkaPlanner, PlannerSettings
from stormspark.errors import StormsparkError

pytestmark = pytest.mark.usefixtures("patient")
T0, T1, U0 = Partition("t", 0), Partition("t", 1), Partition("u", 0)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """These brokers always answer, so it does not matter how busy the machine is."""
    monkeypatch.setattr("stormspark.connectors.kafka.planner._ENDS_SECS", 30.0)


class Brokers:
    """Stands for Kafka; partitions are those that have an end."""

    def __init__(self, latest: Mapping[Partition, int]) -> None:
        self.latest, self.first = dict(latest), dict.fromkeys(latest, 0)
        self.group: dict[Partition, Committed] = {}
        self.times: Positions = {}
        self.ids: dict[str, str] = {}
        self.silent: set[Partition] = set()
        self.in_transactions: Positions = {}
        self.away = self.refuses_commits = self.closed = False

    def _answer(self) -> None:
        if self.away:
            raise KafkaException(KafkaError(KafkaError._TRANSPORT))

    def partitions(self, names: Iterable[str], pattern: Any, timeout: float = 5) -> list[Partition]:
        self._answer()
        return sorted(p for p in self.latest if p.topic in names or (pattern and pattern.fullmatch(p.topic)))

    def ends(self, partitions: Iterable[Partition]) -> Positions:
        self._answer()
        return {p: self.latest[p] for p in partitions if p in self.latest and p not in self.silent}

    def log_ends(self, partitions: Iterable[Partition]) -> Positions:
        self._answer()  # also for those whose ends are not told: what does not move must not move because of this
        return {p: self.latest[p] + self.in_transactions.get(p, 0) for p in partitions}

    def topic_ids(self, topics: Iterable[str]) -> dict[str, str]:
        self._answer()
        return {topic: self.ids[topic] for topic in topics if topic in self.ids}

    def earliest(self, partitions: Iterable[Partition]) -> Positions:
        self._answer()
        return {p: self.first.get(p, 0) for p in partitions}

    def at_timestamp(self, partitions: Iterable[Partition], timestamp: int) -> Positions:
        self._answer()
        return {p: self.times.get(p, -1) for p in partitions}

    def committed(self, partitions: Iterable[Partition]) -> dict[Partition, Committed]:
        self._answer()
        return {p: self.group[p] for p in partitions if p in self.group}

    def commit(self, positions: Mapping[Partition, int], deployment: str, *, wait_secs: float = 0.0) -> None:
        self._answer()
        if self.refuses_commits:
            raise KafkaException(KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED))
        self.group |= {p: Committed(offset, deployment) for p, offset in positions.items()}

    def close(self) -> None:
        self.closed = True


class Rig:
    """A planner, its brokers, and a clock."""

    def __init__(self, brokers: Brokers, **options: Any) -> None:
        config = KafkaSpoutConfig("a:1", options.pop("topics", "t"), **({"group_id": "g"} | options))
        self.brokers, self.now = brokers, 0.0
        settings = PlannerSettings.of(config, "mine")
        self.planner = KafkaPlanner(settings, clock=lambda: self.now, connect=lambda conf: brokers)  # type: ignore[arg-type,return-value]
        self.asked = 0

    def latest(self, start: Document) -> Document:
        """Some seconds later, so that partitions are looked for."""
        self.now += 3
        return self.planner.latest(start)

    def told(self, end: Document, waiting: int = 0, **marks: int) -> None:
        self.asked += 1
        named = {name.replace("_", "-"): offset for name, offset in marks.items()}
        self.planner.observe(end, SourceProgress(waiting, {**named, ASKED: self.asked}))


def test_first_the_positions_then_what_there_is() -> None:
    """K3: the batch that finds out where to begin hands nothing out, so that a repetition can't find out something else."""
    rig = Rig(Brokers({T0: 10, T1: 5}))
    began = rig.latest({})
    assert began == {"t": {"0": 0, "1": 0}} and rig.planner.ranges({}, began) == []
    end = rig.latest(began)
    assert [tuple(found) for found in rig.planner.ranges(began, end)] == [
        ("t", 0, 0, 10, 0),
        ("t", 1, 0, 5, 1),
    ]
    assert rig.latest(end) == end


@pytest.mark.parametrize(
    ("strategy", "first"),
    [
        ("EARLIEST", {"0": 2, "1": 0}), ("LATEST", {"0": 10, "1": 5}), ("TIMESTAMP", {"0": 7, "1": 5}),
        ("UNCOMMITTED_EARLIEST", {"0": 4, "1": 0}), ("UNCOMMITTED_LATEST", {"0": 4, "1": 5}),
        ("UNCOMMITTED_TIMESTAMP", {"0": 4, "1": 5}),
    ],
)  # fmt: skip
def test_where_a_topology_begins(strategy: Any, first: dict[str, int]) -> None:
    """K3: t-0 has a commit of somebody else, t-1 has none, and no message since the timestamp."""
    brokers = Brokers({T0: 10, T1: 5})
    brokers.first[T0], brokers.times, brokers.group = 2, {T0: 7}, {T0: Committed(4, "another")}
    rig = Rig(brokers, first_poll_offset_strategy=strategy, start_timestamp=1)
    assert rig.latest({}) == {"t": first}


def test_the_same_deployment_goes_on_from_its_commit_whatever_the_strategy() -> None:
    """K3: EARLIEST and LATEST are for the first time only."""
    brokers = Brokers({T0: 10})
    brokers.group = {T0: Committed(4, "mine")}
    assert Rig(brokers, first_poll_offset_strategy="LATEST").latest({}) == {"t": {"0": 4}}
    assert Rig(brokers, first_poll_offset_strategy="LATEST", group_id=None).latest({}) == {"t": {"0": 10}}


def test_what_comes_later_is_read_from_its_beginning() -> None:
    """K1, K3: new partitions, and topics that a pattern matches, also with LATEST; the sorted list's places change (K6)."""
    brokers = Brokers({T1: 5})
    rig = Rig(brokers, topics=re.compile("[tu]"), first_poll_offset_strategy="LATEST")
    began = rig.latest({})
    assert began == {"t": {"1": 5}}
    brokers.latest |= {T0: 3, U0: 2, Partition("x", 0): 9}
    found = rig.latest(began)
    assert found == {"t": {"0": 0, "1": 5}, "u": {"0": 0}} and rig.planner.ranges(began, found) == []
    end = rig.latest(found)
    assert [tuple(r) for r in rig.planner.ranges(found, end)] == [("t", 0, 0, 3, 0), ("u", 0, 0, 2, 2)]


def test_a_topic_that_is_made_later_is_read_from_its_beginning() -> None:
    """K1: it is waited for; LATEST is not for it, because it was empty when the topology began."""
    brokers = Brokers({})
    rig = Rig(brokers, first_poll_offset_strategy="LATEST")
    waits = rig.latest({})
    assert waits == {"t": {}} == rig.latest(waits)
    brokers.latest = {T0: 3}
    assert rig.latest(waits) == {"t": {"0": 0}}
    nothing = Rig(Brokers({}), topics=re.compile("x")).latest({})
    assert nothing != {}, "a pattern that matches nothing has begun too"


@pytest.mark.slow
def test_a_broker_that_is_away_brings_nothing_and_ends_nothing() -> None:
    """K5: before the first answer, and between two."""
    brokers = Brokers({T0: 10})
    rig = Rig(brokers)
    brokers.away = True
    assert rig.latest({}) == {}
    brokers.away = False
    wait_for_answer(rig)
    began = rig.latest({})
    brokers.away = True
    end = rig.latest(began)  # what was known by then may be had
    assert rig.latest(end) == end
    rig.told(end)
    rig.planner.commit(end)
    assert rig.planner.known_ends(end) == {"t": {"0": 10}}


def wait_for_answer(rig: Rig) -> None:
    watch = rig.planner._watch
    assert watch is not None
    for _ in range(200):
        watch.ask(0.1)
        if watch.known:
            return
        threading.Event().wait(0.05)


def test_tasks_that_have_much_to_do_get_no_more() -> None:
    """K5: what waits is bounded by what gets done; max_offsets_per_trigger bounds it too."""
    brokers = Brokers({T0: 10_000_000})
    rig = Rig(brokers)
    position = rig.latest({})
    rig.told(position)
    position = rig.latest(position)
    assert position == {"t": {"0": 50_000}}
    rig.told(position, waiting=50_000)
    assert rig.latest(position) == position
    rig.told(position, waiting=20_000)
    assert rig.latest(position) == {"t": {"0": 80_000}}
    assert Rig(brokers, max_offsets_per_trigger=7).latest({"t": {"0": 1}}) == {"t": {"0": 8}}


def test_a_fast_topology_gets_more() -> None:
    """K5: twice what the last batch emitted."""
    rig = Rig(Brokers({T0: 10_000_000}))
    position = rig.latest({})
    for expected in (50_000, 150_000, 350_000):
        rig.told(position)
        position = rig.latest(position)
        assert position == {"t": {"0": expected}}


def test_a_partition_with_a_stuck_offset_stops_alone() -> None:
    """K5, W13: max_uncommitted_offsets beyond it; the other one goes on, and both do when it is acked."""
    brokers = Brokers({T0: 0, T1: 0})
    rig = Rig(brokers, max_uncommitted_offsets=100)
    position = rig.latest({})
    brokers.latest = {T0: 1000, T1: 1000}
    position = rig.latest(position)
    rig.told(position, t_0=3)
    for _ in range(3):
        brokers.latest = {p: end + 50 for p, end in brokers.latest.items()}
        after = rig.latest(position)
        assert after["t"]["0"] == position["t"]["0"] and int(after["t"]["1"]) > int(position["t"]["1"])
        position = after
        rig.told(position, t_0=3)
    rig.told(position)
    assert rig.latest(position)["t"]["0"] == int(position["t"]["0"]) + 100


def test_commits_are_the_contiguous_run_once_a_period() -> None:
    """K5: up to the lowest open offset; marks that are told again do not count for what was handed out since."""
    brokers = Brokers({T0: 10, T1: 10})
    rig = Rig(brokers, offset_commit_period_ms=30_000)
    position = rig.latest(rig.latest({}))
    rig.told(position, t_0=4)
    rig.planner.commit(position)
    assert brokers.group == {T0: Committed(4, "mine"), T1: Committed(10, "mine")}
    brokers.latest = {T0: 20, T1: 20}
    position = rig.latest(position)
    rig.planner.observe(position, SourceProgress(0, {"t-0": 4, ASKED: rig.asked}))
    rig.now += 31
    rig.planner.commit(position)
    assert brokers.group[T1] == Committed(10, "mine"), "t-1 has ten open messages that nobody has told of"
    rig.told(position, t_0=18)
    rig.planner.commit(position)
    assert brokers.group[T0] == Committed(4, "mine"), "not twice in a period"
    rig.now += 31
    rig.planner.commit(position)
    assert brokers.group == {T0: Committed(18, "mine"), T1: Committed(20, "mine")}
    rig.told(position)
    rig.planner.commit(position, now=True)
    assert brokers.group == {T0: Committed(20, "mine"), T1: Committed(20, "mine")}


def test_marks_of_an_earlier_run_do_not_count() -> None:
    """K5: a reader that begins knows nothing of what is open."""
    brokers = Brokers({T0: 10})
    rig = Rig(brokers, offset_commit_period_ms=0)
    rig.planner.observe({}, SourceProgress(0, {ASKED: 5}))
    position = rig.latest(rig.latest({}))
    rig.planner.observe(position, SourceProgress(0, {ASKED: 5}))
    rig.planner.commit(position)
    assert brokers.group == {}
    rig.planner.observe(position, SourceProgress(0, {ASKED: 1}))
    rig.planner.commit(position)
    assert brokers.group == {T0: Committed(10, "mine")}


def test_without_a_group_nothing_is_committed() -> None:
    """Without a group id no offsets are committed (K5)."""
    brokers = Brokers({T0: 10})
    rig = Rig(brokers, group_id=None, offset_commit_period_ms=0)
    position = rig.latest(rig.latest({}))
    rig.told(position)
    rig.planner.commit(position, now=True)
    assert brokers.group == {}


def test_a_last_commit_that_kafka_does_not_take_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    """K5: the one before it is followed by others, so nobody needs to hear of it."""
    brokers = Brokers({T0: 10})
    rig = Rig(brokers)
    end = rig.latest(rig.latest({}))
    rig.told(end, t_0=10)
    brokers.refuses_commits = True
    rig.planner.commit(end)
    assert caplog.messages == []
    rig.planner.commit(end, now=True)
    (said,) = caplog.messages
    assert said.startswith(
        "Kafka at a:1 has not taken the last commit of group 'g': Broker: Group authorization failed"
    )


def test_at_most_once_commits_before_and_hands_out_once() -> None:
    """K2: a batch that is run again, by a new reader, has nothing; without the commit nothing is handed out."""
    brokers = Brokers({T0: 10})
    rig = Rig(brokers, processing_guarantee="AT_MOST_ONCE")
    began = rig.latest({})
    brokers.refuses_commits = True
    assert rig.latest(began) == began
    brokers.refuses_commits = False
    end = rig.latest(began)
    assert brokers.group == {T0: Committed(10, "mine")}
    assert len(rig.planner.ranges(began, end)) == 1 == len(rig.planner.ranges(began, end))
    again = Rig(brokers, processing_guarantee="AT_MOST_ONCE")
    assert again.planner.ranges(began, end) == []
    brokers.latest = {T0: 12}
    after = again.latest(end)
    assert [tuple(found) for found in again.planner.ranges(end, after)] == [("t", 0, 10, 12, 0)]


@pytest.mark.slow
def test_at_most_once_does_not_try_to_commit_while_the_broker_is_away() -> None:
    """K2: each try would hold a batch up; what was known before may wait as well."""
    brokers = Brokers({T0: 100})
    rig = Rig(brokers, processing_guarantee="AT_MOST_ONCE", max_offsets_per_trigger=10)
    position = rig.latest({})
    brokers.away = True
    assert rig.latest(position) == position == rig.latest(position)
    assert brokers.group[T0].offset == 0


def test_at_least_once_hands_out_again_what_is_run_again() -> None:
    """With at-least-once a second planner hands out the same ranges for a batch that is run again (K2)."""
    brokers = Brokers({T0: 10})
    rig = Rig(brokers)
    began = rig.latest({})
    end = rig.latest(began)
    assert Rig(brokers).planner.ranges(began, end) == rig.planner.ranges(began, end) != []


def test_no_guarantee_commits_what_was_handed_out() -> None:
    """K2: whatever has become of it."""
    brokers = Brokers({T0: 10})
    rig = Rig(brokers, processing_guarantee="NO_GUARANTEE")
    position = rig.latest(rig.latest({}))
    rig.planner.commit(position)
    assert brokers.group == {T0: Committed(10, "mine")}


def test_what_there_is_now_and_then_no_more() -> None:
    """K1: a run that takes what there is reaches its end, though offsets are open and more comes."""
    brokers = Brokers({T0: 100})
    rig = Rig(brokers, max_uncommitted_offsets=10, max_offsets_per_trigger=30)
    rig.planner.prepare_available_now()
    brokers.latest = {T0: 500, T1: 5}
    position, batches = rig.latest({}), 0
    while (after := rig.latest(position)) != position:
        position, batches = after, batches + 1
        rig.told(position, waiting=1_000_000, t_0=0)
    assert (position, batches) == ({"t": {"0": 100}}, 4)


@pytest.mark.parametrize(
    ("strategy", "at"),
    [
        ("TIMESTAMP", 400),
        ("UNCOMMITTED_TIMESTAMP", 400),
        ("UNCOMMITTED_EARLIEST", 900),
        ("UNCOMMITTED_LATEST", 900),
        ("LATEST", 1000),
    ],
)
@pytest.mark.parametrize("silent", ["its end", "its time"])
def test_a_partition_that_answers_later_begins_where_the_others_do(
    strategy: str, at: int, silent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """K3, K5: it was there when the topology began, so it is not read from its beginning, nor from its end."""
    brokers = Brokers({T0: 1000, T1: 1000})
    brokers.times = {T0: 400, T1: 400}
    if not strategy.endswith("TIMESTAMP"):
        brokers.group = {T0: Committed(900, "another"), T1: Committed(900, "another")}
    rig = Rig(brokers, first_poll_offset_strategy=strategy, start_timestamp=1)
    asked = brokers.at_timestamp
    with monkeypatch.context() as patched:
        if silent == "its end":
            brokers.silent.add(T1)
        elif strategy.endswith("TIMESTAMP"):
            patched.setattr(brokers, "at_timestamp", lambda those, when: {T0: asked(those, when)[T0]})
        else:
            patched.setattr(brokers, "earliest", lambda those: {T0: 0})
        assert rig.latest({}) == {}
    brokers.silent.clear()
    assert rig.latest({}) == {"t": {"0": at, "1": at}}


def settled(rig: Rig, start: Document) -> Document:
    """What is handed out at last, where Kafka goes on saying what it says."""
    return settled_in(rig, start, 3)


def settled_in(
    rig: Rig, start: Document, answers: int, then: Callable[[], object] = lambda: None
) -> Document:
    """So many answers that are not enough, and then what comes of one more."""
    for _ in range(answers):
        assert rig.latest(start) == start, "it may be a broker that does not know yet"
    then()
    return rig.latest(start)


def begun(brokers: Brokers, **options: Any) -> tuple[Rig, Document]:
    """A topology that has read all that there is."""
    rig = Rig(brokers, offset_commit_period_ms=0, **options)
    position = rig.latest(rig.latest({}))
    rig.told(position)
    return rig, position


@pytest.mark.parametrize("end", [0, 40, 99, 100, 101, 5000])
def test_a_recreated_topic_is_read_from_its_beginning(end: int) -> None:
    """K5: whether its end is below the position or beyond it, because its id is another; nothing comes before that is sure."""
    brokers = Brokers({T0: 100, T1: 7})
    brokers.ids = {"t": "one"}
    rig, position = begun(brokers)
    assert position == {"t": {"0": 100, "1": 7, "id": "one"}}
    brokers.latest, brokers.ids, brokers.first = {T0: end, T1: 7}, {"t": "two"}, {T0: 0, T1: 3}
    after = settled(rig, position)
    assert after == {"t": {"0": 0, "1": 3, "id": "two"}}
    news = rig.planner.ranges(position, after)
    assert [(found.partition, found.change, found.size) for found in news] == [
        (0, ("made anew", 0), 0),
        (1, ("made anew", 3), 0),
    ]
    assert Rig(brokers).planner.ranges(position, after) == news, "run again by another planner"
    rig.planner.commit(after)
    assert brokers.group == {}, "what was done with of the old one says nothing of the new one"
    assert [tuple(found) for found in rig.planner.ranges(after, rig.latest(after))] == [
        ("t", n, first, last, n) for n, first, last in ((0, 0, end), (1, 3, 7)) if last > first
    ]


def test_a_recreated_topic_may_have_other_partitions() -> None:
    """Fewer, or more; and another topic is not concerned."""
    for now in ({T0: 5}, {T0: 5, T1: 6, Partition("t", 2): 7}):
        brokers = Brokers({T0: 100, T1: 100, U0: 50})
        brokers.ids = {"t": "one", "u": "only"}
        rig, position = begun(brokers, topics=["t", "u"])
        brokers.latest, brokers.ids = {**now, U0: 60}, {"t": "two", "u": "only"}
        for _ in range(4):
            after = rig.latest(position)
            assert after["u"] == {"0": 60, "id": "only"}
            position = after
        assert after["t"] == {**{str(p.number): 0 for p in now}, "id": "two"}


@pytest.mark.parametrize("end", [0, 60, 99])
def test_a_log_that_was_cut_goes_on_at_its_end(end: int) -> None:
    """The same id, and an end below the position: what is left has been read, what comes from now on has not."""
    brokers = Brokers({T0: 100, T1: 100})
    brokers.ids = {"t": "one"}
    rig, position = begun(brokers)
    brokers.latest = {T0: end, T1: 120}
    before, position = position, {"t": {"0": 100, "1": 120, "id": "one"}}
    assert rig.latest(before) == position, "the other partition goes on"
    for _ in range(2):
        assert rig.latest(position) == position
    brokers.latest = {T0: end + 10 if end < 90 else end, T1: 120}  # while the planner is not sure
    after = rig.latest(position)
    assert after == {"t": {"0": end, "1": 120, "id": "one"}}
    (news,) = rig.planner.ranges(position, after)
    assert (
        news.change == ("cut", end)
        and news.size == 0
        and Rig(brokers).planner.ranges(position, after) == [news]
    )
    brokers.latest = {T0: end + 10, T1: 120}
    assert [tuple(found) for found in rig.planner.ranges(after, rig.latest(after))] == [
        ("t", 0, end, end + 10, 0)
    ]


@pytest.mark.slow
def test_a_lower_end_is_not_believed_at_once_after_a_restart() -> None:
    """A new planner, which has seen no other end, with what Spark's checkpoint says: the leader may not know its end yet."""
    brokers = Brokers({T0: 60})
    brokers.ids = {"t": "one"}
    position: Document = {"t": {"0": 100, "id": "one"}}
    rig = Rig(brokers)
    for _ in range(3):
        assert rig.latest(position) == position
        brokers.latest = {T0: 100}
        assert rig.latest(position) == position, "now it knows"
        brokers.latest = {T0: 60}
    brokers.away = True
    for _ in range(10):
        assert rig.latest(position) == position, "what was said before it went away is no new answer"


def test_a_low_end_counts_once_where_the_partition_then_falls_silent() -> None:
    """The others go on answering, and what a leader said that is away now is neither said again nor said for long."""
    brokers = Brokers({T0: 100, T1: 100})
    brokers.ids = {"t": "one"}
    rig, position = begun(brokers)
    for low_answers in (1, 3):
        brokers.latest[T0], brokers.silent = 60, set()
        for _ in range(low_answers):
            assert rig.latest(position) == position
        brokers.silent = {T0}
        for _ in range(10):
            brokers.latest[T1] += 1
            after = rig.latest(position)
            assert after == {"t": {"0": 100, "1": brokers.latest[T1], "id": "one"}}
            position = after
        brokers.latest[T0], brokers.silent = 100, set()
        assert rig.latest(position) == position
    brokers.latest[T0] = 60
    for said in range(4):
        brokers.silent = {T0}
        assert rig.latest(position) == position, f"said {said} times"
        brokers.silent = set()
        after = rig.latest(position)
    assert after == {"t": {"0": 60, "1": 120, "id": "one"}}, "with pauses, it was said often enough"


def test_a_low_end_that_was_answered_often_in_a_moment_was_not_answered_for_long() -> None:
    """Four answers within a second, and then silence."""
    brokers = Brokers({T0: 100, T1: 1})
    rig, position = begun(brokers)
    brokers.latest[T0] = 60
    for _ in range(6):
        rig.now += 0.1
        assert rig.planner.latest(position) == position
    brokers.silent = {T0}
    for _ in range(5):
        assert rig.latest(position) == position


@pytest.mark.parametrize("ids", [{"t": "one"}, {}])
@pytest.mark.parametrize("strategy", ["UNCOMMITTED_LATEST", "EARLIEST"])
def test_an_end_before_the_groups_commit_is_not_believed_at_once(strategy: Any, ids: dict[str, str]) -> None:
    """K3: a start without a checkpoint, while a leader does not know its end yet; nothing comes again when it does."""
    brokers = Brokers({T0: 200, T1: 9})
    brokers.ids, brokers.group = ids, {T0: Committed(1_000_000, "mine"), T1: Committed(4, "mine")}
    rig = Rig(brokers, first_poll_offset_strategy=strategy)
    position = rig.latest({})
    assert position == {"t": {"0": 1_000_000, "1": 4}}
    position = rig.latest(position)
    assert position == {"t": {"0": 1_000_000, "1": 9}} == rig.latest(position)
    brokers.latest[T0] = 1_000_010
    end = rig.latest(position)
    named = {"id": "one"} if ids else {}
    assert end == {"t": {"0": 1_000_010, "1": 9, **named}}
    assert [tuple(found) for found in rig.planner.ranges(position, end)] == [
        ("t", 0, 1_000_000, 1_000_010, 0)
    ]


@pytest.mark.parametrize(
    ("guarantee", "goes_on"), [("AT_LEAST_ONCE", {"0": 3, "1": 0}), ("AT_MOST_ONCE", {"0": 60, "1": 9})]
)
def test_an_end_before_the_groups_commit_is_reported_when_it_is_sure(
    guarantee: Any, goes_on: dict[str, int]
) -> None:
    """A commit has no topic id, so it may be of an older topic: a client may commit after a topic was deleted and made again."""
    brokers = Brokers({T0: 60, T1: 9})
    brokers.ids, brokers.first[T0] = {"t": "one"}, 3
    brokers.group = {T0: Committed(100, "mine"), T1: Committed(9, "mine")}
    rig = Rig(brokers, processing_guarantee=guarantee)
    position = rig.latest({})
    assert position == {"t": {"0": 100, "1": 9}}
    after = settled(rig, position)
    assert after == {"t": {**goes_on, "id": "one"}}
    news = {found.partition: found.change for found in rig.planner.ranges(position, after)}
    assert news == {n: ("cut or made anew", goes_on[str(n)]) for n in news} and 0 in news


@pytest.mark.parametrize("ids", [{"t": "one"}, {}])
@pytest.mark.parametrize("committed", [True, False])
def test_what_an_open_transaction_hides_is_not_lost(committed: bool, ids: dict[str, str]) -> None:
    """Positions of somebody who read uncommitted messages, as Java's consumers do by default: they wait, however long."""
    brokers = Brokers({T0: 60, T1: 9})
    brokers.ids, brokers.in_transactions = ids, {T0: 45}
    brokers.group = {T0: Committed(100, "another"), T1: Committed(9, "another")}
    rig = Rig(brokers, truncated_log="fail")
    position: Document = {"t": {"0": 100, "1": 9}}
    if committed:
        assert rig.latest({}) == position
    elif ids:
        position["t"]["id"] = "one"
    for _ in range(20):
        assert rig.latest(position) == position
    brokers.latest[T0], brokers.in_transactions = 105, {}
    end = rig.latest(position)
    assert [tuple(found) for found in rig.planner.ranges(position, end)] == [("t", 0, 100, 105, 0)]


def test_a_start_may_fail_where_the_log_ends_before_the_groups_commit() -> None:
    """truncated_log is for this too."""
    brokers = Brokers({T0: 60})
    brokers.group = {T0: Committed(100, "mine")}
    rig = Rig(brokers, truncated_log="fail")
    position = rig.latest({})
    for _ in range(3):
        assert rig.latest(position) == position
    with pytest.raises(StormsparkError, match="it ended at 60, but offsets up to 99 had been read"):
        rig.latest(position)


def test_many_partitions_are_cut_each_at_its_place() -> None:
    brokers = Brokers({Partition("t", n): 100 for n in range(200)})
    brokers.ids = {"t": "one"}
    rig, position = begun(brokers)
    brokers.latest = {Partition("t", n): n for n in range(200)}
    for _ in range(4):
        position = rig.latest(position)
    assert position == {"t": {**{str(n): n for n in range(200)}, "id": "one"}}


@pytest.mark.parametrize("named", [True, False])
def test_a_topology_may_stop_where_a_log_was_cut(named: bool) -> None:
    """truncated_log; the driver finds the reason in what Spark says of it."""
    brokers = Brokers({T0: 100})
    brokers.ids = {"t": "one"} if named else {}
    rig, position = begun(brokers, truncated_log="fail")
    brokers.latest = {T0: 60}
    for _ in range(3):
        assert rig.latest(position) == position
    with pytest.raises(StormsparkError, match="the log of t-0 was cut") as error:
        rig.latest(position)
    assert "it ended at 60, but offsets up to 99 had been read" in str(error.value)
    assert ("topic was deleted and made again" in str(error.value)) is not named
    spout = KafkaSpout(KafkaSpoutConfig("a:1", "t", truncated_log="fail"))
    text = f"Traceback (most recent call last):\n  File\nstormspark.errors.StormsparkError: {error.value}\n\tat org.apache"
    assert spout.explain_failure(text, None) == str(error.value)
    assert spout.explain_failure("java.io.IOException: disk", None) is None


#: The topic's id in the checkpoint, and what Kafka tells from then on.
IDS = [(None, None), (None, "two"), ("one", None)]


@pytest.mark.parametrize(("then", "now"), IDS)
@pytest.mark.parametrize("guarantee", ["AT_LEAST_ONCE", "NO_GUARANTEE"])
def test_what_may_be_a_new_topic_is_read_from_its_beginning(
    guarantee: Any, then: str | None, now: str | None
) -> None:
    """Without both ids it can't be told from one that was cut. Then all its partitions are read, and no other topic is."""
    brokers = Brokers({T0: 100, T1: 30, U0: 50})
    brokers.ids = ({"t": then} if then else {}) | {"u": "only"}
    rig, before = begun(brokers, topics=["t", "u"], processing_guarantee=guarantee)
    brokers.latest, brokers.ids = {T0: 60, T1: 40, U0: 50}, ({"t": now} if now else {}) | {"u": "only"}
    brokers.first[T1] = 5
    named = {"id": then} if then else {}
    position = rig.latest(before)
    assert position["t"] == {"0": 100, "1": 40, **named}, (
        "no other id before it is sure whose positions these are"
    )
    after = settled_in(rig, position, 2)
    assert after == {
        "t": {"0": 0, "1": 5, **({"id": now} if now else {})},
        "u": {"0": 50, "id": "only"},
    }
    news = rig.planner.ranges(position, after)
    assert [(found.partition, found.change, found.size) for found in news] == [
        (0, ("cut or made anew", 0), 0),
        (1, ("cut or made anew", 5), 0),
    ]
    assert Rig(brokers).planner.ranges(position, after) == news, "run again by another planner"
    rig.planner.commit(after)
    assert not {T0, T1} & brokers.group.keys() or guarantee == "NO_GUARANTEE"
    end = rig.latest(after)
    assert [tuple(found) for found in rig.planner.ranges(after, end)] == [
        ("t", 0, 0, 60, 0),
        ("t", 1, 5, 40, 1),
    ]
    assert rig.latest(end) == end, "and that is all"


@pytest.mark.parametrize(("then", "now"), IDS)
def test_at_most_once_what_may_have_been_cut_goes_on_at_its_end(then: str | None, now: str | None) -> None:
    """Nothing may come twice; partitions that do not end too early go on as they were."""
    brokers = Brokers({T0: 100, T1: 30})
    brokers.ids = {"t": then} if then else {}
    rig, position = begun(brokers, processing_guarantee="AT_MOST_ONCE")
    brokers.latest, brokers.ids = {T0: 60, T1: 30}, {"t": now} if now else {}
    after = settled(rig, position)
    assert after == {"t": {"0": 60, "1": 30, **({"id": now} if now else {})}}
    (news,) = rig.planner.ranges(position, after)
    assert news.change == ("cut or made anew", 60)
    brokers.latest[T0] = 70
    assert [tuple(found) for found in rig.planner.ranges(after, rig.latest(after))] == [("t", 0, 60, 70, 0)]


def test_an_id_that_is_missing_from_one_answer_makes_no_topic_new() -> None:
    """Not even in the answer by which the low end is sure: then Kafka is asked again."""
    brokers = Brokers({T0: 100})
    brokers.ids = {"t": "one"}
    rig, position = begun(brokers)
    brokers.latest = {T0: 60}
    assert settled_in(rig, position, 3, brokers.ids.clear) == position
    brokers.ids = {"t": "one"}
    assert rig.latest(position) == {"t": {"0": 60, "id": "one"}}


@pytest.mark.parametrize(
    ("guarantee", "says"),
    [
        (
            "AT_LEAST_ONCE",
            "all partitions of the topic are read from their earliest offsets, t-0 from offset 7. If a log was cut",
        ),
        ("AT_MOST_ONCE", "t-0 is read on from its end, offset 7. If the topic is a new one"),
    ],
)
def test_what_can_not_be_known_is_reported(guarantee: Any, says: str) -> None:
    """By an error of the spout, with what may come twice or not at all."""
    spout = KafkaSpout(KafkaSpoutConfig("a:1", "t", processing_guarantee=guarantee))
    reported: list[str] = []
    spout.report_error = reported.append  # type: ignore[assignment,method-assign]
    (news,) = ranges({"t": {"0": 100}}, {"t": {"0": 7}})
    assert spout.read(tuple(news), 100) == ([], None)
    spout.close()
    (text,) = reported
    assert "'t' was deleted and made again, or a log of it was cut" in text
    assert (
        "t-0 had been read up to offset 99" in text
        and "could show which, but is unknown" in text
        and says in text
    )


def test_ids_are_taken_over_into_a_checkpoint_of_before() -> None:
    """And kept where brokers do not tell them for once."""
    brokers = Brokers({T0: 100})
    rig, position = begun(brokers)
    assert position == {"t": {"0": 100}}
    brokers.ids = {"t": "one"}
    after = rig.latest(position)
    assert after == {"t": {"0": 100, "id": "one"}} and rig.planner.ranges(position, after) == []
    brokers.ids = {}
    assert rig.latest(after) == after


def test_a_run_that_takes_what_there_is_waits_until_it_is_sure(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would end without the messages of a topic that was made anew."""
    brokers = Brokers({T0: 100})
    brokers.ids = {"t": "one"}
    _, position = begun(brokers)
    brokers.latest, brokers.ids = {T0: 40}, {"t": "two"}
    rig = Rig(brokers)
    rig.planner.prepare_available_now()
    naps: list[float] = []

    def nap(seconds: float) -> None:
        naps.append(seconds)
        rig.now += 3

    monkeypatch.setattr("stormspark.connectors.kafka.planner.time.sleep", nap)
    after = rig.latest(position)
    assert after == {"t": {"0": 0, "id": "two"}} and naps
    assert rig.latest(after) == {"t": {"0": 40, "id": "two"}}


def test_a_run_that_takes_what_there_is_may_begin_with_an_end_that_is_too_low(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A leader that did not know its end when the run began: nothing of the partition comes, and no log counts as cut."""
    monkeypatch.setattr(
        "stormspark.connectors.kafka.planner.time.sleep", lambda seconds: pytest.fail("a wait")
    )
    brokers = Brokers({T0: 200, T1: 8})
    brokers.ids = {"t": "one"}
    rig = Rig(brokers)
    rig.planner.prepare_available_now()
    brokers.latest = {T0: 1_000_500, T1: 9}
    position: Document = {"t": {"0": 1_000_000, "1": 5, "id": "one"}}
    for _ in range(10):
        position = rig.latest(position)
        assert position == {"t": {"0": 1_000_000, "1": 8, "id": "one"}}
    following = Rig(brokers)
    following.planner.prepare_available_now()
    assert following.latest(position) == {"t": {"0": 1_000_500, "1": 9, "id": "one"}}


def test_a_topic_recreated_during_a_run_that_takes_what_there_is() -> None:
    """All its partitions begin anew, also those that were not there when the run began; these are for the next run."""
    brokers = Brokers({T0: 100})
    brokers.ids = {"t": "one"}
    rig, position = begun(brokers)
    rig.planner.prepare_available_now()
    brokers.latest, brokers.ids = {T0: 40, T1: 7}, {"t": "two"}
    for _ in range(4):
        rig.now += 3
        after = rig.planner._after(position)
    assert after == {"t": {"0": 0, "1": 0, "id": "two"}}
    assert rig.latest(after) == {"t": {"0": 40, "1": 0, "id": "two"}}


def test_an_error_that_is_not_kafkas_is_not_hidden() -> None:
    """A bug is no outage."""

    def broken(partitions: list[Partition]) -> Positions:
        raise KeyError("bug")

    watch = EndsWatch(lambda: [T0], broken, refresh_secs=1)
    with pytest.raises(KeyError, match="bug"):
        watch.ask(10)
    watch.close()


def test_a_planner_hangs_up() -> None:
    """Both connections."""
    brokers = Brokers({T0: 1})
    rig = Rig(brokers)
    rig.planner.close()
    rig.latest({})
    rig.planner.close()
    assert brokers.closed
