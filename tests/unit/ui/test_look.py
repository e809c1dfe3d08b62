"""What is shown of a running topology: state, rates, the culprit, errors, links."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from stormspark import Fields, TopologyBuilder
from stormspark.backpressure import BoltPressure, Pressure, SpoutPressure
from stormspark.engine import RunningTopology
from stormspark.metrics import TopologyStatistics
from stormspark.plan import plan_topology
from stormspark.testing import TestWordCounter, TestWordSpout
from stormspark.ui.look import Look
from tests.unit.scripted_topology import Moment, ScriptedTopology, component


def _plan():
    builder = TopologyBuilder()
    builder.set_spout("spout", TestWordSpout())
    builder.set_bolt("bolt", TestWordCounter()).fields_grouping("spout", Fields("word"))
    return plan_topology(builder.create_topology("scripted"), {"topology.workers": 1})


PLAN = _plan()


class Planned(ScriptedTopology):
    """A scripted topology with a plan."""

    plan = PLAN
    #: What the statistics have besides.
    more: dict[str, object] = {}  # noqa: RUF012

    def statistics(self) -> TopologyStatistics:
        return replace(super().statistics(), **self.more)  # type: ignore[arg-type]


def look_at(running: ScriptedTopology) -> Look:
    look = Look(cast(RunningTopology, running))
    look.again()
    return look


def test_the_first_look_has_means_and_later_ones_have_the_last_seconds():
    running = Planned([Moment(0.0), Moment(10.0, executed=1000), Moment(20.0, executed=1500)])
    running.now = 10.0
    look = look_at(running)
    assert "'scripted' runs (10 s); 100 tuples/s on average" in look.line()
    assert "100/s" in look.html({})
    running.now = 20.0
    look.again()
    assert "50 tuples/s, acked" in look.line()
    assert "50/s" in look.html({})


def test_a_topology_that_starts_says_what_it_waits_for():
    running = Planned([Moment(0.0, batches=0)])
    running.start = "Spark starts the query"
    assert look_at(running).line().startswith("'scripted' starts: Spark starts the query (0 s); 0 tuples/s")


def test_the_culprit_is_marked_while_it_slows_others_down():
    spouts = {"spout": SpoutPressure(limit=5, throttled_by="bolt", throttled_ms={"bolt": 500.0})}
    bolts = {"bolt": BoltPressure(9000, 102_760_448, 1_000_000, 104_857_600, 4.0, True)}
    running = Planned([Moment(0.0, executed=10)], ends_at=5.0)
    running.more = {"pressure": Pressure(spouts, bolts, 1, [])}
    running.now = 2.0
    look = look_at(running)
    assert look.line().endswith("; throttled by bolt (queue 98 MB of 100)")
    assert "<p class='slow'>throttled by bolt (queue 98 MB of 100)</p>" in look.html({})
    assert 'stroke-width="2.5"' in look.html({})
    running.now = 5.0
    look.again()
    assert look.state == "has ended" and "throttled by" not in look.line()
    assert 'stroke-width="2.5"' not in look.html({})
    assert "throttled 0.5 of 5.0 s" in look.html({}), "what held spouts back stays to be read"


def test_errors_are_shown_as_text():
    error = ValueError("first <b>\nsecond")
    error.__cause__ = KeyError("why")
    running = Planned([Moment(0.0)], ends_at=0.0, error=error)
    failing = component(
        "bolt", last_error="b.py:3: Traceback (most recent call last):\n  ...\nValueError: <i>", errors=2
    )
    running.more = {"components": {"spout": component("spout"), "bolt": failing}}
    look = look_at(running)
    assert look.state == "has stopped with an error"
    assert look.line().endswith("; ValueError: first <b>")
    html = look.html({})
    assert "<b>" not in html and "<i>" not in html
    for shown in (
        "second",
        "because of KeyError",
        "bolt: 2 errors, the last one: b.py:3: ValueError: &lt;i&gt;",
    ):
        assert shown in html


def test_links_lead_to_the_logs():
    html = look_at(Planned([Moment(0.0)])).html({"logs: /a b'<": "file:///a%20b%27%3C"})
    assert "<a href='file:///a%20b%27%3C' target='_blank' rel='noopener'>logs: /a b&#x27;&lt;</a>" in html
