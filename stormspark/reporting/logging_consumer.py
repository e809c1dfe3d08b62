"""Storm's ``LoggingMetricsConsumer``: each data point becomes a line, whose columns are separated by tabs (J17)."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from stormspark.api import TopologyContext
from stormspark.api.metrics_consumer import ErrorReporter, MetricsConsumer, TaskInfo
from stormspark.metrics import DataPoint
from stormspark.private_files import PrivateLogFile
from stormspark.reporting.consumer_context import ConsumerContext

__all__ = ["LoggingMetricsConsumer", "lines"]

#: Storm cuts and fills names to this width.
_NAME_LETTERS = 23
_FILE = "metrics.log"
_MAX_BYTES, _BACKUPS = 1_000_000, 5


def lines(task_info: TaskInfo, data_points: Sequence[DataPoint]) -> list[str]:
    r"""Return Storm's lines: the time, the worker, the task, the name and the value.

    >>> point = DataPoint("split", 3, "__execute-count", {"lines:default": 20}, 0, 60.0)
    >>> lines(TaskInfo(1795861973, "node-1", 6700, 3, "split", 60), [point])
    ['1795861973\t         node-1:6700\t  3:split      \t__execute-count        \t{lines:default=20}']
    """
    header = (
        f"{task_info.timestamp}\t{task_info.src_worker_host:>15}:{task_info.src_worker_port:<4}\t"
        f"{task_info.src_task_id:3}:{task_info.src_component_id:<11}\t"
    )
    return [
        f"{header}{point.name[:_NAME_LETTERS]:<{_NAME_LETTERS}}\t{_in_java(point.value)}"
        for point in data_points
    ]


def _in_java(value: Any) -> str:
    """Return a value as Java prints it, on one line, because scripts read these lines."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_in_java(key)}={_in_java(one)}" for key, one in value.items()) + "}"
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    return str(value).replace("\n", "\\n").replace("\t", "\\t")


class LoggingMetricsConsumer(MetricsConsumer):
    """Writes all data points to ``metrics.log`` in the folder with the topology's logs, which is rotated as these are.

    If the topology has no such folder, the lines go to the logger ``stormspark.metrics``.
    """

    def prepare(
        self, conf: Mapping[str, Any], argument: Any, context: TopologyContext, error_reporter: ErrorReporter
    ) -> None:
        """Open the file."""
        folder = context.log_folder if isinstance(context, ConsumerContext) else None
        self._log: logging.Handler | None = None
        if folder is not None:
            self._log = PrivateLogFile(
                Path(folder, _FILE),
                maxBytes=int(conf.get("stormspark.log.max.bytes") or _MAX_BYTES),
                backupCount=int(conf.get("stormspark.log.backup.count", _BACKUPS)),
            )
            self._log.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
        self._logger = logging.getLogger("stormspark.metrics")

    def handle_data_points(self, task_info: TaskInfo, data_points: Sequence[DataPoint]) -> None:
        """Write a line for each data point."""
        for line in lines(task_info, data_points):
            if self._log is None:
                self._logger.info("%s", line)
            else:
                self._log.handle(
                    logging.LogRecord("stormspark.metrics", logging.INFO, __file__, 0, "%s", (line,), None)
                )

    def cleanup(self) -> None:
        """Close the file."""
        if self._log is not None:
            self._log.close()
