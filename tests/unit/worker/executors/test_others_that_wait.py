"""A subscriber's grouping or a task hook that waits holds up the executor that emits, and nobody else (A16, D13, J21)."""

from __future__ import annotations

import inspect
import re
import sqlite3
import threading
import time
from typing import Any, ClassVar

import pytest

from stormspark import (
    AsyncBolt,
    BasicBolt,
    CustomStreamGrouping,
    Fields,
    Spout,
    TaskHook,
    Topology,
    TopologyBuilder,
)
from stormspark.errors import ComponentError, InvalidTopologyError
from stormspark.local import submit
from stormspark.plan import advice, plan_topology
from tests.unit.worker.executors.runs import until

HOOKS = "topology.auto.task.hooks"


class Emits(Spout):
    """Only computes."""

    def open(self, conf: Any, context: Any, collector: Any) -> None:
        """Keep the collector."""
        self.collector = collector

    def next_tuple(self) -> None:
        """Emit."""
        self.collector.emit((1,))

    def declare_output_fields(self, declarer: Any) -> None:
        """Declare a number."""
        declarer.declare(Fields("n"))


class SaysFalse(Emits):
    """Says that it only computes."""

    waits = False


class Passes(AsyncBolt):
    """Stays on the worker's thread in any case."""

    async def execute(self, tup: Any) -> None:
        """Emit."""
        self.collector.emit(tup.values)

    async def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        """Keep the collector."""
        self.collector = collector

    def declare_output_fields(self, declarer: Any) -> None:
        """Declare a number."""
        declarer.declare(Fields("n"))


class Takes(BasicBolt):
    """Only computes."""

    def execute(self, tup: Any, collector: Any) -> None:
        """Do nothing."""


class First(CustomStreamGrouping):
    """Only computes."""

    def prepare(self, context: Any, stream: Any, target_tasks: list[int]) -> None:
        """Keep the tasks."""
        self.tasks = target_tasks

    def choose_tasks(self, task: int, values: Any) -> list[int]:
        """Choose the first task."""
        return self.tasks[:1]


class Sleeps(First):
    """Asks somebody."""

    def choose_tasks(self, task: int, values: Any) -> list[int]:
        """Wait."""
        time.sleep(0.1)
        return self.tasks[:1]


class SleepsAndSaysFalse(Sleeps):
    """Says that it only computes."""

    waits = False


class Hook(TaskHook):
    """Tells somebody."""

    def emit(self, info: Any) -> None:
        """Wait."""
        time.sleep(0.2)


class QuickHook(TaskHook):
    """Counts."""

    emits = 0

    def emit(self, info: Any) -> None:
        """Count."""
        self.emits += 1


def topology_of(spout: Any, grouping: Any, conf: dict[str, Any], between: Any = None) -> Topology:
    """Return a topology whose bolt ``takes`` subscribes to ``spout``, or to the bolt ``between``, by ``grouping``."""
    builder = TopologyBuilder()
    builder.set_spout("emits", spout)
    source = "emits"
    if between is not None:
        builder.set_bolt("between", between).shuffle_grouping("emits")
        source = "between"
    builder.set_bolt("takes", Takes()).custom_grouping(source, grouping)
    return builder.create_topology("others", conf)


def line(of: Any, text: str) -> str:
    """Return FILE:LINE of the line in a class that has ``text``."""
    lines, first = inspect.getsourcelines(of)
    return f"test_others_that_wait.py:{first + next(n for n, one in enumerate(lines) if text in one)}"


# -- what the plan says ------------------------------------------------------------------------------------------


def test_a_grouping_that_waits_is_the_reason_why_its_sender_has_threads() -> None:
    """D13."""
    plan = plan_topology(topology_of(Emits(), Sleeps(), {}))
    reason = f"the grouping of bolt 'takes': choose_tasks uses time.sleep ({line(Sleeps, 'sleep(')})"
    assert [one.threads_reason for one in plan.components.values()] == [reason, ""]
    assert advice(plan) == []


