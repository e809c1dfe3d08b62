"""What users hear about before a topology runs (W15, B4)."""

from stormspark import TopologyBuilder
from stormspark.plan import advice, plan_topology
from stormspark.testing import TestWordCounter, TestWordSpout


def said(**conf: object) -> list[str]:
    builder = TopologyBuilder()
    builder.set_spout("words", TestWordSpout(), 2)
    builder.set_bolt("count", TestWordCounter(), 2).shuffle_grouping("words")
    settings = {key.replace("_", "."): value for key, value in conf.items()}
    return advice(plan_topology(builder.create_topology("t", settings)))


def test_nothing_is_said_of_a_plain_topology() -> None:
    assert said(topology_workers=2, my_own="x") == []


def test_pending_without_timeouts_can_stall_for_ever() -> None:
    """W15."""
    (one,) = said(topology_max_spout_pending=10, topology_enable_message_timeouts=False)
    assert "spout 'words'" in one and "stalls the spout for ever (W15)" in one


def test_a_small_limit_over_workers_bounds_the_rate_and_says_how_much() -> None:
    (one,) = said(topology_max_spout_pending=100, topology_workers=2)
    assert "bounds the rate to some 200 tuples/s" in one and "50,000 or more" in one
    assert said(topology_max_spout_pending=100, topology_workers=1) == []


def test_a_limit_without_ackers_limits_nothing() -> None:
    (one,) = said(topology_max_spout_pending=100, topology_acker_executors=0)
    assert "it limits nothing (B4)" in one
