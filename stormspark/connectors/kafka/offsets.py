"""Which offsets are handed out next, where a partition begins, what may be committed. Pure: what is known comes as arguments.

A position is the offset of the next message. Positions are kept as Spark's checkpoint has them,
{topic: {partition: position}}, and that is the truth: a topology goes on from there.

A partition's first position is written down before anything is handed out of it: it appears in the end of a batch
that has nothing of it, and in the batches after that its range is (position, end). So a batch that is run again has
the same ranges, whatever the strategy, and whatever Kafka says by then. Before the first look at Kafka there is
nothing at all, `{}`; a topic that is not there yet is `{topic: {}}`. That tells the partitions that the topology's
strategy is for from those that came later, which are read from their beginning.

Beside its positions a topic has its id, where the brokers tell one: a topic that was deleted and made again has another. A
position that moves, because its topic was made anew or its log was cut, is written down like a first one: by a batch that
hands out nothing of the partition but the news.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from stormspark.connectors.kafka.config import FirstPollOffsetStrategy as Strategy

__all__ = [
    "ASKED",
    "ID",
    "Committed",
    "Document",
    "Partition",
    "Positions",
    "Range",
    "allowance",
    "as_document",
    "as_positions",
    "blocked",
    "committable",
    "first_position",
    "name_of",
    "ranges",
    "share_out",
    "topic_ids",
]

#: Among low marks: how often the tasks have been asked for them. No partition has such a name.
ASKED = ""
#: Among a topic's positions: its id. No partition has such a number.
ID = "id"
#: So many messages may wait whatever happens: a batch of a fast topology, so that it can become one.
_LEAST_WAITING = 50_000
#: Beyond all offsets: what keeps one kind of news from another.
_FAR = 1 << 62
#: Positions as they are in Spark's checkpoint, and topics' ids.
Document = dict[str, dict[str, int | str]]


class Partition(NamedTuple):
    """A partition of a topic. They are sorted by name of the topic, then number: Storm's order (K6)."""

    topic: str
    number: int


Positions = dict[Partition, int]


class Range(NamedTuple):
    """Messages from ``start`` up to before ``end``; ``place`` is the partition's in the sorted list (K6).

    An ``end`` before ``start`` is no range but the news that the partition does not go on at ``start``: its log was cut, and it
    goes on at ``end``; or its topic was made anew, and begins at -1 - ``end``. Where nobody can tell which of both it is,
    ``end`` is as for the latter, and far below that.

    >>> Range("t", 0, 100, 60, 0).news, Range("t", 0, 100, -1, 0).news, Range("t", 0, 60, 100, 0).news
    (('cut', 60), ('made anew', 0), None)
    >>> Range("t", 0, 100, -(1 << 62) - 1, 0).news
    ('cut or made anew', 0)
    """

    topic: str
    partition: int
    start: int
    end: int
    place: int

    @property
    def size(self) -> int:
        """How many offsets it has."""
        return max(0, self.end - self.start)

    @property
    def news(self) -> tuple[str, int] | None:
        """What has become of the partition, and where it goes on; None where it goes on as it should."""
        if self.end >= self.start:
            return None
        if self.end >= 0:
            return ("cut", self.end)
        begins = -1 - self.end
        return ("made anew", begins) if begins < _FAR else ("cut or made anew", begins - _FAR)


class Committed(NamedTuple):
    """What a group has committed for a partition, and the deployment that did."""

    offset: int
    deployment: str


def name_of(topic: str, partition: int) -> str:
    """What people call a partition.

    >>> name_of("words", 3)
    'words-3'
    """
    return f"{topic}-{partition}"


def as_positions(document: Mapping[str, Mapping[str, int | str]]) -> Positions:
    """Of Spark's checkpoint.

    >>> as_positions({"words": {"0": 7, "id": "bLzl4FwcQqWQMAJqUUMIew"}, "new": {}})
    {Partition(topic='words', number=0): 7}
    """
    return {
        Partition(topic, int(number)): int(position)
        for topic, partitions in document.items()
        for number, position in partitions.items()
        if number != ID
    }