def test_a_hook_that_waits_is_the_reason_why_all_have_threads() -> None:
    """J21."""
    hook = f"{__name__}:Hook"
    plan = plan_topology(topology_of(Emits(), First(), {HOOKS: [f"{__name__}:QuickHook", hook]}))
    reason = f"the task hook {hook!r}: emit uses time.sleep ({line(Hook, 'sleep(')})"
    assert [one.threads_reason for one in plan.components.values()] == [reason, reason]


def test_groupings_and_hooks_that_compute_are_no_reason() -> None:
    plan = plan_topology(topology_of(Emits(), First(), {HOOKS: [f"{__name__}.QuickHook"]}))
    assert [one.threads_reason for one in plan.components.values()] == ["", ""]


def test_a_grouping_can_say_that_it_only_computes() -> None:
    plan = plan_topology(topology_of(Emits(), SleepsAndSaysFalse(), {}))
    assert plan.components["emits"].threads_reason == ""
    (one,) = advice(plan)
    assert "choose_tasks uses time.sleep" in one


def test_another_value_of_waits_in_a_grouping_is_an_error() -> None:
    class Wrong(First):
        waits = "no"

    with pytest.raises(
        InvalidTopologyError, match=r"custom grouping .*Wrong: .*waits of class .*Wrong must be"
    ):
        topology_of(Emits(), Wrong(), {})


def test_a_hook_that_can_not_be_imported_here_may_wait() -> None:
    """The workers may have its module."""
    plan = plan_topology(topology_of(Emits(), First(), {HOOKS: ["nowhere:Hook"]}))
    assert plan.components["emits"].threads_reason == (
        "the task hook 'nowhere:Hook': can't be imported here (ModuleNotFoundError)"
    )


@pytest.mark.parametrize(
    ("spout", "between", "kind"), [(SaysFalse(), None, "spout"), (Emits(), Passes(), "bolt")]
)
def test_advice_names_a_grouping_that_holds_up_the_worker(spout: Any, between: Any, kind: str) -> None:
    """A component that says ``waits = False`` stays on the worker's thread, and an async one does in any case."""
    plan = plan_topology(topology_of(spout, Sleeps(), {}, between))
    assert not any(one.threads_reason for one in plan.components.values())
    (one,) = advice(plan)
    assert re.match(
        rf".*: {kind} '\w+' runs on the worker's thread, and so does the grouping of bolt 'takes'", one
    )
    assert f"choose_tasks uses time.sleep ({line(Sleeps, 'sleep(')}): while that waits" in one
    assert not advice(
        plan_topology(topology_of(spout, Sleeps(), {"stormspark.executor.threads": "never"}, between))
    )


# -- what runs ----------------------------------------------------------------------------------------------------

OTHERS_GO_ON = threading.Event()
HAVE_WAITED: list[bool] = []


def wait_for_others() -> None:
    """Wait until another bolt of the worker has executed a tuple."""
    HAVE_WAITED.append(OTHERS_GO_ON.wait(60))


class WaitsForOthers(First):
    """Chooses once the others go on."""

    def choose_tasks(self, task: int, values: Any) -> list[int]:
        """Wait."""
        wait_for_others()
        return self.tasks[:1]


class HookWaitsForOthers(TaskHook):
    """Hears emits of the spout ``emits``."""

    def prepare(self, conf: Any, context: Any) -> None:
        """Keep the component's name."""
        self.component = context.this_component_id

    def emit(self, info: Any) -> None:
        """Wait."""
        if self.component == "emits":
            wait_for_others()


class Other(Emits):
    """Emits once the other spout's call waits."""

    def next_tuple(self) -> None:
        """Emit."""
        self.collector.emit((2,))


