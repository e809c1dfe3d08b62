"""Hooks that configuration asks for: ``topology.auto.task.hooks`` (J21) and ``topology.debug``."""

from __future__ import annotations

import importlib
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
from stormspark.errors import InvalidTopologyError

__all__ = ["DebugHook", "load_hook"]


def load_hook(name: str) -> TaskHook:
    """An instance of the hook class ``module:Class`` or ``module.Class``; raises `InvalidTopologyError` if there is none."""
    module, _, cls = name.partition(":") if ":" in name else name.rpartition(".")
    try:
        hook = getattr(importlib.import_module(module), cls)()
    except Exception as error:
        msg = f"topology.auto.task.hooks names {name!r}, which can't be made: {type(error).__name__}: {error} (J21)"
        raise InvalidTopologyError(msg) from error
    if not isinstance(hook, TaskHook):
        msg = f"topology.auto.task.hooks names {name!r}, which is no TaskHook but {hook!r} (J21)"
        raise InvalidTopologyError(msg)
    return hook


class DebugHook(TaskHook):
    """Logs every emit, ack and fail of a task (``topology.debug``)."""

    def __init__(self, name: str) -> None:
        self._name = name

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        """Log where the task logs."""
        self._log: logging.Logger = context.logger

    def emit(self, info: EmitInfo) -> None:
        """Log it."""
        self._log.info("%s emits on %s to %s: %r", self._name, info.stream, list(info.out_tasks), info.values)

    def spout_ack(self, info: SpoutAckInfo) -> None:
        """Log it."""
        self._log.info("%s: acked %r after %.1f ms", self._name, info.message_id, info.complete_latency_ms)

    def spout_fail(self, info: SpoutFailInfo) -> None:
        """Log it."""
        self._log.info("%s: failed %r after %.1f ms", self._name, info.message_id, info.fail_latency_ms)

    def bolt_ack(self, info: BoltAckInfo) -> None:
        """Log it."""
        self._log.info("%s acks %r", self._name, info.tuple)

    def bolt_fail(self, info: BoltFailInfo) -> None:
        """Log it."""
        self._log.info("%s fails %r", self._name, info.tuple)
