"""The part of the multilang protocol that spouts and bolts share (I2, I10-I12)."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import msgspec

from stormspark.api import DEFAULT_STREAM, OutputCollector, SpoutOutputCollector, TopologyContext
from stormspark.errors import InvalidTopologyError, MultilangError
from stormspark.metrics import AssignableMetric, CountMetric, Metric
from stormspark.multilang.child import Child
from stormspark.multilang.childs_line import childs_line
from stormspark.multilang.handshake import setup_message
from stormspark.multilang.messages import Unreadable, messages_for

__all__ = ["Conversation", "Surroundings", "label_of"]

#: Storm's levels: trace, debug, info, warn, error (I10).
_LEVELS = (logging.DEBUG, logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR)
#: How many seconds pass before new lines of the child's stderr are logged again.
_LOOK_SECS = 1.0
_DEFAULT_TIMEOUT_SECS = 30
_QUOTED = 300


def label_of(kind: str, context: TopologyContext) -> str:
    """Return the name of a child's task in errors. ``kind`` is "spout" or "bolt"."""
    name = context.this_component_id
    return f"{kind} {name!r}, task {context.this_task_id} ({name}[{context.this_task_index}])"


class Surroundings:
    """The command, the folder, the environment and the metrics of a child. ``note`` is logged as a warning before it starts."""

    def __init__(
        self,
        command: Sequence[str],
        folder: str,
        environment: Mapping[str, str],
        metrics: Mapping[str, Metric],
        note: str = "",
    ) -> None:
        self.command, self.folder, self.environment, self.metrics = command, folder, environment, metrics
        self.note = note


