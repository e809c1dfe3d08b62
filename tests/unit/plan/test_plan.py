"""Planning: task ids, executors, packing, crossing edges, supersteps, validation (A13-A19, J5, J23)."""

from __future__ import annotations

import pytest

from stormspark import (
    BasicBolt,
    BasicOutputCollector,
    Fields,
    OutputFieldsDeclarer,
    Topology,
    TopologyBuilder,
    Tuple,
)
from stormspark.errors import InvalidTopologyError
from stormspark.plan import plan_topology
from stormspark.plan.supersteps import count_supersteps
from stormspark.testing import TestWordCounter, TestWordSpout


class Pass(BasicBolt):
    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        collector.emit(tup.values)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("word"))


def chain(conf: dict[str, object] | None = None, name: str = "demo") -> Topology:
    builder = TopologyBuilder()
    builder.set_spout("words", TestWordSpout(), parallelism=2)
    builder.set_bolt("pass", Pass(), parallelism=2).shuffle_grouping("words")
    builder.set_bolt("count", TestWordCounter(), parallelism=2).fields_grouping("pass", Fields("word"))
    return builder.create_topology(name, conf)


def test_storms_documented_example() -> None:
    """A19, J23, X70: blue 2, green 2 with 4 tasks, yellow 6, 2 workers: 10 executors, 12 tasks, 5 executors a worker."""
    builder = TopologyBuilder()
    builder.set_spout("blue", TestWordSpout(), parallelism=2)
    builder.set_bolt("green", Pass(), parallelism=2).set_num_tasks(4).shuffle_grouping("blue")
    builder.set_bolt("yellow", Pass(), parallelism=6).shuffle_grouping("green")
    plan = plan_topology(builder.create_topology("a19"), {"topology.workers": 2})
    assert len(plan.tasks) == 12
    executors = {(t.component, t.executor): t.worker for t in plan.tasks.values()}
    assert len(executors) == 10
    assert sorted(executors.values()).count(0) == 5


def test_task_ids_run_over_all_components_in_byte_order_with_the_ackers() -> None:
    """A18: upper case, then __acker, then lower case."""
    builder = TopologyBuilder()
    builder.set_spout("Words", TestWordSpout())
    builder.set_bolt("count", TestWordCounter(), parallelism=2).shuffle_grouping("Words")
    topology = builder.create_topology("ids")
    ids = {
        c.id: c.tasks for c in plan_topology(topology, {"topology.acker.executors": 3}).components.values()
    }
    assert ids == {"Words": (1,), "count": (5, 6)}
    without = plan_topology(topology, {"topology.acker.executors": 0})
    assert {c.id: c.tasks for c in without.components.values()} == {"Words": (1,), "count": (2, 3)}


def test_tasks_follow_storms_rules() -> None:
    """A16: topology.tasks, set_num_tasks, topology.max.task.parallelism; A17: larger runs first."""
    builder = TopologyBuilder()
    builder.set_spout("words", TestWordSpout(), parallelism=4)
    builder.set_bolt("count", TestWordCounter(), parallelism=3).set_num_tasks(10).shuffle_grouping("words")
    topology = builder.create_topology("t")
    plan = plan_topology(topology)
    runs = [sum(t.executor == e for t in plan.tasks.values() if t.component == "count") for e in range(3)]
    assert runs == [4, 3, 3]
    capped = plan_topology(topology, {"topology.max.task.parallelism": 2})
    assert [len(c.tasks) for c in capped.components.values()] == [2, 2]
    assert [c.parallelism for c in capped.components.values()] == [2, 2]


@pytest.mark.parametrize(("workers", "supersteps", "last"), [(1, 0, 0), (2, 2, 3), (3, 2, 3)])
def test_supersteps_count_the_edges_that_can_cross(workers: int, supersteps: int, last: int) -> None:
    plan = plan_topology(chain(), {"topology.workers": workers})
    assert (plan.supersteps, plan.last_superstep) == (supersteps, last)


