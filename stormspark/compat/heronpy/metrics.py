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
    """The base class of metrics: an object with a value that is read from time to time."""

    @abstractmethod
    def get_value_and_reset(self) -> Any:
        """The value since the last reading."""


class CountMetric(IMetric):
    """A count, which begins at 0 after each reading.

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
        """The count since the last reading."""
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
        """Add ``key`` with the count 0, unless it is there."""
        self.incr(key, 0)

    def incr(self, key: Any, to_add: int = 1) -> None:
        """Add ``to_add`` to the count of ``key``."""
        if key not in self.value:
            self.value[key] = CountMetric()
        self.value[key].incr(to_add)

    def get_value_and_reset(self) -> dict[Any, int]:
        """The counts by key since the last reading."""
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
        """The result."""


class MeanReducer(IReducer):
    """The mean of the values; None if there were none."""

    def init(self) -> None:
        """Begin again, without values."""
        self.sum: float = 0
        self.count = 0

    def reduce(self, value: Any) -> None:
        """Add a number."""
        self.sum += float(value)
        self.count += 1

    def extract(self) -> float | None:
        """The mean."""
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
        """The reduced value since the last reading."""
        value = self.reducer.extract()
        self.reducer.init()
        return value


class MultiReducedMetric(IMetric):
    """One `ReducedMetric` per key."""

    def __init__(self, reducer: Callable[[], IReducer]) -> None:
        self.value: dict[Any, ReducedMetric] = {}
        self.reducer = reducer

    def add_key(self, key: Any) -> None:
        """Add ``key``, unless it is there."""
        if key not in self.value:
            self.value[key] = ReducedMetric(self.reducer)

    def update(self, key: Any, value: Any) -> None:
        """Add a value to the reduction of ``key``."""
        self.add_key(key)
        self.value[key].update(value)

    def get_value_and_reset(self) -> dict[Any, Any]:
        """The values by key since the last reading."""
        return {key: metric.get_value_and_reset() for key, metric in list(self.value.items())}


class AssignableMetrics(IMetric):
    """Holds the value that was assigned last."""

    def __init__(self, init_val: Any) -> None:
        self.value = init_val

    def update(self, value: Any) -> None:
        """Assign a value."""
        self.value = value

    def get_value_and_reset(self) -> Any:
        """The value. It does not change when it is read."""
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
        """The values by key. They do not change when they are read."""
        return {key: metric.get_value_and_reset() for key, metric in self.map.items()}


def MeanReducedMetric() -> ReducedMetric:  # noqa: N802 - heronpy's name, called like a class
    """A `ReducedMetric` of means."""
    return ReducedMetric(MeanReducer)


def MultiMeanReducedMetric() -> MultiReducedMetric:  # noqa: N802
    """A `MultiReducedMetric` of means."""
    return MultiReducedMetric(MeanReducer)
