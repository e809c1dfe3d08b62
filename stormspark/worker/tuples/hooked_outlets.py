"""Outlets that call a task's hooks for every emit (J21)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from stormspark.acker import Roots
from stormspark.api import EmitInfo, TaskHook
from stormspark.worker.tuples.outlets import Outlet, WrappedOutlet

__all__ = ["add_hooks", "remove_hooks", "replace_inner"]


def add_hooks(outlets: dict[str, Outlet], task: int, hooks: Sequence[TaskHook]) -> None:
    """Let all outlets of a task call ``hooks``. Callers may add more hooks to the list later."""
    for stream, outlet in outlets.items():
        outlets[stream] = _HookedOutlet(outlet, task, hooks)


def remove_hooks(outlets: dict[str, Outlet]) -> None:
    """Undo `add_hooks`, if it was called."""
    for stream, outlet in outlets.items():
        if isinstance(outlet, _HookedOutlet):
            outlets[stream] = outlet.unhooked


def replace_inner(outlets: dict[str, Outlet], change: Callable[[Outlet], Outlet]) -> None:
    """Replace the outlets of a task. If it has hooks, they stay around the new ones."""
    for stream, outlet in outlets.items():
        outlets[stream] = outlet.around(change) if isinstance(outlet, _HookedOutlet) else change(outlet)


class _HookedOutlet(WrappedOutlet):
    """An outlet of ``task`` that calls ``hooks``."""

    def __init__(self, outlet: Outlet, task: int, hooks: Sequence[TaskHook]) -> None:
        super().__init__(outlet)
        self.unhooked, self._task, self._hooks = outlet, task, hooks

    def around(self, change: Callable[[Outlet], Outlet]) -> _HookedOutlet:
        """Return an outlet that calls the same hooks, around another outlet."""
        return _HookedOutlet(change(self.unhooked), self._task, self._hooks)

    def send(self, values: tuple[Any, ...], roots: Roots) -> list[int]:
        """Send the tuple, and call the hooks with the tasks that got it."""
        tasks = super().send(values, roots)
        self._call_hooks(values, tuple(tasks))
        return tasks

    def send_direct(self, task: int, values: tuple[Any, ...], roots: Roots) -> int:
        """Send the tuple to one task, and call the hooks."""
        sent = super().send_direct(task, values, roots)
        self._call_hooks(values, (task,) * sent)
        return sent

    def _call_hooks(self, values: tuple[Any, ...], tasks: tuple[int, ...]) -> None:
        info = EmitInfo(values, self.source.stream, self._task, tasks)
        for hook in self._hooks:
            hook.emit(info)
