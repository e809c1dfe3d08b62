"""What was declared is what runs, on every engine."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stormspark import Config, Fields, TopologyBuilder
from stormspark.errors import ComponentError
from tests.conformance.building_components import (
    ConfiguredBolt,
    ConfiguredSpout,
    Count,
    JournalBolt,
    JournalHook,
    Made,
    ManyStreams,
    RefusingHook,
    Top,
    Undeclared,
    Wrong,
    write_line,
)
from tests.conformance.components import Numbers, Record

Run = Callable[..., Any]


def values(done: Any, component: str) -> list[Any]:
    """The values that `Record` has seen."""
    return [one.values[0] for one in done.recorded(component)]


def test_functions_are_spouts_and_bolts(run: Run, tmp_path: Path) -> None:
    """A1: a supplier until it gives None, a function that emits, and one that is a sink."""
    numbers, seen = iter(range(20)), tmp_path / "seen"
    builder = TopologyBuilder()
    builder.set_spout("numbers", lambda: next(numbers, None))
    builder.set_bolt(
        "tens", lambda tup, collector: collector.emit((10 * tup["lambda"], "x")), 2, ("ten", "x")
    ).shuffle_grouping("numbers")
    builder.set_bolt("sink", lambda tup: write_line(seen, *tup.values)).fields_grouping("tens", Fields("ten"))
    done = run(builder.create_topology("lambdas"))
    assert sorted(map(json.loads, seen.read_text().splitlines())) == [[10 * n, "x"] for n in range(20)]
    assert next(numbers) == 0  # the topology has a copy (A3)
    components = done.statistics.components
    assert (components["numbers"].emitted, components["numbers"].acked) == (20, 0)  # no ids, so no acks
    assert (components["tens"].executed, components["tens"].emitted, components["sink"].executed) == (
        20,
        20,
        20,
    )


def test_every_task_has_an_instance_of_its_own_with_the_constructors_state(run: Run) -> None:
    """A3, A16: constructed once, where it was built; prepared in each task."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(1))
    names = ["first"]
    builder.set_bolt("made", Made(names), 2).set_num_tasks(4).shuffle_grouping("numbers")
    topology = builder.create_topology("instances")
    names.append("too late")
    done = run(topology)
    tasks = done.effects_by_task("made")
    assert len(tasks) == 4
    for [[names_seen, marks, pid]] in tasks:
        assert (names_seen, len(marks), pid) == (["first"], 1, os.getpid())
    assert len({marks[0] for [[_, marks, _]] in tasks}) == 4


def test_settings_of_a_component_win_over_those_of_the_topology(run: Run) -> None:
    """A20, A21, X71: topology, what is laid over it, the component's own, the declarer's; as open and prepare see them."""
    own = {
        "mine.2": "component",
        "mine.3": "component",
        "mine.4": "component",
        "topology.max.spout.pending": 7,
        "topology.message.timeout.secs": 3,
    }
    builder = TopologyBuilder()
    builder.set_spout("spout", ConfiguredSpout(own)).add_configuration("mine.3", "declarer")
    builder.set_bolt("bolt", ConfiguredBolt(own)).shuffle_grouping("spout").add_configuration(
        "mine.3", "declarer"
    ).set_num_tasks(1)
    conf = Config(dict.fromkeys(["mine.0", "mine.1", "mine.2", "mine.3"], "topology"))
    done = run(builder.create_topology("precedence", conf), {"mine.1": "laid over", "mine.4": "laid over"})
    expected = {
        "mine.0": "topology",
        "mine.1": "laid over",
        "mine.2": "component",
        "mine.3": "declarer",
        "mine.4": "component",
        "topology.max.spout.pending": 7,
        "topology.message.timeout.secs": None,
        "topology.tasks": None,
    }
    assert done.effects("spout") == done.effects("bolt") == [[expected]]


def test_a_second_subscription_of_a_stream_replaces_the_first(run: Run) -> None:
    """A8: no tuple comes twice."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(30))
    builder.set_bolt("record", Record(), 3).all_grouping("numbers").shuffle_grouping("numbers")
    done = run(builder.create_topology("replaced"))
    assert Counter(values(done, "record")) == Counter(range(30))


def test_a_fields_grouping_without_fields_is_the_global_one(run: Run) -> None:
    """A fields grouping without fields sends all tuples to the first task (A7)."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(30), 2)
    builder.set_bolt("record", Record(), 3).fields_grouping("numbers", Fields())
    done = run(builder.create_topology("global"))
    seen = [sum(effect != ["cleanup"] for effect in task) for task in done.effects_by_task("record")]
    assert seen == [30, 0, 0]


