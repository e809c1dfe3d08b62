"""An instance that ends while its ``prepare`` runs leaves nothing behind: no timer, no hook (B14)."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from stormspark import Bolt, Fields, Spout, TopologyBuilder
from stormspark.api import TaskHook
from tests.unit.worker.executors.runs import running, tasks, until

pytestmark = pytest.mark.slow
GO_ON = threading.Event()
PREPARES: list[Any] = []


class Quiet(Spout):
    """Emits nothing."""

    def open(self, conf: Any, context: Any, collector: Any) -> None:
        pass

    def next_tuple(self) -> None:
        pass

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("n"))


class Waits(Bolt):
    """Its second ``prepare`` waits for the test before it sets a timer and adds a hook."""

    waits = True

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        PREPARES.append(self)
        if len(PREPARES) == 2:
            GO_ON.wait()
        context.set_timer(1000, lambda: None)
        context.add_task_hook(TaskHook())

    def execute(self, tup: Any) -> None:
        pass


def test_a_prepare_that_outlives_its_instance_sets_no_timer() -> None:
    """The timers and hooks are those of the third instance alone."""
    GO_ON.clear()
    PREPARES.clear()
    builder = TopologyBuilder()
    builder.set_spout("quiet", Quiet())
    builder.set_bolt("waits", Waits()).shuffle_grouping("quiet")
    with running(builder.create_topology("waits")) as local:
        (task,) = tasks(local, "waits")
        (worker,) = local.workers.workers
        task.executors._call.thread, real = threading.get_ident(), task.executors._call.thread
        task.start()
        until(lambda: len(PREPARES) == 2)
        task.start()
        task.executors._call.thread = real
        GO_ON.set()
        until(lambda: len(PREPARES) == 3 and not task.is_starting)
        assert len(task.hooks) == 1
        assert sum(timer.task is task for timer in worker.services.timers._timers) == 1
