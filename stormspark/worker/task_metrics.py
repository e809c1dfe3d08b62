"""The metrics that a component registers, and their readings (J18)."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import TYPE_CHECKING

from stormspark.coroutines import refuse_coroutine
from stormspark.metrics import DataPoint, Metric, StateMetric
from stormspark.worker.tuples.salvage import error_text

if TYPE_CHECKING:
    from stormspark.worker.task_services import ServesInstance

__all__ = ["TaskMetrics"]


class TaskMetrics:
    """The metrics of one task's instance, and the readings that the driver has not got yet."""

    def __init__(self, task: ServesInstance) -> None:
        self._task = task
        self._names: set[str] = set()
        self._readings: list[DataPoint] = []

    def register(self, name: str, metric: Metric, bucket_secs: float) -> Callable[[], None]:
        """Register a metric of the current instance. Return the function with which a timer reads the metric."""
        task = self._task
        if name in self._names:
            msg = f"{task.name}: there is a metric {name!r} already; choose another name"
            raise RuntimeError(msg)
        if not isinstance(metric, Metric):
            msg = f"{task.name}: metric {name!r} must be a Metric, with get_value_and_reset(), got {metric!r}"
            raise TypeError(msg)
        refuse_coroutine(metric.get_value_and_reset, f"{task.name}: the reading of metric {name!r}")
        if isinstance(metric, StateMetric):
            refuse_coroutine(metric.value_of, f"{task.name}: the function of metric {name!r}")
        self._names.add(name)

        def read() -> None:
            value = metric.get_value_and_reset()
            try:
                pickle.dumps(value, 5)
            except Exception as error:
                task.report_error(
                    f"metric {name!r} has read a value of type {type(value).__qualname__}, which can't go to the driver: "
                    f"{error_text(error)}. Return numbers, strings, or lists and dicts of them"
                )
                return
            if value is not None:
                at_ms = int(task.now() * 1000)
                self._readings.append(DataPoint(task.component.id, task.id, name, value, at_ms, bucket_secs))

        return read

    def forget(self) -> None:
        """Forget the registered metrics, because their instance has ended. Readings stay."""
        self._names.clear()

    def take(self) -> list[DataPoint]:
        """Return the readings since the last call, oldest first."""
        readings = self._readings[:]
        del self._readings[: len(readings)]  # the same list, because another thread may be adding a reading
        return readings