def test_several_streams_and_values_of_any_type(run: Run) -> None:
    """X61, X63, A10: a stream each for odd, even and objects."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(20))
    builder.set_bolt("streams", ManyStreams()).shuffle_grouping("numbers")
    builder.set_bolt("odd", Record(), 2).shuffle_grouping("streams", "odd")
    builder.set_bolt("even", Record(), 2).shuffle_grouping("streams", "even")
    builder.set_bolt(
        "amounts",
        lambda tup, collector: collector.emit((tup["money"].amount, tup["money"].currency)),
        2,
        ("amount", "currency"),
    ).shuffle_grouping("streams", "objects")
    builder.set_bolt("money", Record()).shuffle_grouping("amounts")
    done = run(builder.create_topology("streams"))
    assert sorted(values(done, "odd")) == list(range(1, 20, 2))
    assert sorted(values(done, "even")) == list(range(0, 20, 2))
    assert sorted(one.values for one in done.recorded("money")) == [(n, "EUR") for n in range(20)]


def test_filter_aggregate_and_rank_in_two_steps(run: Run) -> None:
    """X64: each task ranks its own keys, one task ranks the best of all."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(120), 2)
    builder.set_bolt(
        "even",
        lambda tup, out: out.emit((tup["n"] % 7 * tup["n"] % 5,)) if tup["n"] % 2 == 0 else None,
        2,
        "key",
    ).shuffle_grouping("numbers")
    builder.set_bolt("count", Count(), 2).fields_grouping("even", Fields("key"))
    builder.set_bolt("best of each", Top(3), 2).fields_grouping("count", Fields("key"))
    builder.set_bolt("best", Top(3)).global_grouping("best of each")
    done = run(builder.create_topology("top-n"))
    counts = Counter(n % 7 * n % 5 for n in range(0, 120, 2))
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:3]
    assert done.effects("best") == [[list(pair) for pair in ranked]]


def test_a_component_must_declare_what_it_emits(run: Run) -> None:
    """X60, A10: the error names the component and what to do."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(1, replays=0))
    builder.set_bolt("undeclared", Undeclared()).shuffle_grouping("numbers")
    done = run(builder.create_topology("undeclared"))
    error = done.statistics.components["undeclared"].last_error
    assert "'undeclared'" in error and "declare" in error
    assert [what for what, *_ in done.effects("numbers")][:1] == ["fail"]


def test_a_wrong_number_of_values_fails_the_message_only_if_somebody_subscribes(run: Run) -> None:
    """A12: Storm builds no tuple for a stream that nobody subscribes to, and so does not count its values."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(4, replays=1))
    builder.set_bolt("wrong", Wrong()).shuffle_grouping("numbers")
    done = run(builder.create_topology("unread"))
    assert [what for what, *_ in done.effects("numbers")][:4] == ["ack"] * 4
    assert (done.statistics.components["wrong"].emitted, done.statistics.components["wrong"].errors) == (4, 0)
    builder.set_bolt("record", Record()).shuffle_grouping("wrong")
    done = run(builder.create_topology("read"))
    assert "fail" in [what for what, *_ in done.effects("numbers")]
    assert "wrong number of fields: expected 1 (one), got 2" in done.statistics.components["wrong"].last_error


def test_worker_hooks_start_first_end_last_and_share_with_the_tasks(run: Run) -> None:
    """A5, A28: one hook a worker; its tasks get the very object that it has set."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(4))
    builder.set_bolt("bolt", JournalBolt(), 3).set_num_tasks(6).shuffle_grouping("numbers")
    builder.add_worker_hook(JournalHook("one")).add_worker_hook(JournalHook("two"))
    done = run(builder.create_topology("hooks"))
    workers = done.effects_by_task("worker")
    bolt_tasks: list[int] = []
    for journal in workers:
        words = [entry[0] for entry in journal]
        bolts = words.count("prepare")
        assert words == ["start"] * 2 + ["prepare"] * bolts + ["cleanup"] * bolts + ["shutdown"] * 2
        assert [entry[1] for entry in journal if entry[0] == "start"] == ["one", "two"]
        assert [entry[1] for entry in journal if entry[0] == "shutdown"] == ["two", "one"]
        assert len({entry[2] for entry in journal if entry[0] == "prepare"}) <= 1
        prepared = [entry[1] for entry in journal if entry[0] == "prepare"]
        assert set(prepared) <= set(journal[0][2])
        bolt_tasks += prepared
    assert sorted(bolt_tasks) == workers[0][0][3] and len(bolt_tasks) == 6


def test_a_worker_hook_that_raises_stops_the_topology(run: Run) -> None:
    """A5, W22: with its class and the line where it was added."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(1))
    builder.add_worker_hook(RefusingHook())
    with pytest.raises(
        ComponentError,
        match=r"worker hook RefusingHook, declared at .*test_building\.py:\d+, raised in start.*no such library",
    ):
        run(builder.create_topology("refusing"))
