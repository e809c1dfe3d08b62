"""Which offsets a Kafka spout hands out and commits, as laws."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from stormspark.connectors.kafka import FirstPollOffsetStrategy
from stormspark.connectors.kafka.doubts import Changes, Doubts
from stormspark.connectors.kafka.offsets import (
    Committed,
    Document,
    Partition,
    Positions,
    allowance,
    as_document,
    as_positions,
    blocked,
    committable,
    first_position,
    name_of,
    ranges,
    share_out,
    topic_ids,
)

PARTITIONS = st.builds(Partition, st.sampled_from(["a", "a-1", "b.c", "Z"]), st.integers(0, 12))
OFFSETS = st.integers(0, 1 << 40)
POSITIONS = st.dictionaries(PARTITIONS, st.integers(0, 1000), max_size=8)


@given(st.dictionaries(PARTITIONS, OFFSETS), st.lists(st.sampled_from(["a", "new"])))
def test_positions_survive_the_checkpoint_always_in_the_same_order(
    positions: Positions, topics: list[str]
) -> None:
    """K5: Spark compares positions as text."""
    document = as_document(positions, topics)
    text = json.dumps(document)
    assert as_positions(json.loads(text)) == positions
    assert set(document) == {*topics, *(partition.topic for partition in positions)}
    assert text == json.dumps(as_document(dict(reversed(positions.items())), reversed(topics)))


@given(PARTITIONS, PARTITIONS)
def test_two_partitions_never_have_the_same_name(one: Partition, other: Partition) -> None:
    """K5: low marks are told by name."""
    assert (name_of(*one) == name_of(*other)) == (one == other)


@given(POSITIONS, POSITIONS, st.none() | st.integers(0, 3000))
def test_what_there_is_is_shared_out_evenly_up_to_the_limit(
    positions: Positions, ends: Positions, limit: int | None
) -> None:
    """K5: nobody beyond its end, all of the limit is used, and nobody waits while another gets more than it."""
    ends = {p: max(end, positions.get(p, 0)) for p, end in ends.items()}
    after = share_out(positions, ends, limit=limit)
    there = {p: ends.get(p, position) - position for p, position in positions.items()}
    given_out = {p: after[p] - position for p, position in positions.items()}
    assert after.keys() == positions.keys()
    assert all(0 <= given_out[p] <= there[p] for p in positions)
    total = sum(there.values())
    assert sum(given_out.values()) == (total if limit is None else min(limit, total))
    short = [given_out[p] for p in positions if given_out[p] < there[p]]
    if short:
        assert max(given_out.values()) <= min(short) + 1


@given(POSITIONS, POSITIONS, POSITIONS, st.integers(1, 500), st.none() | st.integers(0, 3000))
def test_no_partition_runs_away_from_what_is_done(
    positions: Positions, ends: Positions, done: Positions, most: int, limit: int | None
) -> None:
    """K5, W13: never more than max_uncommitted_offsets beyond what is done with, and the others go on."""
    ends = {p: max(end, positions.get(p, 0)) for p, end in ends.items()}
    done = {p: min(offset, positions.get(p, offset)) for p, offset in done.items()}
    after = share_out(positions, ends, limit=limit, done=done, max_uncommitted=most)
    for partition, position in positions.items():
        low = done.get(partition, position)
        assert after[partition] == position or after[partition] - low <= most
        if limit is None:
            assert after[partition] == max(position, min(ends.get(partition, position), low + most))


@given(st.integers(0, 1 << 30), st.integers(0, 1 << 30))
def test_a_topology_that_works_off_what_it_gets_never_stands_still(waiting: int, emitted: int) -> None:
    """W13: with nothing waiting there is always something to be had, and never without bounds."""
    allowed = allowance(waiting, emitted)
    assert 0 <= allowed <= max(50_000, 2 * emitted)
    assert allowance(0, emitted) >= max(50_000, emitted)


LOG = st.tuples(st.integers(0, 100), st.integers(0, 100)).map(sorted)
COMMITS = st.none() | st.builds(Committed, st.integers(0, 200), st.sampled_from(["mine", "another"]))


@given(st.sampled_from(FirstPollOffsetStrategy), LOG, st.none() | st.integers(0, 200), COMMITS, st.data())
def test_a_partition_begins_where_the_strategy_says(
    strategy: FirstPollOffsetStrategy,
    log: list[int],
    at: int | None,
    committed: Committed | None,
    data: st.DataObject,
) -> None:
    """K3: inside the log but for commits; one counts if it is this deployment's own, or if the strategy asks for it."""
    earliest, latest = log
    first = first_position(
        strategy,
        earliest=earliest,
        latest=latest,
        at_timestamp=at,
        committed=committed,
        deployment="mine",
    )
    wants_commit = strategy.name.startswith("UNCOMMITTED")
    if committed is not None and (committed.deployment == "mine" or wants_commit):
        assert first == max(
            committed.offset, earliest
        )  # what is gone is skipped; beyond the end is for doubts
        return
    assert earliest <= first <= latest
    if strategy.name.endswith("EARLIEST"):
        assert first == earliest
    elif strategy.name.endswith("LATEST") or at is None:
        assert first == latest
    elif earliest <= at <= latest:
        assert first == at


