"""When to believe that a log is not the one that was read so far: its topic was made anew, or it was cut. Pure.

Kafka's logs only grow, unless a topic is deleted and made again, or messages are lost: by the election of a leader that did not
have them, or with a disk. But a broker that has just begun to lead may not know its end yet, and one that was away may
still know a topic that is gone. So such news is acted upon only if Kafka has said it for some time and in several answers.
Until then nothing more of these partitions is handed out. Where the id of a topic is not known, then or now, nobody can tell
which of both has happened, and the news says that.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Generic, NamedTuple, TypeVar

from stormspark.connectors.kafka.offsets import Partition, Positions

__all__ = ["Doubts", "News", "Patience"]

_K = TypeVar("_K", bound=Hashable)
#: For so long, and in so many answers after the first one.
_SURE_SECS = 5.0
_SURE_ANSWERS = 3


class _Heard(NamedTuple):
    """When, and in which answer, it was said first and last."""

    since: float
    first: int
    until: float
    last: int
    lowest: int


class Patience(Generic[_K]):
    """What was heard that is hard to believe, by what it is about.

    >>> patience = Patience[str]()
    >>> [patience.is_sure("t-0", 60, now=now, answer=answer) for now, answer in ((0, 1), (1, 9), (6, 10))]
    [False, False, True]
    """

    def __init__(self) -> None:
        self._heard: dict[_K, _Heard] = {}

    def __len__(self) -> int:
        return len(self._heard)

    def is_sure(self, about: _K, end: int, *, now: float, answer: int) -> bool:
        """Kafka has said so in its answer of that number: whether it has done so for long and often enough.

        The same answer may be shown again. That is no news, however late it is.
        """
        heard = self._heard.get(about, _Heard(now, answer, now, answer, end))
        if answer > heard.last:
            heard = heard._replace(until=now, last=answer)
        self._heard[about] = heard = heard._replace(lowest=min(heard.lowest, end))
        return heard.until - heard.since >= _SURE_SECS and heard.last - heard.first >= _SURE_ANSWERS

    def lowest(self, about: _K) -> int:
        """The lowest end that was heard: what was written since then has not been read."""
        return self._heard[about].lowest

    def forget(self, about: _K) -> None:
        """It is settled, or was not so."""
        self._heard.pop(about, None)

    def keep(self, about: set[_K]) -> None:
        """Of all others nothing of the kind was said this time."""
        for one in self._heard.keys() - about:
            del self._heard[one]


class News(NamedTuple):
    """What an answer of Kafka's means for the positions.

    ``held``: partitions that get nothing more for now. ``remade``: topics that are others than before, with their new ids;
    ``cut``: partitions that go on at an earlier position. ``unclear``: partitions that end before their positions too, at which
    offsets, but of topics whose ids are not known, so that they are cut or made anew.
    """

    held: frozenset[Partition]
    remade: dict[str, str]
    cut: Positions
    unclear: Positions


class Doubts:
    """For all partitions of a spout."""

    def __init__(self) -> None:
        self._topics = Patience[tuple[str, str]]()
        self._partitions = Patience[Partition]()
        self._nameless = Patience[str]()

    def __bool__(self) -> bool:
        """Whether something is being waited for."""
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
        told: Mapping[Partition, int],
    ) -> News:
        """Compare ``positions`` in the topics with the ids ``known`` with what Kafka said in answer number ``answer``.

        ``told`` is how many answers have had the end of each partition: not every answer has all of them.
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
        sure = [p for p in sorted(lower) if self._partitions.is_sure(p, ends[p], now=now, answer=told[p])]
        # Without both ids nobody can tell a topic that was made anew. That they are not told for once means nothing.
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
        return News(frozenset(held), remade, cut, unclear)
