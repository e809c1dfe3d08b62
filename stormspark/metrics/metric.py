"""The metrics that components can register (J18).

As in Storm there are two kinds. Metrics of the first kind are reset when they are read, except `AssignableMetric` and
`StateMetric`. Metrics of the second kind are never reset. Both kinds are read once per interval, which Storm calls a bucket. If a
reading is None, it is not reported.
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
    """One reading of a metric of one task.

    ``at_ms`` is in epoch milliseconds, and ``bucket_secs`` is the interval of the readings.
    """

    component: str
    task: int
    name: str
    value: Any
    at_ms: int
    bucket_secs: float


class Metric(ABC):
    """A metric, which has a value that can be read (Storm's IMetric)."""

    @abstractmethod
    def get_value_and_reset(self) -> Any:
        """Return the value, and reset it if this kind of metric is reset; None if there is nothing to report."""


class CountMetric(Metric):
    """A count that begins at 0 after each reading.

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
        """Return the count since the last reading, and reset it."""
        value, self._value = self._value, 0
        return value


class MultiCountMetric(Metric):
    """A `CountMetric` per key.

    >>> words = MultiCountMetric(); words.scope("storm").incr(); words.scope("spark").incr_by(2)
    >>> words.get_value_and_reset()
    {'storm': 1, 'spark': 2}
    """

    def __init__(self) -> None:
        self._counts: defaultdict[str, CountMetric] = defaultdict(CountMetric)

    def scope(self, key: str) -> CountMetric:
        """Return the counter of ``key``."""
        return self._counts[key]

    def get_value_and_reset(self) -> dict[str, int]:
        """Return the counts by key since the last reading, and reset them."""
        return {key: count.get_value_and_reset() for key, count in self._counts.items()}


class AssignableMetric(Metric):
    """A metric that holds the value assigned last.

    >>> AssignableMetric(3).get_value_and_reset()
    3
    """

    def __init__(self, value: Any = None) -> None:
        self.value = value

    def set_value(self, value: Any) -> None:
        """Assign a value."""
        self.value = value

    def get_value_and_reset(self) -> Any:
        """Return the value, which is not reset."""
        return self.value


class StateMetric(Metric):
    """A metric whose value a function returns at each reading.

    >>> queue = [1, 2]
    >>> StateMetric(lambda: len(queue)).get_value_and_reset()
    2
    """

    def __init__(self, value_of: Callable[[], Any]) -> None:
        self.value_of = value_of

    def get_value_and_reset(self) -> Any:
        """Return the function's current value."""
        return self.value_of()


class CombinedMetric(Metric):
    """A metric that combines updates into one value of the same type (Storm's ICombiner).

    It begins at ``identity`` after each reading.

    >>> largest = CombinedMetric(max, 0); largest.update(3); largest.update(2)
    >>> largest.get_value_and_reset(), largest.get_value_and_reset()
    (3, 0)
    """

    def __init__(self, combine: Callable[[Any, Any], Any], identity: Any) -> None:
        self._combine = combine
        self._identity = self._value = identity

    def update(self, value: Any) -> None:
        """Combine ``value`` with the current one."""
        self._value = self._combine(self._value, value)

    def get_value_and_reset(self) -> Any:
        """Return the combined value since the last reading, and reset it."""
        value, self._value = self._value, self._identity
        return value


class Reducer(ABC):
    """The rule by which a `ReducedMetric` collects updates and computes its result (Storm's IReducer)."""

    @abstractmethod
    def init(self) -> Any:
        """Return the accumulator before any update."""

    @abstractmethod
    def reduce(self, accumulated: Any, value: Any) -> Any:
        """Return ``accumulated`` with ``value`` added."""

    @abstractmethod
    def extract(self, accumulated: Any) -> Any:
        """Return the result; None if there is none."""


class MeanReducer(Reducer):
    """A reducer that computes the mean of the updates; None if there were none."""

    def init(self) -> tuple[float, int]:
        """Return an empty sum and count."""
        return 0.0, 0

    def reduce(self, accumulated: tuple[float, int], value: float) -> tuple[float, int]:
        """Add one value."""
        total, count = accumulated
        return total + value, count + 1

    def extract(self, accumulated: tuple[float, int]) -> float | None:
        """Return the mean."""
        total, count = accumulated
        return total / count if count else None


class ReducedMetric(Metric):
    """A metric that reduces updates to one value, for example their mean.

    >>> size = ReducedMetric(MeanReducer()); size.update(1); size.update(4)
    >>> size.get_value_and_reset(), size.get_value_and_reset()
    (2.5, None)
    """

    def __init__(self, reducer: Reducer) -> None:
        self._reducer = reducer
        self._accumulated = reducer.init()

    def update(self, value: Any) -> None:
        """Add ``value`` to the updates."""
        self._accumulated = self._reducer.reduce(self._accumulated, value)

    def get_value_and_reset(self) -> Any:
        """Return the reduced value since the last reading, and reset it."""
        value = self._reducer.extract(self._accumulated)
        self._accumulated = self._reducer.init()
        return value


class MultiReducedMetric(Metric):
    """A `ReducedMetric` per key.

    >>> size = MultiReducedMetric(MeanReducer); size.scope("in").update(2)
    >>> size.get_value_and_reset()
    {'in': 2.0}
    """

    def __init__(self, make_reducer: Callable[[], Reducer]) -> None:
        self._make_reducer = make_reducer
        self._metrics: dict[str, ReducedMetric] = {}

    def scope(self, key: str) -> ReducedMetric:
        """Return the metric of ``key``."""
        if key not in self._metrics:
            self._metrics[key] = ReducedMetric(self._make_reducer())
        return self._metrics[key]

    def get_value_and_reset(self) -> dict[str, Any]:
        """Return the values by key, without keys that have no value."""
        values = {key: metric.get_value_and_reset() for key, metric in self._metrics.items()}
        return {key: value for key, value in values.items() if value is not None}


# ---- the second kind: metrics that are not reset ----------------------------------------------------------------


class Counter(Metric):
    """A count that goes up and down for the life of its task.

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
        """Return the count, which is not reset."""
        return self.count


class Gauge(StateMetric):
    """A metric whose value a function returns at each reading."""


class Meter(Metric):
    """The number of events, in total and per second since the metric was made. ``clock`` returns seconds.

    >>> now = [0.0]
    >>> requests = Meter(lambda: now[0]); requests.mark(10); now[0] = 4.0
    >>> requests.get_value_and_reset()
    {'count': 10, 'mean_rate': 2.5}
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock, self._began = clock, clock()
        self.count = 0

    def mark(self, count: int = 1) -> None:
        """Count ``count`` events."""
        self.count += count

    def get_value_and_reset(self) -> dict[str, float]:
        """Return count and rate, which are not reset."""
        seconds = self._clock() - self._began
        return {"count": self.count, "mean_rate": self.count / seconds if seconds > 0 else 0.0}


class Timer(Metric):
    """The durations of something: count, mean and percentiles in milliseconds, for the life of its task.

    >>> lookups = Timer(); lookups.update(0.002)
    >>> lookups.get_value_and_reset()["count"]
    1
    """

    def __init__(self) -> None:
        self._histogram = Histogram()

    def update(self, seconds: float) -> None:
        """Add one duration, in seconds."""
        self._histogram.add(seconds)

    def get_value_and_reset(self) -> dict[str, float]:
        """Return the summary, which is not reset."""
        return {"count": self._histogram.count, **asdict(self._histogram.summary())}


class Distribution(Metric):
    """The distribution of numbers from 0 on: count, mean and percentiles, for the life of its task (Storm's histogram).

    >>> sizes = Distribution()
    >>> for size in (10, 20, 30): sizes.update(size)
    >>> sizes.get_value_and_reset()["mean"]
    20.0
    """

    def __init__(self) -> None:
        self._histogram = Histogram()

    def update(self, number: float) -> None:
        """Add ``number``."""
        self._histogram.add(number / 1000)  # the histogram takes seconds, and its summary has milliseconds

    def get_value_and_reset(self) -> dict[str, float]:
        """Return the summary, which is not reset."""
        return {"count": self._histogram.count, **asdict(self._histogram.summary())}
