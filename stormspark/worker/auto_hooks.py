"""Task hooks that the configuration turns on: ``topology.auto.task.hooks`` (J21) and ``topology.debug``."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from stormspark.api import (
    BoltAckInfo,
    BoltFailInfo,
    EmitInfo,
    SpoutAckInfo,
    SpoutFailInfo,
    TaskHook,
    TopologyContext,
)
from stormspark.api.hook_classes import hook_class
from stormspark.errors import InvalidTopologyError

__all__ = ["DebugHook", "load_hook"]


def load_hook(name: str) -> TaskHook:
    """Make an instance of the hook class that ``name`` names, as ``module:Class`` or ``module.Class``. Raises
    `InvalidTopologyError` if that fails.
    """
    try:
        hook = hook_class(name)()
    except Exception as error:
        msg = f"topology.auto.task.hooks names {name!r}, which can't be created: {type(error).__name__}: {error}"
        raise InvalidTopologyError(msg) from error
    if not isinstance(hook, TaskHook):
        msg = f"topology.auto.task.hooks names {name!r}, which is {hook!r} and not a TaskHook"
        raise InvalidTopologyError(msg)
    return hook


class DebugHook(TaskHook):
    """A hook that logs every emit, ack and fail of a task (``topology.debug``)."""

    def __init__(self, name: str) -> None:
        self._name = name

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        """Set up this hook to log to the same logger as the task."""
        self._log: logging.Logger = context.logger

    def emit(self, info: EmitInfo) -> None:
        """Log an emit."""
        self._log.info("%s emits on %s to %s: %r", self._name, info.stream, list(info.out_tasks), info.values)

    def spout_ack(self, info: SpoutAckInfo) -> None:
        """Log an ack that the spout got."""
        self._log.info("%s: acked %r after %.1f ms", self._name, info.message_id, info.complete_latency_ms)

    def spout_fail(self, info: SpoutFailInfo) -> None:
        """Log a fail that the spout got."""
        self._log.info("%s: failed %r after %.1f ms", self._name, info.message_id, info.fail_latency_ms)

    def bolt_ack(self, info: BoltAckInfo) -> None:
        """Log an ack of a bolt."""
        self._log.info("%s acks %r", self._name, info.tuple)

    def bolt_fail(self, info: BoltFailInfo) -> None:
        """Log a fail of a bolt."""
        self._log.info("%s fails %r", self._name, info.tuple)