class HandingOut(RuleBasedStateMachine):
    """K5, W13: batches are planned, run again, acked in any order; partitions come, logs are cut, topics are made anew.

    Each message has a number of its own. Each that is in a log is handed out once; what is committed never passes an offset
    that is open, and reaches the end when all is acked.
    """

    @initialize()
    def begin(self) -> None:
        self.logs: dict[Partition, list[int]] = {Partition("a", 0): [], Partition("b", 0): []}
        self.ids = {"a": "a1", "b": "b1"}
        self.document: Document = as_document(dict.fromkeys(self.logs, 0), (), self.ids)
        self.seen: list[int] = []
        self.open: dict[Partition, set[int]] = {partition: set() for partition in self.logs}
        self.done: Positions | None = None
        self.doubts, self.answer, self.written = Doubts(), 0, 0

    @rule(
        partition=st.sampled_from([Partition("a", 0), Partition("a", 1), Partition("b", 0)]),
        more=st.integers(0, 30),
    )
    def produce(self, partition: Partition, more: int) -> None:
        # A log that is cut, and written up to the position again before that is believed, can't be told from one that is whole.
        while as_positions(self.document).get(partition, 0) > len(self.logs.get(partition, [])):
            self.batch(None, 1 << 30, again=False)
        self.logs.setdefault(partition, []).extend(range(self.written, self.written + more))
        self.open.setdefault(partition, set())
        self.written += more

    def ends(self) -> Positions:
        return {partition: len(log) for partition, log in self.logs.items()}

    def look(self) -> Changes:
        """An answer of Kafka, two seconds after the one before."""
        self.answer += 1
        positions, known = as_positions(self.document), topic_ids(self.document)
        told = dict.fromkeys(self.logs, self.answer)
        return self.doubts.look(
            positions, known, self.ends(), self.ids, now=2.0 * self.answer, answer=self.answer, counts=told
        )

    @rule(limit=st.none() | st.integers(0, 40), most=st.integers(1, 60), again=st.booleans())
    def batch(self, limit: int | None, most: int, again: bool) -> None:
        start, news = self.document, self.look()
        ends = {partition: end for partition, end in self.ends().items() if partition not in news.held}
        after = share_out(as_positions(start), ends, limit=limit, done=self.done, max_uncommitted=most)
        for partition in ends.keys() - after.keys():
            after[partition] = 0
        moved = {p: news.cut[p] for p in after if p in news.cut} | {
            p: 0 for p in after if p.topic in news.remade
        }
        after |= moved
        ids = topic_ids(start) | news.remade
        end: Document = json.loads(json.dumps(as_document(after, (), ids)))
        handed_out = ranges(start, end)
        if again:  # planned anew from what Spark wrote down
            assert ranges(json.loads(json.dumps(start)), end) == handed_out
        told = {Partition(found.topic, found.partition) for found in handed_out if found.change is not None}
        assert told == {p for p in moved if p in as_positions(start)}
        for partition in moved if self.done is not None else ():
            self.done.pop(partition, None)  # type: ignore[union-attr]
        places = sorted(after)
        for found in handed_out:
            partition = Partition(found.topic, found.partition)
            assert places[found.place] == partition
            if found.change is not None:
                assert found.change[1] == after[partition] and found.size == 0
                self.open[partition] = set()  # what was open is done with, to keep the model small
                continue
            self.seen += self.logs[partition][found.start : found.end]
            assert found.end <= len(self.logs[partition])
            self.open[partition] |= set(range(found.start, found.end))
            if self.done is not None and limit is None:
                assert found.end - self.done.get(partition, found.start) <= most
        self.document = end

    @rule(data=st.data())
    def ack(self, data: st.DataObject) -> None:
        for offsets in self.open.values():
            if offsets:
                offsets.difference_update(data.draw(st.sets(st.sampled_from(sorted(offsets)))))

    @rule()
    def tell(self) -> None:
        marks = {name_of(*p): min(offsets) for p, offsets in self.open.items() if offsets}
        self.done = committable(as_positions(self.document), marks)

    @rule(length=st.integers(0, 30))
    def make_anew(self, length: int) -> None:
        """Topic b is deleted and made again, with so many messages by the time that anybody looks."""
        self.ids["b"] = f"b{self.answer}+{self.written}"
        self.logs[Partition("b", 0)] = list(range(self.written, self.written + length))
        self.written += length + 1

    @rule(keep=st.floats(0, 1))
    def cut(self, keep: float) -> None:
        """Messages at the end of a log are lost, read or not."""
        log = self.logs[Partition("a", 0)]
        del log[int(len(log) * keep) :]
        self.look()

    @invariant()
    def each_message_once(self) -> None:
        assert len(self.seen) == len(set(self.seen))

    @invariant()
    def nothing_open_is_committed(self) -> None:
        for partition, offset in (self.done or {}).items():
            assert all(is_open >= offset for is_open in self.open[partition])

    def teardown(self) -> None:
        if not hasattr(self, "logs"):
            return
        for _ in range(8):
            for offsets in self.open.values():
                offsets.clear()
            self.tell()
            self.batch(None, 1 << 30, False)
        for offsets in self.open.values():
            offsets.clear()
        self.tell()
        assert self.done == self.ends()
        assert {message for log in self.logs.values() for message in log} <= set(self.seen)


