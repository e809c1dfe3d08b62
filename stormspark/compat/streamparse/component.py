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
    """The receiver of a component's errors: the collector of the component's task."""

    def report_error(self, error: BaseException | str) -> None:
        """Show an error in logs and statistics."""


class _LastValues(Metric):
    """A metric: for each name, the newest value that ``report_metric`` has received since the last reading."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}

    def get_value_and_reset(self) -> dict[str, Any] | None:
        values, self.values = self.values, {}
        return values or None


class Surroundings:
    """A component's view of its task. It is a separate object so that its names don't clash with names in users' classes."""

    def __init__(self, context: TopologyContext, reports: _Reports) -> None:
        self.log = context.logger
        self.reports = reports
        self.metric = context.register_metric("pystorm", _LastValues())


class Component:
    """A spout or a bolt of pystorm. The task makes the object. Only its class is pickled.

    The constructor's arguments are pystorm's. They have no effect, because stormspark needs no pipe to another process. An
    unknown ``serializer`` is an error.
    """

    #: Whether an exception ends this instance, so that its task starts again with a new one (C14).
    exit_on_exception = True

    # The following attributes are set before `initialize` is called. Until then they are None, as in pystorm.
    topology_name: str = None  # type: ignore[assignment]
    task_id: int = None  # type: ignore[assignment]
    component_name: str = None  # type: ignore[assignment]
    #: The setting ``topology.debug``.
    debug: bool = None  # type: ignore[assignment]
    storm_conf: dict[str, Any] = None  # type: ignore[assignment]
    context: dict[str, Any] = None  # type: ignore[assignment]
    #: The component's logger, as the settings ``pystorm.log.*`` configure it.
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
        """Write to the task's log. ``pystorm.log.level`` has no influence. The levels are trace, debug, info, warn and error."""
        self._stormspark.log.log(TASK_LEVELS.get(level or "info", logging.INFO), "%s", message)

    def raise_exception(self, exception: BaseException, tup: Any = None) -> None:
        """Report an error. Call this while the exception is being handled."""
        what = f" while processing Tuple {tup!r}" if tup else ""
        self._stormspark.reports.report_error(
            f"Python {type(exception).__name__} raised{what}\n{traceback.format_exc()}"
        )

    def report_metric(self, name: str, value: Any) -> None:
        """Record a value. Once per minute, the metric ``pystorm`` in the statistics shows the last value of each name."""
        self._stormspark.metric.values[name] = value

    def run(self) -> None:
        """Do nothing if the calling module was imported, because the component runs in its task.

        If the calling module is run as a script, exit with a message that says how to run the topology.
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
        """Return whether the tuple is a heartbeat. stormspark sends no heartbeats."""
        return tup.task == -1 and tup.stream == "__heartbeat"

    def _handle_run_exception(self, exc: Exception) -> None:
        """Report an exception of ``process`` or ``next_tuple``. But if the exception ends the instance, the task reports it."""
        if not self.exit_on_exception:
            self.raise_exception(exc)


def begin(
    component: Component, conf: Mapping[str, Any], context: TopologyContext, *, early: bool = False
) -> None:
    """Set a component's attributes, then initialize it. If ``early``, also set the attributes of streamparse 1."""
    storm_conf = {"topology.name": context.topology_name, **conf}
    component.topology_name = storm_conf["topology.name"]
    component.task_id = task = context.this_task_id
    component.component_name = name = context.this_component_id
    component.debug = storm_conf.get("topology.debug", False)
    component.storm_conf = storm_conf
    component.context = context_message(context)
    component.logger = task_logger(storm_conf, name, task, context.logger)
    if early:
        for attribute in ("topology_name", "task_id", "component_name", "debug", "storm_conf", "context"):
            setattr(component, f"_{attribute}", getattr(component, attribute))
    component.initialize(storm_conf, component.context)


class StormHandler(logging.Handler):
    """A log handler that passes records on to the task's log."""

    def __init__(self, serializer: Any = None) -> None:
        super().__init__()

    def emit(self, record: logging.LogRecord) -> None:
        """Pass the record on, unless its logger propagates records anyway."""
        if not logging.getLogger(record.name).propagate:
            logging.getLogger().handle(record)


class LogStream:
    """A stream that logs its lines. stormspark itself does not use it, because prints go to the task's log anyway (W8)."""

    def __init__(self, logger: logging.Logger) -> None:
        self.logger = logger

    def write(self, message: str) -> None:
        """Log the message, unless it is blank."""
        if message.strip():
            self.logger.info(message)

    def flush(self) -> None:
        """Do nothing: no output is buffered."""