class GoesOn(BasicBolt):
    """Lets those who wait go on."""

    waits = False

    def execute(self, tup: Any, collector: Any) -> None:
        """Tell them."""
        OTHERS_GO_ON.set()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("grouping", "hooks"), [(WaitsForOthers(), []), (First(), [f"{__name__}:HookWaitsForOthers"])]
)
def test_the_other_executors_of_the_worker_go_on_meanwhile(grouping: Any, hooks: list[str]) -> None:
    OTHERS_GO_ON.clear()
    HAVE_WAITED.clear()
    builder = TopologyBuilder()
    builder.set_spout("emits", Emits())
    builder.set_spout("other", Other())
    builder.set_bolt("takes", Takes()).custom_grouping("emits", grouping)
    builder.set_bolt("goes on", GoesOn()).shuffle_grouping("other")
    running = submit(builder.create_topology("goes-on", {HOOKS: hooks}))
    try:
        until(lambda: HAVE_WAITED)
    finally:
        running.stop()
    assert all(HAVE_WAITED)


class Connects(CustomStreamGrouping):
    """Has a connection that only the thread that made it may use."""

    chosen: ClassVar[list[int]] = []

    def prepare(self, context: Any, stream: Any, target_tasks: list[int]) -> None:
        """Connect."""
        self.tasks = target_tasks
        self.database = sqlite3.connect(":memory:")

    def choose_tasks(self, task: int, values: Any) -> list[int]:
        """Ask the database, once."""
        if not Connects.chosen:
            Connects.chosen += self.database.execute("select ?", (self.tasks[0],)).fetchone()
            self.database.close()
        return self.tasks[:1]


def test_a_grouping_is_prepared_on_the_thread_that_chooses() -> None:
    Connects.chosen.clear()
    running = submit(topology_of(Emits(), Connects(), {}))
    try:
        until(lambda: Connects.chosen)
    finally:
        running.stop()
    assert running.statistics().components["emits"].errors == 0


class CanNotPrepare(Sleeps):
    """Raises at once."""

    def prepare(self, context: Any, stream: Any, target_tasks: list[int]) -> None:
        """Raise."""
        msg = "nobody answers"
        raise OSError(msg)


def test_a_grouping_that_can_not_be_prepared_stops_the_topology() -> None:
    with pytest.raises(
        ComponentError, match=r"custom grouping CanNotPrepare .*prepare raised OSError: nobody answers"
    ):
        submit(topology_of(Emits(), CanNotPrepare(), {}))


class AsksForLoads(First):
    """Waits in each of its methods, and notes the thread that called it."""

    threads: ClassVar[dict[str, set[int]]] = {}
    raises = False

    def _note(self, method: str) -> None:
        time.sleep(0.001)
        self.threads.setdefault(method, set()).add(threading.get_ident())

    def prepare(self, context: Any, stream: Any, target_tasks: list[int]) -> None:
        """Keep the tasks."""
        self._note("prepare")
        super().prepare(context, stream, target_tasks)

    def choose_tasks(self, task: int, values: Any) -> list[int]:
        """Choose the first."""
        self._note("choose_tasks")
        return super().choose_tasks(task, values)

    def refresh_load(self, loads: Any) -> None:
        """Look at the loads."""
        self._note("refresh_load")
        assert set(loads) == set(self.tasks)
        if type(self).raises:
            msg = "no loads"
            raise OSError(msg)


@pytest.mark.parametrize("raises", [False, True])
def test_a_grouping_that_waits_hears_of_loads_on_the_thread_that_chooses(raises: bool) -> None:
    """D13: it holds up nobody else there, and is not called while it chooses. If it raises, so does the emit."""
    AsksForLoads.threads.clear()
    AsksForLoads.raises = raises
    builder = TopologyBuilder()
    builder.set_spout("spout", Emits())
    builder.set_bolt("bolt", Takes()).custom_grouping("spout", AsksForLoads())
    running = submit(builder.create_topology("loads"))
    try:
        until(lambda: "refresh_load" in AsksForLoads.threads)
        called = set().union(*AsksForLoads.threads.values())
        assert len(called) == 1 and not called & {running._thread.ident, threading.get_ident()}  # type: ignore[union-attr]
        if raises:
            until(lambda: running.statistics().components["spout"].errors > 0)
    finally:
        running.stop()