def topic_ids(document: Mapping[str, Mapping[str, int | str]]) -> dict[str, str]:
    """The ids of topics, as far as they are known.

    >>> topic_ids({"words": {"0": 7, "id": "bLzl4FwcQqWQMAJqUUMIew"}, "new": {}})
    {'words': 'bLzl4FwcQqWQMAJqUUMIew'}
    """
    return {topic: str(partitions[ID]) for topic, partitions in document.items() if ID in partitions}


def as_document(
    positions: Mapping[Partition, int], topics: Iterable[str] = (), ids: Mapping[str, str] | None = None
) -> Document:
    """For Spark's checkpoint, always in the same order; ``topics`` are there also where they have no partition.

    >>> as_document({Partition("words", 10): 3, Partition("words", 9): 4}, ["new"], {"words": "bLzl", "other": "x"})
    {'new': {}, 'words': {'9': 4, '10': 3, 'id': 'bLzl'}}
    """
    document: Document = {topic: {} for topic in sorted({*topics, *(p.topic for p in positions)})}
    for partition in sorted(positions):
        document[partition.topic][str(partition.number)] = positions[partition]
    for topic, partitions in document.items():
        if partitions and ids and topic in ids:
            partitions[ID] = ids[topic]
    return document


def first_position(
    strategy: Strategy,
    *,
    earliest: int,
    latest: int,
    at_timestamp: int | None,
    committed: Committed | None,
    deployment: str,
) -> int:
    """Where a partition begins that the topology has no position of (K3).

    ``at_timestamp`` is the first offset from the start timestamp on, None where there is none: then the partition begins at
    its end. A commit of the same deployment always counts: the strategies that ignore commits do so the first time only. What
    is committed and gone by now means the earliest that is left. What is committed beyond the end is the first position all the
    same: a broker may not know the end yet, and `stormspark.connectors.kafka.doubts` finds out.

    >>> log = dict(earliest=2, latest=9, at_timestamp=None, deployment="mine")
    >>> first_position(Strategy.EARLIEST, committed=Committed(5, "others"), **log)
    2
    >>> first_position(Strategy.EARLIEST, committed=Committed(5, "mine"), **log)
    5
    >>> first_position(Strategy.EARLIEST, committed=Committed(50, "mine"), **log)
    50
    """
    if committed is not None and (committed.deployment == deployment or strategy.startswith("UNCOMMITTED")):
        return max(committed.offset, earliest)
    if strategy in (Strategy.EARLIEST, Strategy.UNCOMMITTED_EARLIEST):
        return earliest
    if strategy in (Strategy.LATEST, Strategy.UNCOMMITTED_LATEST) or at_timestamp is None:
        return latest
    return min(max(at_timestamp, earliest), latest)


def share_out(
    positions: Mapping[Partition, int],
    ends: Mapping[Partition, int],
    *,
    limit: int | None = None,
    done: Mapping[Partition, int] | None = None,
    max_uncommitted: int | None = None,
) -> Positions:
    """The positions after the next batch: what there is, but not more than ``limit`` in all, shared out evenly.

    A partition gets nothing that is ``max_uncommitted`` or more beyond what is done with (K5, W13). ``done`` is of
    `committable`, None where it is not known: then nothing is held back. A partition that ``ends`` does not have
    stays where it is, as does one whose end is before its position: see `stormspark.connectors.kafka.doubts`.

    >>> a, b = Partition("t", 0), Partition("t", 1)
    >>> share_out({a: 0, b: 0}, {a: 100, b: 3}, limit=10)
    {Partition(topic='t', number=0): 7, Partition(topic='t', number=1): 3}
    >>> share_out({a: 8, b: 0}, {a: 100, b: 3}, done={a: 2, b: 0}, max_uncommitted=7)
    {Partition(topic='t', number=0): 9, Partition(topic='t', number=1): 3}
    """
    there: dict[Partition, int] = {}
    after = dict(positions)
    for partition, before in positions.items():
        end = ends.get(partition, before)
        position = before
        if done is not None and max_uncommitted is not None:
            end = min(end, min(done.get(partition, position), position) + max_uncommitted)
        if end > position:
            there[partition] = end - position
    for partition, count in _fair(there, limit).items():
        after[partition] += count
    return after


