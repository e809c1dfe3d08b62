"""Which components have no thread of their own, even if all executors are to have one (A16)."""

from __future__ import annotations

from stormspark import TopologyBuilder
from stormspark.multilang import ShellBolt
from stormspark.plan import plan_topology
from tests.unit.worker.executors.runs import Numbers, Repeat, Told


def test_a_bolt_with_work_outside_stays_on_the_workers_thread() -> None:
    """The worker's thread takes in its answers (I6)."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers([], Told("none")))
    builder.set_bolt("shell", ShellBolt(["true"], ["n"])).shuffle_grouping("numbers")
    builder.set_bolt("repeat", Repeat()).shuffle_grouping("shell")
    plan = plan_topology(builder.create_topology("shell"), {"stormspark.executor.threads": "always"})
    on_threads = {name for name, component in plan.components.items() if component.threads_reason}
    assert on_threads == {"numbers", "repeat"}