TestHandingOut = HandingOut.TestCase


#: Seconds since the last look; whether the partition answered, with which end; the topic's id, where it was told.
LOOKS = st.lists(
    st.tuples(
        st.sampled_from([0, 1, 3]),
        st.booleans(),
        st.sampled_from([50, 60, 100]),
        st.sampled_from(["one", None]),
    ),
    max_size=30,
)


@given(LOOKS, st.sampled_from(["one", None]))
def test_a_log_is_given_up_only_after_four_answers_and_five_seconds(
    looks: list[tuple[int, bool, int, str | None]], known: str | None
) -> None:
    """K5: of the partition itself, without one in between that has all. It is cut only where the id is known to be the same."""
    doubts, partition = Doubts(), Partition("t", 0)
    now, told, end = 0.0, 1, 100
    low: list[tuple[float, int]] = []  # times and ends of the answers of this run of low ones
    for number, (secs, answered, said, id) in enumerate(looks, 2):
        now += secs
        if answered:
            told, end = told + 1, said
            low = [*low, (now, end)] if end < 100 else []
        news = doubts.look(
            {partition: 100},
            {"t": known} if known else {},
            {partition: end},
            {"t": id} if id else {},
            now=now,
            answer=number,
            counts={partition: told},
        )
        assert news.held == ({partition} if end < 100 else set()) and not news.remade
        said_enough = len(low) >= 4 and low[-1][0] - low[0][0] >= 5
        found = news.cut | news.unclear
        if all(look[3] for look in looks) and known:
            assert (found != {}) is said_enough, "it is not put off for ever either"
        if found:
            assert said_enough and found == {partition: min(end for _, end in low)}
            assert (partition in news.cut) is (known is not None and id is not None)
            return


@given(
    st.dictionaries(st.sampled_from("xyz"), OFFSETS),
    st.dictionaries(st.sampled_from("xyz"), OFFSETS),
    st.integers(1, 100),
)
def test_a_blocked_partition_is_reported_with_its_offset(
    low: dict[str, int], highest: dict[str, int], most: int
) -> None:
    """W13: exactly those that are so far apart."""
    held_up = blocked(low, highest, most)
    for name, offset in low.items():
        assert (held_up.get(name) == offset) == (highest.get(name, offset) - offset >= most)