def allowance(waiting: int, emitted: int, limit: int | None = None) -> int:
    """How many offsets may be handed out, so that tasks never run dry and yet little waits: twice what the last batch emitted,
    or, where backpressure holds the tasks, twice what they may emit in the next one.

    >>> allowance(waiting=30_000, emitted=100_000), allowance(waiting=49_000, emitted=0), allowance(waiting=60_000, emitted=10)
    (170000, 1000, 0)
    >>> allowance(waiting=1_500, emitted=1_000, limit=1_000)
    500
    """
    return max(0, (max(_LEAST_WAITING, 2 * emitted) if limit is None else 2 * limit) - waiting)


def _fair(there: Mapping[Partition, int], limit: int | None) -> Mapping[Partition, int]:
    """At most ``limit`` of all, the small ones whole, the others alike."""
    if limit is None or sum(there.values()) <= limit:
        return there
    given: dict[Partition, int] = {}
    # From the smallest on: what one leaves of its even share is for those after it.
    in_order = sorted(there, key=lambda partition: (there[partition], partition))
    for left, partition in zip(range(len(in_order), 0, -1), in_order, strict=True):
        given[partition] = share = min(there[partition], -(-limit // left))
        limit -= share
    return given


def ranges(
    start: Mapping[str, Mapping[str, int | str]], end: Mapping[str, Mapping[str, int | str]]
) -> list[Range]:
    """What a batch from ``start`` to ``end`` hands out, by partition.

    A partition that ``start`` does not have only gets its first position. Of one that goes back, or whose topic was made anew,
    the news is handed out, and nothing else.

    >>> ranges({"t": {"0": 5}}, {"t": {"0": 7, "1": 3}})
    [Range(topic='t', partition=0, start=5, end=7, place=0)]
    >>> ranges({"t": {"0": 5, "id": "a"}}, {"t": {"0": 0, "id": "b"}})[0].news
    ('made anew', 0)
    >>> ranges({"t": {"0": 5}}, {"t": {"0": 0, "id": "b"}})[0].news
    ('cut or made anew', 0)
    """
    before, after = as_positions(start), as_positions(end)
    ids, ids_after = topic_ids(start), topic_ids(end)
    found = []
    for place, partition in enumerate(sorted(after)):
        position, stop = before.get(partition, after[partition]), after[partition]
        topic = partition.topic
        if topic in ids and topic in ids_after:
            if partition in before and ids_after[topic] != ids[topic]:
                stop = -1 - stop
        elif stop < position:
            stop = -1 - stop - _FAR
        if stop != position:
            found.append(Range(*partition, position, stop, place))
    return found


def committable(end: Mapping[Partition, int], low_marks: Mapping[str, int]) -> Positions:
    """Up to where all messages are done with: the contiguous run of each partition (K5), after a batch that ended at ``end``.

    >>> committable({Partition("t", 0): 9, Partition("t", 1): 4}, {"t-0": 6})
    {Partition(topic='t', number=0): 6, Partition(topic='t', number=1): 4}
    """
    return {
        partition: min(position, low_marks.get(name_of(*partition), position))
        for partition, position in end.items()
    }


def blocked(low_marks: Mapping[str, int], highest: Mapping[str, int], max_uncommitted: int) -> dict[str, int]:
    """The partitions that get nothing more because of their lowest open message, and its offset (W13).

    >>> blocked({"t-0": 3, "t-1": 90}, {"t-0": 103, "t-1": 103}, 100)
    {'t-0': 3}
    """
    return {
        partition: low
        for partition, low in low_marks.items()
        if highest.get(partition, low) - low >= max_uncommitted
    }
