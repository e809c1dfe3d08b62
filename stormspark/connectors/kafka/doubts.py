"""Decides when to believe Kafka that a partition has another log than before, or that its log was cut.

The end of a log in Kafka only rises, with two exceptions. A topic may be deleted and made again. Then its partitions have other
logs. And a log may be cut: messages are lost with a disk, or because a broker that does not have them became the leader. But
Kafka's answers may also be wrong for a while. A broker that has just become the leader may not know the log's end yet, and a
broker that was down may still know a deleted topic. So stormspark acts on such a change only if Kafka has reported it for some
time, and in several answers. Until then no more messages of the partition are handed out. Only the topic's id shows whether the
topic was made again or the log was cut. If the former or the present id is not known, the result says that it is unclear which of
the two has happened.

This module does no IO. Kafka's answers are arguments.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Generic, NamedTuple, TypeVar

from stormspark.connectors.kafka.offsets import Partition, Positions

__all__ = ["Changes", "Doubts", "Patience"]

_K = TypeVar("_K", bound=Hashable)
#: Kafka must have reported a change for this many seconds, and in this many answers after the first one.
_SURE_SECS = 5.0
_SURE_ANSWERS = 3


class _Reported(NamedTuple):
    """A change that Kafka has reported.

    ``since`` and ``first`` are the time and the number of the first answer that reported the change. ``until`` and ``last`` are
    those of the latest such answer. ``lowest`` is the lowest end that these answers have reported.
    """

    since: float
    first: int
    until: float
    last: int
    lowest: int


class Patience(Generic[_K]):
    """Changes that Kafka has reported and that are not believed yet. Each one is about a partition or a topic.

    >>> patience = Patience[str]()
    >>> [patience.is_sure("t-0", 60, now=now, answer=answer) for now, answer in ((0, 1), (1, 9), (6, 10))]
    [False, False, True]
    """

    def __init__(self) -> None:
        self._reported: dict[_K, _Reported] = {}

    def __len__(self) -> int:
        return len(self._reported)

    def is_sure(self, about: _K, end: int, *, now: float, answer: int) -> bool:
        """Record that Kafka has reported the change in this answer, with this ``end``. Return whether the change is now certain.

        The same answer may be passed several times. It counts once, with the time of the first call.
        """
        reported = self._reported.get(about, _Reported(now, answer, now, answer, end))
        if answer > reported.last:
            reported = reported._replace(until=now, last=answer)
        self._reported[about] = reported = reported._replace(lowest=min(reported.lowest, end))
        return (
            reported.until - reported.since >= _SURE_SECS and reported.last - reported.first >= _SURE_ANSWERS
        )

    def lowest(self, about: _K) -> int:
        """Return the lowest end that Kafka has reported. Messages from this offset on are new, and have not been read."""
        return self._reported[about].lowest

    def forget(self, about: _K) -> None:
        """Forget a change that has been acted on, or that turned out not to be true."""
        self._reported.pop(about, None)

    def keep(self, about: set[_K]) -> None:
        """Forget all changes except these, because Kafka's latest answer does not report the others."""
        for one in self._reported.keys() - about:
            del self._reported[one]


class Changes(NamedTuple):
    """The changes that follow from an answer of Kafka.

    - ``held``: partitions whose messages are not handed out for now.
    - ``remade``: topics that were deleted and made again, with their new ids.
    - ``cut``: partitions whose log was cut, with the lower positions at which they go on.
    - ``unclear``: partitions that now end below the position up to which they were read, with their new ends. Either the log
      was cut, or the topic was made again. Nobody can tell which, because the topic's former or present id is not known.
    """

    held: frozenset[Partition]
    remade: dict[str, str]
    cut: Positions
    unclear: Positions


class Doubts:
    """The changes that are in doubt, for all partitions of a spout."""

    def __init__(self) -> None:
        self._topics = Patience[tuple[str, str]]()
        self._partitions = Patience[Partition]()
        self._nameless = Patience[str]()

    def __bool__(self) -> bool:
        """Whether any change is in doubt."""
        return len(self._topics) + len(self._partitions) > 0

    def look(
        self,
        positions: Mapping[Partition, int],
        known: Mapping[str, str],
        ends: Mapping[Partition, int],
        ids: Mapping[str, str],
        *,
        now: float,
        answer: int,
        counts: Mapping[Partition, int],
    ) -> Changes:
        """Compare ``positions`` with an answer of Kafka. Return the changes that are now certain, and the partitions in doubt.

        The answer consists of ``ends`` and ``ids``, and ``answer`` is its number. ``known`` are the ids that the topics had when
        they were read. Not every answer has the end of every partition, so ``counts`` says, for each partition, how many answers
        had its end.
        """
        others = {(topic, ids[topic]) for topic, id in known.items() if ids.get(topic, id) != id}
        self._topics.keep(others)
        remade = {
            topic: id for topic, id in others if self._topics.is_sure((topic, id), 0, now=now, answer=answer)
        }
        doubtful = {topic for topic, _ in others}
        lower = {
            partition
            for partition, position in positions.items()
            if partition.topic not in doubtful and ends.get(partition, position) < position
        }
        self._partitions.keep(lower)
        sure = [p for p in sorted(lower) if self._partitions.is_sure(p, ends[p], now=now, answer=counts[p])]
        # Without both ids, a topic that was made again can't be recognised. One answer without ids proves nothing.
        nameless = {
            partition.topic
            for partition in lower
            if not (partition.topic in known and partition.topic in ids)
        }
        self._nameless.keep(nameless)
        stays = {topic for topic in nameless if self._nameless.is_sure(topic, 0, now=now, answer=answer)}
        sure = [
            partition for partition in sure if partition.topic in stays or partition.topic not in nameless
        ]
        found = {partition: self._partitions.lowest(partition) for partition in sure}
        cut = {partition: end for partition, end in found.items() if partition.topic not in nameless}
        unclear = {partition: end for partition, end in found.items() if partition.topic in nameless}
        for topic, id in remade.items():
            self._topics.forget((topic, id))
        for partition in sure:
            self._partitions.forget(partition)
        held = lower | {partition for partition in {*positions, *ends} if partition.topic in doubtful}
        return Changes(frozenset(held), remade, cut, unclear)
