"""Consumers of metrics: objects of the user's that get each reading of each metric (J17)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from stormspark.metrics import DataPoint

if TYPE_CHECKING:
    from stormspark.api.context import TopologyContext

__all__ = ["ErrorReporter", "MetricsConsumer", "TaskInfo"]


class TaskInfo(NamedTuple):
    """Where data points come from (Storm's ``IMetricsConsumer.TaskInfo``).

    ``timestamp`` is in seconds since 1970, and ``update_interval_secs`` is the interval of the readings. The port is 6700 and the
    number of the worker, because workers have no ports. Task -1 of ``__system`` stands for a worker as a whole.
    """

    timestamp: int
    src_worker_host: str
    src_worker_port: int
    src_task_id: int
    src_component_id: str
    update_interval_secs: int


class ErrorReporter(Protocol):
    """Takes the errors of a consumer (Storm's ``IErrorReporter``)."""

    def report_error(self, error: BaseException | str) -> None:
        """Log an error. The topology goes on."""


class MetricsConsumer(ABC):
    """The base class of consumers of metrics (Storm's ``IMetricsConsumer``). Register one with
    `Config.register_metrics_consumer`, or with ``topology.metrics.consumer.register``.

    >>> class Print(MetricsConsumer):
    ...     def handle_data_points(self, task_info, data_points):
    ...         for point in data_points:
    ...             print(task_info.src_component_id, point.name, point.value)
    >>> Print().handle_data_points(TaskInfo(0, "a", 6700, 3, "split", 60), [DataPoint("split", 3, "words", 5, 0, 60.0)])
    split words 5

    A consumer lives in the driver, on a thread of its own. If it raises, the error is logged, and the next data points come.
    If it is too slow, old data points are dropped.
    """

    def prepare(  # noqa: B027 - a consumer may need no preparation
        self,
        conf: Mapping[str, Any],
        argument: Any,
        context: TopologyContext,
        error_reporter: ErrorReporter,
    ) -> None:
        """Begin. ``argument`` is what was registered with the class."""

    @abstractmethod
    def handle_data_points(self, task_info: TaskInfo, data_points: Sequence[DataPoint]) -> None:
        """Take readings of one task. Each has a ``name`` and a ``value``."""

    def cleanup(self) -> None:  # noqa: B027 - there may be nothing to do
        """End, because the topology ends."""
