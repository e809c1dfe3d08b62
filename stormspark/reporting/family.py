"""A family of samples: a name, a kind, and a value for each set of labels, as Prometheus has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from stormspark.metrics import Histogram

__all__ = ["BOUNDS", "PREFIX", "Distribution", "Family", "Sample"]

#: With what all names begin.
PREFIX = "stormspark_"
#: The upper bounds of the buckets of latencies, in seconds.
BOUNDS = (1e-5, 1e-4, 1e-3, 5e-3, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class Distribution(NamedTuple):
    """Durations in seconds: how many were at most each of `BOUNDS`, how many in all, and their sum.

    Durations of which only the mean is known count in ``total`` and ``seconds`` alone.
    """

    at_most: tuple[int, ...]
    total: int
    seconds: float
    #: ``p50`` and ``p99`` of all durations, in seconds, as far as they are known.
    percentiles: Mapping[str, float]

    @classmethod
    def of(cls, histogram: Histogram) -> Distribution:
        """Return the distribution of a histogram."""
        percentiles = {"p50": histogram.percentile(0.5), "p99": histogram.percentile(0.99)}
        return cls(
            tuple(histogram.at_most(BOUNDS)),
            histogram.count,
            histogram.seconds,
            {share: ms / 1000 for share, ms in percentiles.items() if ms is not None},
        )


class Sample(NamedTuple):
    """The value for one set of labels."""

    labels: Mapping[str, str]
    value: float | Distribution


@dataclass(frozen=True)
class Family:
    """All samples of one name. ``kind`` is ``counter``, ``gauge`` or ``histogram``."""

    name: str
    kind: str
    help: str
    samples: Sequence[Sample]
