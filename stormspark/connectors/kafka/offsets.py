"""Decides which offsets are handed out next, at which offset a partition begins, and which offsets may be committed.

These functions do no IO. Everything that is known about Kafka comes as arguments.

A position is the offset of the next message to hand out. Spark's checkpoint holds positions as {topic: {partition: position}}. A
topology that starts again goes on from these positions.

A partition's first position is recorded before any of its messages is handed out. The batch that records the position hands out
none of the partition's messages. The batch ends at this position, so the partition's next range begins there. Thus a batch that
runs again has the same ranges, whatever the strategy is, and whatever Kafka then answers.

The positions are `{}` until Kafka has answered for all existing partitions. After that they are never `{}`: a topic that does not
exist yet is `{topic: {}}`. The topology's strategy applies only to partitions that are found while the positions are `{}`.
Partitions that are found later are new, so they are read from their beginning.

If the brokers return ids of topics, a topic's id is recorded beside its positions. A topic that was deleted and made again has
another id. If a position moves, because the topic was made again or the log was cut, the new position is recorded like a first
position. The batch that records the new position hands out no messages of the partition. It only hands out a notice of the
change.
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

#: A key in a spout's low marks (the lowest open offset of each partition). Its value is how often the tasks have been asked for
#: these marks. No partition has this name.
ASKED = ""
#: A key in a topic's positions. Its value is the topic's id. No partition has this number.
ID = "id"
#: Unless backpressure limits the tasks, this many messages may wait for them even if the last batch was small. A fast topology
#: processes about as many per batch. So the next batch can be large even after a small one.
_LEAST_WAITING = 50_000
#: Greater than any offset. It distinguishes two kinds of change in a `Range`.
_FAR = 1 << 62
#: Positions and topic ids, in the form of Spark's checkpoint.
Document = dict[str, dict[str, int | str]]


class Partition(NamedTuple):
    """A partition of a topic. Partitions are sorted by topic, then by number, as in Storm (K6)."""

    topic: str
    number: int


Positions = dict[Partition, int]


class Range(NamedTuple):
    """A partition's messages from ``start`` up to, but not including, ``end``.

    ``place`` is the partition's index in the sorted list of partitions (K6).

    If ``end`` is before ``start``, the range has no messages, and the partition does not go on at ``start``. Either its log was
    cut, and the partition goes on at ``end``. Or its topic was made again, and the partition begins at -1 - ``end``. If it is
    unknown which of the two has happened, ``end`` is as in the second case, minus 2 to the power of 62.

    >>> Range("t", 0, 100, 60, 0).change, Range("t", 0, 100, -1, 0).change, Range("t", 0, 60, 100, 0).change
    (('cut', 60), ('made anew', 0), None)
    >>> Range("t", 0, 100, -(1 << 62) - 1, 0).change
    ('cut or made anew', 0)
    """

    topic: str
    partition: int
    start: int
    end: int
    place: int

    @property
    def size(self) -> int:
        """How many offsets the range has."""
        return max(0, self.end - self.start)

    @property
    def change(self) -> tuple[str, int] | None:
        """What has happened to the partition, and at which offset it goes on; None if it goes on at ``start``."""
        if self.end >= self.start:
            return None
        if self.end >= 0:
            return ("cut", self.end)
        begins = -1 - self.end
        return ("made anew", begins) if begins < _FAR else ("cut or made anew", begins - _FAR)


class Committed(NamedTuple):
    """The offset that a group has committed for a partition, and the deployment that committed it."""

    offset: int
    deployment: str


def name_of(topic: str, partition: int) -> str:
    """Return the name of a partition as people write it.

    >>> name_of("words", 3)
    'words-3'
    """
    return f"{topic}-{partition}"


def as_positions(document: Mapping[str, Mapping[str, int | str]]) -> Positions:
    """Return the positions that a document of Spark's checkpoint holds.

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
    """Return the topic ids that a document of Spark's checkpoint holds.

    >>> topic_ids({"words": {"0": 7, "id": "bLzl4FwcQqWQMAJqUUMIew"}, "new": {}})
    {'words': 'bLzl4FwcQqWQMAJqUUMIew'}
    """
    return {topic: str(partitions[ID]) for topic, partitions in document.items() if ID in partitions}


