"""heronpy's metrics (J19); they are registered with ``context.register_metric(name, metric, seconds)``."""

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
    """Anything with a value to be read."""

    @abstractmethod
    def get_value_and_reset(self) -> Any:
        """The value since the last reading."""


class CountMetric(IMetric):
    """Counts; begins at 0 after each reading.

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
    """A count for each of several keys.

    >>> words = MultiCountMetric(); words.add_key("spark"); words.incr("storm", 2)
    >>> words.get_value_and_reset()
    {'spark': 0, 'storm': 2}
    """

    def __init__(self) -> None:
        self.value: dict[Any, CountMetric] = {}

    def add_key(self, key: Any) -> None:
        """Let ``key`` be there, with 0."""
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
    """How a `ReducedMetric` collects."""

    @abstractmethod
    def init(self) -> None:
        """Begin anew."""

    @abstractmethod
    def reduce(self, value: Any) -> None:
        """Take ``value`` in."""

    @abstractmethod
    def extract(self) -> Any:
        """The result."""


class MeanReducer(IReducer):
    """The mean of what came; None where nothing did."""

    def init(self) -> None:
        """Begin anew."""
        self.sum: float = 0
        self.count = 0

    def reduce(self, value: Any) -> None:
        """Take a number in."""
        self.sum += float(value)
        self.count += 1

    def extract(self) -> float | None:
        """The mean."""
        return self.sum / self.count if self.count else None


class ReducedMetric(IMetric):
    """Reduces updates to one value, by a class of `IReducer`.

    >>> size = ReducedMetric(MeanReducer); size.update(1); size.update(4)
    >>> size.get_value_and_reset(), size.get_value_and_reset()
    (2.5, None)
    """

    def __init__(self, reducer_cls: Callable[[], IReducer]) -> None:
        self.reducer = reducer_cls()
        self.reducer.init()

    def update(self, value: Any) -> None:
        """Reduce ``value`` in."""
        self.reducer.reduce(value)

    def get_value_and_reset(self) -> Any:
        """The reduced value since the last reading."""
        value = self.reducer.extract()
        self.reducer.init()
        return value


class MultiReducedMetric(IMetric):
    """A `ReducedMetric` for each of several keys."""

    def __init__(self, reducer: Callable[[], IReducer]) -> None:
        self.value: dict[Any, ReducedMetric] = {}
        self.reducer = reducer

    def add_key(self, key: Any) -> None:
        """Let ``key`` be there."""
        if key not in self.value:
            self.value[key] = ReducedMetric(self.reducer)

    def update(self, key: Any, value: Any) -> None:
        """Reduce ``value`` into that of ``key``."""
        self.add_key(key)
        self.value[key].update(value)

    def get_value_and_reset(self) -> dict[Any, Any]:
        """The values by key since the last reading."""
        return {key: metric.get_value_and_reset() for key, metric in list(self.value.items())}


class AssignableMetrics(IMetric):
    """Holds whatever was assigned last."""

    def __init__(self, init_val: Any) -> None:
        self.value = init_val

    def update(self, value: Any) -> None:
        """Assign."""
        self.value = value

    def get_value_and_reset(self) -> Any:
        """The value, which stays."""
        return self.value


class MultiAssignableMetrics(IMetric):
    """One for each of several keys."""

    def __init__(self) -> None:
        self.map: dict[Any, AssignableMetrics] = {}

    def update(self, key: Any, value: Any) -> None:
        """Assign to ``key``."""
        if key in self.map:
            self.map[key].update(value)
        else:
            self.map[key] = AssignableMetrics(value)

    def get_value_and_reset(self) -> dict[Any, Any]:
        """The values by key, which stay."""
        return {key: metric.get_value_and_reset() for key, metric in self.map.items()}


def MeanReducedMetric() -> ReducedMetric:  # noqa: N802 - heronpy's name, called like a class
    """A `ReducedMetric` of means."""
    return ReducedMetric(MeanReducer)


def MultiMeanReducedMetric() -> MultiReducedMetric:  # noqa: N802
    """A `MultiReducedMetric` of means."""
    return MultiReducedMetric(MeanReducer)
