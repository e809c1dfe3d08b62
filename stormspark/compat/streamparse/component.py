"""The common base of pystorm's spouts and bolts (C14, C19, B20)."""

from __future__ import annotations

import logging
import os
import sys
import traceback
from collections.abc import Mapping
from typing import Any, Protocol

from stormspark.api import TopologyContext
from stormspark.compat.streamparse.task_log import TASK_LEVELS, task_logger
from stormspark.compat.streamparse.tuples import Tuple
from stormspark.metrics import Metric
from stormspark.multilang.handshake import context_message

__all__ = ["Component", "LogStream", "StormHandler", "Surroundings", "Tuple", "begin"]

_SERIALIZERS = ("json", "msgpack")


class _Reports(Protocol):
    """The receiver of a component's errors: the collector of its task."""

    def report_error(self, error: BaseException | str) -> None:
        """Show an error in logs and statistics."""


class _LastValues(Metric):
    """For each name, the newest value that ``report_metric`` got since the last reading."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}

    def get_value_and_reset(self) -> dict[str, Any] | None:
        values, self.values = self.values, {}
        return values or None


class Surroundings:
    """A component's view of its task. It is an object of its own, so that its names don't clash with those of users' classes."""

    def __init__(self, context: TopologyContext, reports: _Reports) -> None:
        self.log = context.logger
        self.reports = reports
        self.metric = context.register_metric("pystorm", _LastValues())


class Component:
    """A spout or a bolt of pystorm. It is made in its task and never pickled: only its class is.

    The arguments are pystorm's. They have no effect, because no pipe leads to another process; only an unknown ``serializer`` is
    refused.
    """

    #: Whether an exception ends this instance, so that its task starts again with a new one (C14).
    exit_on_exception = True

    # All of these are set before `initialize`, and None until then, as in pystorm.
    topology_name: str = None  # type: ignore[assignment]
    task_id: int = None  # type: ignore[assignment]
    component_name: str = None  # type: ignore[assignment]
    #: ``topology.debug``.
    debug: bool = None  # type: ignore[assignment]
    storm_conf: dict[str, Any] = None  # type: ignore[assignment]
    context: dict[str, Any] = None  # type: ignore[assignment]
    #: For log lines; see ``pystorm.log.*``.
    logger: logging.Logger = None  # type: ignore[assignment]

    _stormspark: Surroundings

    def __init__(
        self,
        input_stream: Any = None,
        output_stream: Any = None,
        rdb_signal: Any = "SIGUSR1",
        serializer: str = "json",
    ) -> None:
        if serializer not in _SERIALIZERS:
            msg = f"Unknown serializer: {serializer!r}; there are {', '.join(map(repr, _SERIALIZERS))}"
            raise ValueError(msg)
        self.pid = os.getpid()
        self.serializer = serializer

    def initialize(self, storm_conf: dict[str, Any], context: dict[str, Any]) -> None:
        """Prepare the component, for instance open connections. Called once, before anything else."""

    def emit(self, *args: Any, **kwargs: Any) -> list[int] | None:
        """Emit a tuple: spouts and bolts override this."""
        raise NotImplementedError

    def log(self, message: object, level: str | None = None) -> None:
        """Write to the task's log, whatever ``pystorm.log.level`` is. Levels are trace, debug, info, warn and error."""
        self._stormspark.log.log(TASK_LEVELS.get(level or "info", logging.INFO), "%s", message)

    def raise_exception(self, exception: BaseException, tup: Any = None) -> None:
        """Report an error. Call this while the exception is being handled."""
        what = f" while processing Tuple {tup!r}" if tup else ""
        self._stormspark.reports.report_error(
            f"Python {type(exception).__name__} raised{what}\n{traceback.format_exc()}"
        )

    def report_metric(self, name: str, value: Any) -> None:
        """Show a value in the statistics, under ``pystorm``: the last value of each name, once per minute."""
        self._stormspark.metric.values[name] = value

    def run(self) -> None:
        """Do nothing if the calling module was imported: the component runs in its task.

        If the calling module is a script, end it with a message that says so.
        """
        if sys._getframe(1).f_globals.get("__name__") == "__main__":
            name = type(self).__qualname__
            msg = (
                f"{name} can't be run alone, and no process is started for it: run the topology that it is part of by "
                f"`stormspark run topologies/NAME.py`"
            )
            raise SystemExit(msg)

    @staticmethod
    def is_heartbeat(tup: Tuple) -> bool:
        """Whether the tuple is a heartbeat. There are none here."""
        return tup.task == -1 and tup.stream == "__heartbeat"

    def _handle_run_exception(self, exc: Exception) -> None:
        """Report an exception of ``process`` or ``next_tuple``. If it ends the instance, the task itself reports it."""
        if not self.exit_on_exception:
            self.raise_exception(exc)


def begin(component: Component, conf: Mapping[str, Any], context: TopologyContext) -> None:
    """Set a component's attributes, then initialize it."""
    storm_conf = {"topology.name": context.topology_name, **conf}
    component.topology_name = storm_conf["topology.name"]
    component.task_id = task = context.this_task_id
    component.component_name = name = context.this_component_id
    component.debug = storm_conf.get("topology.debug", False)
    component.storm_conf = storm_conf
    component.context = context_message(context)
    component.logger = task_logger(storm_conf, name, task, context.logger)
    component.initialize(storm_conf, component.context)


class StormHandler(logging.Handler):
    """A handler for loggers whose records do not reach the task's log by themselves."""

    def __init__(self, serializer: Any = None) -> None:
        super().__init__()

    def emit(self, record: logging.LogRecord) -> None:
        """Pass the record on, unless the logger that it comes from does so itself."""
        if not logging.getLogger(record.name).propagate:
            logging.getLogger().handle(record)


class LogStream:
    """A stream that logs its lines. stormspark does not need it, because a task's prints go to its log (W8)."""

    def __init__(self, logger: logging.Logger) -> None:
        self.logger = logger

    def write(self, message: str) -> None:
        """Log the message, unless it is blank."""
        if message.strip():
            self.logger.info(message)

    def flush(self) -> None:
        """Do nothing: no output is buffered."""