def as_document(
    positions: Mapping[Partition, int], topics: Iterable[str] = (), ids: Mapping[str, str] | None = None
) -> Document:
    """Return a document for Spark's checkpoint, always in the same order. ``topics`` appear even without partitions.

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
    """Return the offset at which to begin in a partition for which the topology has no position yet (K3).

    ``at_timestamp`` is the first offset at or after the start timestamp. If it is None, a TIMESTAMP strategy begins at the end.

    A commit of the same deployment is always used, because a strategy that ignores commits ignores only those of other
    deployments. If the message at the committed offset is gone, the partition begins at the earliest offset that is left. A
    committed offset beyond the end is used as it is, because the broker may not know the end yet.
    `stormspark.connectors.kafka.doubts` finds out whether the log really ends before that offset.

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
    """Return the positions after the next batch.

    The batch takes all available offsets, but at most ``limit`` in total, shared evenly among the partitions.

    ``done`` is the result of `committable`. A partition gets no offset that is ``max_uncommitted`` or more beyond its position
    in ``done`` (K5, W13). If ``done`` is None, nothing is held back. A partition's position stays the same if ``ends`` does not
    have the partition, or if its end is before its position (see `stormspark.connectors.kafka.doubts`).

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
    """Return how many offsets may be handed out, so that tasks always have messages, but not many messages wait.

    The waiting and the new messages together may be twice as many as the last batch emitted, or 50,000 if that is more. If
    backpressure limits the tasks, ``limit`` is how many tuples they may emit in the next batch. Then the messages together may be
    twice as many as ``limit``.

    >>> allowance(waiting=30_000, emitted=100_000), allowance(waiting=49_000, emitted=0), allowance(waiting=60_000, emitted=10)
    (170000, 1000, 0)
    >>> allowance(waiting=1_500, emitted=1_000, limit=1_000)
    500
    """
    return max(0, (max(_LEAST_WAITING, 2 * emitted) if limit is None else 2 * limit) - waiting)


def _fair(there: Mapping[Partition, int], limit: int | None) -> Mapping[Partition, int]:
    """Share out at most ``limit`` offsets. Small partitions get all their offsets, and the others get equal shares."""
    if limit is None or sum(there.values()) <= limit:
        return there
    given: dict[Partition, int] = {}
    # The smallest partition comes first. If a partition does not use its whole share, the rest goes to the partitions after it.
    in_order = sorted(there, key=lambda partition: (there[partition], partition))
    for left, partition in zip(range(len(in_order), 0, -1), in_order, strict=True):
        given[partition] = share = min(there[partition], -(-limit // left))
        limit -= share
    return given


def ranges(
    start: Mapping[str, Mapping[str, int | str]], end: Mapping[str, Mapping[str, int | str]]
) -> list[Range]:
    """Return the ranges that a batch from ``start`` to ``end`` hands out, sorted by partition.

    A partition that ``start`` does not have gets no range, because this batch only records its first position. If a partition's
    position moves back, or its topic was made again, its range has no messages and only says what happened.

    >>> ranges({"t": {"0": 5}}, {"t": {"0": 7, "1": 3}})
    [Range(topic='t', partition=0, start=5, end=7, place=0)]
    >>> ranges({"t": {"0": 5, "id": "a"}}, {"t": {"0": 0, "id": "b"}})[0].change
    ('made anew', 0)
    >>> ranges({"t": {"0": 5}}, {"t": {"0": 0, "id": "b"}})[0].change
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
    """Return, for each partition, the offset before which all messages are acked or given up (K5).

    This holds after a batch that ended at ``end``.

    >>> committable({Partition("t", 0): 9, Partition("t", 1): 4}, {"t-0": 6})
    {Partition(topic='t', number=0): 6, Partition(topic='t', number=1): 4}
    """
    return {
        partition: min(position, low_marks.get(name_of(*partition), position))
        for partition, position in end.items()
    }


def blocked(low_marks: Mapping[str, int], highest: Mapping[str, int], max_uncommitted: int) -> dict[str, int]:
    """Return the partitions that have to wait because of their lowest open message. Each comes with this message's offset (W13).

    >>> blocked({"t-0": 3, "t-1": 90}, {"t-0": 103, "t-1": 103}, 100)
    {'t-0': 3}
    """
    return {
        partition: low
        for partition, low in low_marks.items()
        if highest.get(partition, low) - low >= max_uncommitted
    }
