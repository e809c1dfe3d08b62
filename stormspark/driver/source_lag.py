"""How far the sources of a topology are behind: for each partition, what was read and what there is (K9)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

__all__ = ["Lags", "PartitionLag", "lag_between"]


class PartitionLag(NamedTuple):
    """The first offset of a partition that no batch has read, and the offset at which the partition ends."""

    read: int
    end: int

    @property
    def lag(self) -> int:
        """How many messages wait in the partition."""
        return max(0, self.end - self.read)


#: By spout, topic and partition.
Lags: TypeAlias = Mapping[str, Mapping[str, Mapping[str, PartitionLag]]]


def lag_between(read: Any, end: Any) -> dict[str, dict[str, PartitionLag]]:
    """Return the lag of each partition, by topic, from the positions of a source of Kafka: of `KafkaSpout` or of Spark itself.

    Positions of any other source give nothing.

    >>> lag_between({"words": {"0": 3, "id": "bLzl"}}, {"words": {"0": 10, "1": 4, "id": "bLzl"}})["words"]
    {'0': PartitionLag(read=3, end=10), '1': PartitionLag(read=0, end=4)}
    >>> lag_between({"version": 3}, None)
    {}
    """
    found: dict[str, dict[str, PartitionLag]] = {}
    if not isinstance(end, Mapping):
        return found
    for topic, ends in end.items():
        if not isinstance(ends, Mapping):
            return {}
        before = read.get(topic) if isinstance(read, Mapping) else None
        known = before if isinstance(before, Mapping) else {}
        found[str(topic)] = {
            partition: PartitionLag(known.get(partition, 0), offset)
            for partition, offset in ends.items()
            if isinstance(offset, int)
        }
    return found