class Conversation:
    """Starts a child, talks to it, and handles the messages that the children of spouts and bolts have in common.

    There is one rule for all failures (I12). If a child breaks the protocol, dies or hangs, it is killed together with all
    processes that it has forked. The component raises a `MultilangError` with the reason, and the task starts again with a new
    child. All tuples that the child of a bolt had not settled fail. The open trees of a spout are forgotten (B10). But if a child
    sends an ``error`` message, the message is only shown in logs and statistics (C4).
    """

    kind: str

    def __init__(
        self,
        surroundings: Surroundings,
        conf: Mapping[str, Any],
        context: TopologyContext,
        collector: OutputCollector | SpoutOutputCollector,
    ) -> None:
        self.label = label_of(self.kind, context)
        if conf.get("topology.state.pickle"):
            msg = (
                f"{self.label}: topology.state.pickle is true, but a child keeps its state in its own memory, where it can't be "
                f"pickled. Keep the state in a bolt in Python, or let the child keep it in a database"
            )
            raise InvalidTopologyError(msg)
        self._collector = collector
        self._logger = context.logger
        if surroundings.note:
            self._logger.warning("%s", surroundings.note)
        self._metrics: dict[str, Metric] = {}
        for name, metric in surroundings.metrics.items():
            self._metrics[name] = context.register_metric(name, metric)
        self._unregistered: dict[str, Any] = {}
        self._other_metrics = context.register_metric("multilang", AssignableMetric())
        self._timeout = float(
            conf.get("topology.subprocess.timeout.secs")
            or conf.get("supervisor.worker.timeout.secs")
            or _DEFAULT_TIMEOUT_SECS
        )
        self.child = Child(
            self.label,
            surroundings.command,
            surroundings.folder,
            surroundings.environment,
            messages_for(conf.get("topology.multilang.serializer")),
            self._timeout,
            self.send_heartbeat,
        )
        try:
            self._shake_hands(conf, context)
        except BaseException:
            self.child.kill()
            raise
        context.set_timer(_LOOK_SECS, self.log_lines)

    def send_heartbeat(self) -> None:
        """Ask the child for a sign of life. This base class does nothing, because the protocol of spouts has no such request.

        The thread that watches the child (see `Child`) calls this once per second while the child owes no answer.
        """

    def _shake_hands(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        child = self.child
        child.asked_at = time.monotonic()
        child.send(setup_message(conf, context, child.pid_folder))
        answered = False
        while not answered:
            child.wait()
            child.flush()
            for message in child.read() or ():
                if type(message) is dict and isinstance(message.get("pid"), int):
                    self._logger.info("child %s runs: %s", message["pid"], child.shown_command)
                    answered = True
                elif type(message) is not dict or not self._handle_common(message):
                    self.broken(message, 'its first message must be its process id, as {"pid": 1234}')
        child.asked_at = None

    # -- messages of both kinds of children --------------------------------------------------------------------

    def _handle_common(self, message: dict[str, Any]) -> bool:
        """Handle a message that logs, reports an error, or updates a metric. Return false for any other message."""
        command = message.get("command")
        if command == "log":
            level = message.get("level", 2)
            known = type(level) is int and 0 <= level < len(_LEVELS)
            self._logger.log(_LEVELS[level] if known else logging.INFO, "%s", message.get("msg"))
        elif command == "error":
            text = str(message.get("msg"))
            line = f"{found}: " if (found := childs_line(text)) is not None else ""
            self._collector.report_error(f"{self.label}: its child reports: {line}{text}")
        elif command == "metrics":
            self._count(message)
        else:
            return False
        return True

    def _count(self, message: dict[str, Any]) -> None:
        name, params = message.get("name"), message.get("params")
        if not isinstance(name, str) or not name:
            self.broken(message, "a metric must have a name")
        metric = self._metrics.get(name)
        if metric is not None:
            _update(metric, params)
            return
        if name not in self._unregistered:
            self._logger.warning(
                "%s: metric %r is not in metrics=... of its component, so its last value goes to the metric 'multilang'",
                self.label,
                name,
            )
        self._unregistered[name] = params
        self._other_metrics.set_value(dict(self._unregistered))

    def log_lines(self) -> None:
        """Log what the child has written to stderr (I1)."""
        lines, more = self.child.take_lines()
        for line in lines:
            self._logger.info("stderr: %s", line)
        if more:
            self._logger.info("stderr: (%s more lines, too many to log)", f"{more:,}")

    # -- failures ----------------------------------------------------------------------------------------------

    def broken(self, message: Any, why: str, cause: Exception | None = None) -> NoReturn:
        """Kill the child, because it has sent ``message``. Raise a `MultilangError` that says ``why`` the message is wrong."""
        if type(message) is Unreadable:
            what = f"sent {message.quoted!r}: {message.why}. Its stdout is only for messages: print to stderr, or log"
        else:
            if isinstance(message, msgspec.Struct):
                message = msgspec.to_builtins(message)
            try:
                shown = json.dumps(message)
            except (TypeError, ValueError):
                shown = repr(message)
            what = f"sent {shown if len(shown) <= _QUOTED else shown[:_QUOTED] + '...'}: {why}"
        raise self.child.failed(what) from cause

    @classmethod
    def emit_of(cls, message: dict[str, Any]) -> tuple[Any, str, int]:
        """Return the values, the stream and the task of an emit message (I5, I7). Raises ValueError if its form is wrong."""
        values = message.get("tuple")
        if type(values) is not list:
            msg = f"a tuple must be a list of values, got {values!r}"
            raise ValueError(msg)
        return cls.target_of(tuple(values), message.get("stream"), message.get("task"))

    @staticmethod
    def target_of(values: tuple[Any, ...], stream: Any, task: Any) -> tuple[Any, str, int]:
        """Check the three parts of an emit message, and return them: the values, the stream and the task.

        If the message has no task, or task 0, the emit is not direct (I9).
        """
        if type(task or 0) is not int:
            msg = f"a task must be a number, got {task!r}"
            raise ValueError(msg)
        return values, DEFAULT_STREAM if stream is None else stream, task or 0


def _update(metric: Metric, params: Any) -> None:
    """Update a metric as Storm's shell metrics do (I11). If ``params`` is None, a count increases by one."""
    if isinstance(metric, CountMetric):
        metric.incr_by(1 if params is None else params)
    elif isinstance(metric, AssignableMetric):
        metric.set_value(params)
    else:
        for name in ("update", "inc", "mark"):
            if hasattr(metric, name):
                getattr(metric, name)(*([] if params is None else [params]))
                return
        msg = (
            f"a child can't update a metric of type {type(metric).__name__}: use one with update, inc or mark"
        )
        raise MultilangError(msg)
