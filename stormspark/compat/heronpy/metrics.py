"""heronpy's metrics (J19). Register one with ``context.register_metric(name, metric, seconds)``."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

from stormspark.metrics import Metric

__all__ = [
    "AssignableMetrics",
    "CountMetric",
    "IMetric",
    "IReducer",
    "MeanReducedMetric",
    "MeanReducer",
    "MultiAssignableMetrics",
    "MultiCountMetric",
    "MultiMeanReducedMetric",
    "MultiReducedMetric",
    "ReducedMetric",
]


class IMetric(Metric):
    """The base class of metrics. The value of a metric is read from time to time."""

    @abstractmethod
    def get_value_and_reset(self) -> Any:
        """Return the value that has accumulated since the last reading, and begin with a new value."""


class CountMetric(IMetric):
    """A count. After each reading it begins at 0 again.

    >>> words = CountMetric(); words.incr(); words.incr(4)
    >>> words.get_value_and_reset(), words.value
    (5, 0)
    """

    def __init__(self) -> None:
        self.value = 0

    def incr(self, to_add: int = 1) -> None:
        """Add ``to_add``."""
        self.value += to_add

    def get_value_and_reset(self) -> int:
        """Return the count since the last reading, and begin at 0 again."""
        value, self.value = self.value, 0
        return value


class MultiCountMetric(IMetric):
    """One count per key.

    >>> words = MultiCountMetric(); words.add_key("spark"); words.incr("storm", 2)
    >>> words.get_value_and_reset()
    {'spark': 0, 'storm': 2}
    """

    def __init__(self) -> None:
        self.value: dict[Any, CountMetric] = {}

    def add_key(self, key: Any) -> None:
        """Add ``key`` with the count 0, unless it already has a count."""
        self.incr(key, 0)

    def incr(self, key: Any, to_add: int = 1) -> None:
        """Add ``to_add`` to the count of ``key``."""
        if key not in self.value:
            self.value[key] = CountMetric()
        self.value[key].incr(to_add)

    def get_value_and_reset(self) -> dict[Any, int]:
        """Return the counts by key since the last reading."""
        return {key: count.get_value_and_reset() for key, count in list(self.value.items())}


class IReducer:
    """The base class of reducers, which turn many values into one for a `ReducedMetric`."""

    @abstractmethod
    def init(self) -> None:
        """Begin again, without values."""

    @abstractmethod
    def reduce(self, value: Any) -> None:
        """Add a value."""

    @abstractmethod
    def extract(self) -> Any:
        """Return the result for the values that were added."""


class MeanReducer(IReducer):
    """A reducer that computes the mean of the values. Without values, the result is None."""

    def init(self) -> None:
        """Begin again, without values."""
        self.sum: float = 0
        self.count = 0

    def reduce(self, value: Any) -> None:
        """Add a number."""
        self.sum += float(value)
        self.count += 1

    def extract(self) -> float | None:
        """Return the mean."""
        return self.sum / self.count if self.count else None


class ReducedMetric(IMetric):
    """Reduces all updates between two readings to one value, with an `IReducer`.

    >>> size = ReducedMetric(MeanReducer); size.update(1); size.update(4)
    >>> size.get_value_and_reset(), size.get_value_and_reset()
    (2.5, None)
    """

    def __init__(self, reducer_cls: Callable[[], IReducer]) -> None:
        self.reducer = reducer_cls()
        self.reducer.init()

    def update(self, value: Any) -> None:
        """Add a value to the reduction."""
        self.reducer.reduce(value)

    def get_value_and_reset(self) -> Any:
        """Return the reduced value since the last reading."""
        value = self.reducer.extract()
        self.reducer.init()
        return value


class MultiReducedMetric(IMetric):
    """One `ReducedMetric` per key."""

    def __init__(self, reducer: Callable[[], IReducer]) -> None:
        self.value: dict[Any, ReducedMetric] = {}
        self.reducer = reducer

    def add_key(self, key: Any) -> None:
        """Add ``key``, unless it was added before."""
        if key not in self.value:
            self.value[key] = ReducedMetric(self.reducer)

    def update(self, key: Any, value: Any) -> None:
        """Add a value to the reduction of ``key``."""
        self.add_key(key)
        self.value[key].update(value)

    def get_value_and_reset(self) -> dict[Any, Any]:
        """Return the values by key since the last reading."""
        return {key: metric.get_value_and_reset() for key, metric in list(self.value.items())}


class AssignableMetrics(IMetric):
    """Holds the value that was assigned last."""

    def __init__(self, init_val: Any) -> None:
        self.value = init_val

    def update(self, value: Any) -> None:
        """Assign a value."""
        self.value = value

    def get_value_and_reset(self) -> Any:
        """Return the value. Reading does not change it."""
        return self.value


class MultiAssignableMetrics(IMetric):
    """One `AssignableMetrics` per key."""

    def __init__(self) -> None:
        self.map: dict[Any, AssignableMetrics] = {}

    def update(self, key: Any, value: Any) -> None:
        """Assign a value to ``key``."""
        if key in self.map:
            self.map[key].update(value)
        else:
            self.map[key] = AssignableMetrics(value)

    def get_value_and_reset(self) -> dict[Any, Any]:
        """Return the values by key. Reading does not change them."""
        return {key: metric.get_value_and_reset() for key, metric in self.map.items()}


def MeanReducedMetric() -> ReducedMetric:  # noqa: N802 - heronpy's name, called like a class
    """Return a `ReducedMetric` that computes means."""
    return ReducedMetric(MeanReducer)


def MultiMeanReducedMetric() -> MultiReducedMetric:  # noqa: N802
    """Return a `MultiReducedMetric` that computes means."""
    return MultiReducedMetric(MeanReducer)
