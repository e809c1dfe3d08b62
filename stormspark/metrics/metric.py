"""Metrics that components register: Storm's of the first kind, which are read and reset, and of the second, which go on (J18).

Both are read once a bucket, by ``read``. What is None then is not told.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable
from dataclasses import asdict
from typing import Any, NamedTuple

from stormspark.metrics.histogram import Histogram

__all__ = [
    "AssignableMetric",
    "CombinedMetric",
    "CountMetric",
    "Counter",
    "DataPoint",
    "Distribution",
    "Gauge",
    "MeanReducer",
    "Meter",
    "Metric",
    "MultiCountMetric",
    "MultiReducedMetric",
    "ReducedMetric",
    "Reducer",
    "StateMetric",
    "Timer",
]


class DataPoint(NamedTuple):
    """One reading of a metric of one task. ``at_ms`` is epoch milliseconds, ``bucket_secs`` how often it is read."""

    component: str
    task: int
    name: str
    value: Any
    at_ms: int
    bucket_secs: float


class Metric(ABC):
    """Anything with a value to be read (Storm's IMetric)."""

    @abstractmethod
    def get_value_and_reset(self) -> Any:
        """The value since the last reading; None where there is nothing to tell."""


class CountMetric(Metric):
    """Counts; begins at 0 after each reading.

    >>> words = CountMetric(); words.incr(); words.incr_by(4)
    >>> words.get_value_and_reset(), words.get_value_and_reset()
    (5, 0)
    """

    def __init__(self) -> None:
        self._value = 0

    def incr(self) -> None:
        """Add one."""
        self._value += 1

    def incr_by(self, count: int) -> None:
        """Add ``count``."""
        self._value += count

    def get_value_and_reset(self) -> int:
        """The count since the last reading."""
        value, self._value = self._value, 0
        return value


class MultiCountMetric(Metric):
    """A `CountMetric` for each of several keys.

    >>> words = MultiCountMetric(); words.scope("storm").incr(); words.scope("spark").incr_by(2)
    >>> words.get_value_and_reset()
    {'storm': 1, 'spark': 2}
    """

    def __init__(self) -> None:
        self._counts: defaultdict[str, CountMetric] = defaultdict(CountMetric)

    def scope(self, key: str) -> CountMetric:
        """The counter of ``key``."""
        return self._counts[key]

    def get_value_and_reset(self) -> dict[str, int]:
        """The counts by key since the last reading."""
        return {key: count.get_value_and_reset() for key, count in self._counts.items()}


class AssignableMetric(Metric):
    """Holds whatever was assigned last.

    >>> AssignableMetric(3).get_value_and_reset()
    3
    """

    def __init__(self, value: Any = None) -> None:
        self.value = value

    def set_value(self, value: Any) -> None:
        """Assign."""
        self.value = value

    def get_value_and_reset(self) -> Any:
        """The value, which stays."""
        return self.value


class StateMetric(Metric):
    """The value that a function gives when it is asked.

    >>> queue = [1, 2]
    >>> StateMetric(lambda: len(queue)).get_value_and_reset()
    2
    """

    def __init__(self, value_of: Callable[[], Any]) -> None:
        self._value_of = value_of

    def get_value_and_reset(self) -> Any:
        """What the function says now."""
        return self._value_of()


class CombinedMetric(Metric):
    """Combines updates into a value of their own kind (Storm's ICombiner); begins at ``identity`` after each reading.

    >>> largest = CombinedMetric(max, 0); largest.update(3); largest.update(2)
    >>> largest.get_value_and_reset(), largest.get_value_and_reset()
    (3, 0)
    """

    def __init__(self, combine: Callable[[Any, Any], Any], identity: Any) -> None:
        self._combine = combine
        self._identity = self._value = identity

    def update(self, value: Any) -> None:
        """Combine ``value`` in."""
        self._value = self._combine(self._value, value)

    def get_value_and_reset(self) -> Any:
        """The combined value since the last reading."""
        value, self._value = self._value, self._identity
        return value


class Reducer(ABC):
    """How a `ReducedMetric` collects updates and what comes out (Storm's IReducer)."""

    @abstractmethod
    def init(self) -> Any:
        """Nothing collected yet."""

    @abstractmethod
    def reduce(self, accumulated: Any, value: Any) -> Any:
        """``accumulated`` with ``value``."""

    @abstractmethod
    def extract(self, accumulated: Any) -> Any:
        """The result; None where there is none."""


class MeanReducer(Reducer):
    """The mean of the updates; None where there were none."""

    def init(self) -> tuple[float, int]:
        """Sum and count."""
        return 0.0, 0

    def reduce(self, accumulated: tuple[float, int], value: float) -> tuple[float, int]:
        """Add one."""
        total, count = accumulated
        return total + value, count + 1

    def extract(self, accumulated: tuple[float, int]) -> float | None:
        """The mean."""
        total, count = accumulated
        return total / count if count else None


class ReducedMetric(Metric):
    """Reduces updates to one value, for example their mean.

    >>> size = ReducedMetric(MeanReducer()); size.update(1); size.update(4)
    >>> size.get_value_and_reset(), size.get_value_and_reset()
    (2.5, None)
    """

    def __init__(self, reducer: Reducer) -> None:
        self._reducer = reducer
        self._accumulated = reducer.init()

    def update(self, value: Any) -> None:
        """Reduce ``value`` in."""
        self._accumulated = self._reducer.reduce(self._accumulated, value)

    def get_value_and_reset(self) -> Any:
        """The reduced value since the last reading."""
        value = self._reducer.extract(self._accumulated)
        self._accumulated = self._reducer.init()
        return value


class MultiReducedMetric(Metric):
    """A `ReducedMetric` for each of several keys.

    >>> size = MultiReducedMetric(MeanReducer); size.scope("in").update(2)
    >>> size.get_value_and_reset()
    {'in': 2.0}
    """

    def __init__(self, make_reducer: Callable[[], Reducer]) -> None:
        self._make_reducer = make_reducer
        self._metrics: dict[str, ReducedMetric] = {}

    def scope(self, key: str) -> ReducedMetric:
        """The metric of ``key``."""
        if key not in self._metrics:
            self._metrics[key] = ReducedMetric(self._make_reducer())
        return self._metrics[key]

    def get_value_and_reset(self) -> dict[str, Any]:
        """The values by key, without those that have none."""
        values = {key: metric.get_value_and_reset() for key, metric in self._metrics.items()}
        return {key: value for key, value in values.items() if value is not None}


# ---- the second kind: nothing is reset --------------------------------------------------------------------------


class Counter(Metric):
    """Counts up and down for the life of its task.

    >>> open_files = Counter(); open_files.inc(3); open_files.dec(); open_files.get_value_and_reset()
    2
    """

    def __init__(self) -> None:
        self.count = 0

    def inc(self, count: int = 1) -> None:
        """Count up."""
        self.count += count

    def dec(self, count: int = 1) -> None:
        """Count down."""
        self.count -= count

    def get_value_and_reset(self) -> int:
        """The count; nothing is reset."""
        return self.count


class Gauge(StateMetric):
    """The value of a function, when it is asked."""


class Meter(Metric):
    """How often something happened: in all, and a second since its task began. ``clock`` gives seconds.

    >>> now = [0.0]
    >>> requests = Meter(lambda: now[0]); requests.mark(10); now[0] = 4.0
    >>> requests.get_value_and_reset()
    {'count': 10, 'mean_rate': 2.5}
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock, self._began = clock, clock()
        self.count = 0

    def mark(self, count: int = 1) -> None:
        """It happened ``count`` times."""
        self.count += count

    def get_value_and_reset(self) -> dict[str, float]:
        """Count and rate; nothing is reset."""
        seconds = self._clock() - self._began
        return {"count": self.count, "mean_rate": self.count / seconds if seconds > 0 else 0.0}


class Timer(Metric):
    """How long something took: count, mean and percentiles in milliseconds for the life of its task.

    >>> lookups = Timer(); lookups.update(0.002)
    >>> lookups.get_value_and_reset()["count"]
    1
    """

    def __init__(self) -> None:
        self._histogram = Histogram()

    def update(self, seconds: float) -> None:
        """It took so many ``seconds``."""
        self._histogram.add(seconds)

    def get_value_and_reset(self) -> dict[str, float]:
        """The summary; nothing is reset."""
        return {"count": self._histogram.count, **asdict(self._histogram.summary())}


class Distribution(Metric):
    """How numbers from 0 on are distributed: count, mean and percentiles for the life of its task (Storm's histogram).

    >>> sizes = Distribution()
    >>> for size in (10, 20, 30): sizes.update(size)
    >>> sizes.get_value_and_reset()["mean"]
    20.0
    """

    def __init__(self) -> None:
        self._histogram = Histogram()

    def update(self, number: float) -> None:
        """Take ``number`` in."""
        self._histogram.add(number / 1000)  # the histogram's summary is in thousandths of what it takes

    def get_value_and_reset(self) -> dict[str, float]:
        """The summary; nothing is reset."""
        return {"count": self._histogram.count, **asdict(self._histogram.summary())}