def test_local_or_shuffle_needs_no_exchange_where_every_worker_has_a_target() -> None:
    builder = TopologyBuilder()
    builder.set_spout("words", TestWordSpout(), parallelism=2)
    builder.set_bolt("pass", Pass(), parallelism=2).local_or_shuffle_grouping("words")
    builder.set_bolt("last", Pass(), parallelism=1).local_or_shuffle_grouping("pass")
    plan = plan_topology(builder.create_topology("t"), {"topology.workers": 2})
    assert {(e.source, e.target): e.crosses for e in plan.edges} == {
        ("words", "pass"): False,
        ("pass", "last"): True,
    }
    assert plan.supersteps == 1


def test_a_loop_counts_once() -> None:
    """A15: cycles are legal."""
    builder = TopologyBuilder()
    builder.set_spout("words", TestWordSpout(), parallelism=2)
    builder.set_bolt("a", Pass(), parallelism=2).shuffle_grouping("words").shuffle_grouping("b")
    builder.set_bolt("b", Pass(), parallelism=2).shuffle_grouping("a")
    plan = plan_topology(builder.create_topology("t"), {"topology.workers": 2})
    assert plan.supersteps == 3
    assert count_supersteps(()) == 0


@pytest.mark.parametrize("name", ["", "a/b", "a.b", "a:b", "a\\b"])
def test_names_as_storm_wants_them(name: str) -> None:
    """A topology's name must not be empty or contain a character that Storm forbids (A14)."""
    with pytest.raises(InvalidTopologyError, match="name must not be empty or contain"):
        plan_topology(chain(name=name))


def refused(build: TopologyBuilder) -> str:
    with pytest.raises(InvalidTopologyError) as caught:
        plan_topology(build.create_topology("t"))
    return str(caught.value)


def test_unknown_sources_streams_and_fields_are_named_with_the_nearest() -> None:
    """Unknown sources, streams and fields are rejected, and the error suggests the nearest name (J5)."""
    builder = TopologyBuilder()
    builder.set_spout("words", TestWordSpout())
    builder.set_bolt("count", TestWordCounter()).shuffle_grouping("wrods")
    assert "'count' subscribes to 'wrods', which does not exist; did you mean 'words'?" in refused(builder)
    builder = TopologyBuilder()
    builder.set_spout("words", TestWordSpout())
    builder.set_bolt("count", TestWordCounter()).shuffle_grouping("words", stream="other")
    assert "subscribes to stream 'other' of 'words'" in refused(builder)
    builder = TopologyBuilder()
    builder.set_spout("words", TestWordSpout())
    builder.set_bolt("count", TestWordCounter()).fields_grouping("words", Fields("wrod"))
    message = refused(builder)
    assert "has no field 'wrod'; it has 'word'; did you mean 'word'?" in message
    assert "test_plan.py:" in message


def test_reserved_ids_and_no_spout() -> None:
    """Ids that begin with two underscores are rejected, and so is a topology without a spout (A13, J5)."""
    builder = TopologyBuilder()
    builder.set_spout("__mine", TestWordSpout())
    assert "begin with __ are reserved" in refused(builder)
    builder = TopologyBuilder()
    builder.set_bolt("count", TestWordCounter())
    assert "has no spout" in refused(builder)


def test_direct_grouping_needs_a_direct_stream() -> None:
    """A direct grouping on a stream that is not declared direct is rejected (D11)."""
    builder = TopologyBuilder()
    builder.set_spout("words", TestWordSpout())
    builder.set_bolt("count", TestWordCounter()).direct_grouping("words")
    assert "the stream is not declared as direct" in refused(builder)


def test_a_conf_that_is_no_json_is_refused() -> None:
    """A configuration that is not JSON-serialisable is rejected, with the key (A24)."""
    with pytest.raises(InvalidTopologyError, match="'mine' is not JSON-serialisable"):
        plan_topology(chain({"mine": object()}))
