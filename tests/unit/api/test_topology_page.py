"""What a notebook shows of a topology before it runs."""

from __future__ import annotations

from stormspark import Fields, Topology, TopologyBuilder
from stormspark.plan import plan_topology
from stormspark.testing import TestWordCounter, TestWordSpout

NASTY = "<script>&'\""


def words(workers: int = 2) -> Topology:
    builder = TopologyBuilder()
    builder.set_spout("words", TestWordSpout(), parallelism=2)
    builder.set_bolt(NASTY, TestWordCounter(), parallelism=4).set_num_tasks(8).fields_grouping(
        "words", Fields("word")
    )
    builder.set_bolt("count", TestWordCounter()).global_grouping(NASTY)
    return builder.create_topology("t<t", {"topology.workers": workers})


def test_a_topology_shows_its_graph():
    topology = words()
    assert repr(topology) == f"<Topology 't<t': spout words x2, bolt {NASTY} x4, bolt count x1>"
    html = topology._repr_html_()
    assert "<script>" not in html and "t<t" not in html
    for shown in ("fields(word)", "global", "bolt x 4, 8 tasks", "default(word, count)", "TestWordCounter"):
        assert shown in html


def test_a_topology_that_can_not_run_shows_what_is_missing():
    builder = TopologyBuilder()
    builder.set_bolt("count", TestWordCounter()).shuffle_grouping("wrods")
    html = builder.create_topology("wrong")._repr_html_()
    assert "wrods" in html and "not declared" in html


def test_no_components_and_many():
    empty = Topology("empty", {})
    assert repr(empty) == "<Topology 'empty': no components>"
    assert "no components" in empty._repr_html_()
    builder = TopologyBuilder()
    builder.set_spout("words", TestWordSpout())
    for number in range(300):
        builder.set_bolt(f"b{number}", TestWordCounter()).shuffle_grouping("words")
    many = builder.create_topology("many")
    assert repr(many).endswith("bolt b6 x1, 293 more>")
    assert "<svg" not in many._repr_html_() and "b299" in many._repr_html_()


def test_a_plan_shows_workers_and_supersteps():
    plan = plan_topology(words(), {})
    assert repr(plan) == "<PhysicalPlan 't<t': 3 components, 11 tasks, 2 workers, 4 supersteps>"
    html = plan._repr_html_()
    assert "<script>" not in html
    for shown in (
        "8 tasks in 4 executors",
        "topology.workers is 2",
        "words[1]=",
        "supersteps 0 to 3",
        "crosses workers",
    ):
        assert shown in html


def test_a_plan_of_one_worker_has_no_exchange():
    html = plan_topology(words(workers=1), {})._repr_html_()
    assert "supersteps 0 to 0" in html and "an exchange" not in html and "thick arrow" not in html


def test_pickled_bytes_are_not_shown():
    topology = words()
    assert "pickled" not in repr(topology.components["words"])
    assert "pickled" not in repr(plan_topology(topology, {}).components["words"])
