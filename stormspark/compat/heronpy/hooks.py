"""Calls the user's task hooks (J21) from one hook of the engine."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from stormspark.api import (
    BoltAckInfo,
    BoltExecuteInfo,
    BoltFailInfo,
    SpoutAckInfo,
    SpoutFailInfo,
    TaskHook,
    Tuple,
)
from stormspark.api import EmitInfo as EngineEmitInfo
from stormspark.api import TopologyContext as EngineContext
from stormspark.compat.heronpy import task_hook
from stormspark.compat.heronpy.constants import TOPOLOGY_AUTO_TASK_HOOKS
from stormspark.compat.heronpy.delegates import BoltDelegate, SpoutDelegate, UnhashableId, load_class
from stormspark.compat.heronpy.task_hook import ITaskHook
from stormspark.coroutines import problem_with_coroutine

__all__ = ["Hooks"]

#: The methods of a hook, none of which may be a coroutine.
_CALLED = tuple(name for name in vars(ITaskHook) if not name.startswith("_"))


class Hooks:
    """The hooks of one task: first those that the configuration names, then those that were added, in the order of `add`."""

    def __init__(self, config: Mapping[str, Any], delegate: SpoutDelegate | BoltDelegate) -> None:
        self._delegate = delegate
        self.hooks: list[ITaskHook] = []
        for path in config.get(TOPOLOGY_AUTO_TASK_HOOKS) or ():
            self.add(load_class(path, TOPOLOGY_AUTO_TASK_HOOKS)())

    def add(self, hook: Any) -> None:
        """Add a hook. Raises TypeError if it is not an `ITaskHook`."""
        if not isinstance(hook, ITaskHook):
            msg = (
                f"add_task_hook(): a hook must be an ITaskHook, given: {hook!r} of type {type(hook).__name__}"
            )
            raise TypeError(msg)
        problem = problem_with_coroutine(hook, _CALLED)
        if problem is not None:
            msg = f"add_task_hook(): a hook's {problem}"
            raise TypeError(msg)
        self.hooks.append(hook)

    def begin(self, context: EngineContext, config: dict[str, Any], heron_context: Any) -> None:
        """Prepare the hooks, after ``initialize`` has returned. If there are any, add one hook to the engine for all of them."""
        if not self.hooks:
            return
        context.add_task_hook(_Forwarder(self.hooks, self._delegate))
        for hook in self.hooks:
            hook.prepare(config, heron_context)

    def acked_at_once(self, tup_id: Any, task: int) -> None:
        """Call the hooks' ``spout_ack`` for a tuple that is acked as soon as it is emitted. The engine sees no such ack (B23)."""
        for hook in self.hooks:
            hook.spout_ack(task_hook.SpoutAckInfo(tup_id, task, 0.0))


class _Forwarder(TaskHook):
    """The one hook that the engine calls. It calls the user's hooks with heronpy's objects."""

    def __init__(self, hooks: list[ITaskHook], delegate: SpoutDelegate | BoltDelegate) -> None:
        self._hooks, self._delegate = hooks, delegate

    def cleanup(self) -> None:
        for hook in self._hooks:
            hook.clean_up()

    def emit(self, info: EngineEmitInfo) -> None:
        emitted = task_hook.EmitInfo(list(info.values), info.stream, info.task, list(info.out_tasks))
        for hook in self._hooks:
            hook.emit(emitted)

    def spout_ack(self, info: SpoutAckInfo) -> None:
        acked = task_hook.SpoutAckInfo(_id(info.message_id), info.task, info.complete_latency_ms)
        for hook in self._hooks:
            hook.spout_ack(acked)

    def spout_fail(self, info: SpoutFailInfo) -> None:
        failed = task_hook.SpoutFailInfo(_id(info.message_id), info.task, info.fail_latency_ms)
        for hook in self._hooks:
            hook.spout_fail(failed)

    def bolt_execute(self, info: BoltExecuteInfo) -> None:
        delegate = self._delegate
        assert isinstance(delegate, BoltDelegate)
        if info.tuple.is_tick:
            return
        executed = task_hook.BoltExecuteInfo(delegate.processed, info.task, info.execute_latency_ms)
        for hook in self._hooks:
            hook.bolt_execute(executed)

    def bolt_ack(self, info: BoltAckInfo) -> None:
        tup, age = self._closed(info.tuple)
        for hook in self._hooks:
            hook.bolt_ack(task_hook.BoltAckInfo(tup, info.task, age))

    def bolt_fail(self, info: BoltFailInfo) -> None:
        tup, age = self._closed(info.tuple)
        for hook in self._hooks:
            hook.bolt_fail(task_hook.BoltFailInfo(tup, info.task, age))

    def _closed(self, tup: Tuple) -> tuple[Any, float]:
        """Return the heronpy tuple for a tuple of the engine, and the tuple's age in milliseconds."""
        delegate = self._delegate
        assert isinstance(delegate, BoltDelegate)
        known = [
            one for one in (delegate.closing, delegate.processed) if one is not None and one.roots is tup
        ]
        heron = known[0] if known else delegate.heron_tuple(tup)
        return heron, (time.time() - heron.creation_time) * 1000


def _id(message_id: Any) -> Any:
    return message_id.tup_id if type(message_id) is UnhashableId else message_id
