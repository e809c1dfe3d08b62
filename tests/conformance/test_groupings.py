"""Stream groupings: who gets which tuple, the same on every engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from stormspark import Fields, TopologyBuilder
from stormspark.errors import ComponentError
from stormspark.grouping import GroupingContext, PartialKeyGrouping
from tests.conformance.components import Numbers, Record, Recorded, Repeat, acked
from tests.conformance.grouping_components import DirectBolt, DirectSpout, NotReady, OwnCount, Pick, Words

Run = Callable[..., Any]
ACKERS = {"topology.acker.executors": 1}  # so that task ids do not depend on the number of workers


def test_a_partial_key_goes_to_the_less_used_of_its_two_tasks(run: Run) -> None:
    """D12: tuple by tuple where Storm sends it."""
    builder = TopologyBuilder()
    spout = Words(300, ["storm", "heron", "spark", "naïve", ""])
    builder.set_spout("words", spout)
    builder.set_bolt("record", Record(), parallelism=4).partial_key_grouping("words", Fields("word"))
    done = run(builder.create_topology("partial"), ACKERS)
    got = Counter((one.task, *one.values) for one in done.recorded("record"))
    tasks = tuple(range(2, 6))  # after the acker
    context = GroupingContext("words", "default", ("word",), 6, tasks, (), Random(1))
    choose = PartialKeyGrouping("word").chooser(context)
    assert got == Counter((choose((word,)), word) for word in spout.all)
    assert done.acked("words") == Counter(range(1, 301))


def test_none_grouping_draws_a_task_for_each_tuple(run: Run) -> None:
    """The none grouping draws a task for each tuple, so that all tasks get about the same number (D8)."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(800), parallelism=2)
    builder.set_bolt("record", Record(), parallelism=4).none_grouping("numbers")
    done = run(builder.create_topology("none"))
    seen = done.recorded("record")
    assert Counter(one.values[0] for one in seen) == Counter(range(800))
    by_task = Counter(one.task for one in seen)
    assert len(by_task) == 4
    assert all(120 < count < 280 for count in by_task.values())  # more than six standard deviations
    assert done.acked("numbers") == Counter(range(800))


def test_a_custom_grouping_names_none_one_or_many_tasks(run: Run) -> None:
    """D13, E30: a tuple for nobody is acked."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(40), parallelism=2)
    builder.set_bolt("record", Record(), parallelism=4).custom_grouping("numbers", Pick())
    done = run(builder.create_topology("custom"), ACKERS)
    got = Counter((one.task, *one.values) for one in done.recorded("record"))
    tasks = [4, 5, 6, 7]  # "numbers" has 2 and 3
    assert got == Counter((task, n) for n in range(40) for task in tasks[: (0, 1, 2, 4)[n % 4]])
    assert done.statistics.components["numbers"].transferred == 10 * (0 + 1 + 2 + 4)
    assert done.acked("numbers") == Counter(range(40))


def test_each_sender_task_has_a_custom_grouping_of_its_own(run: Run) -> None:
    """D13: three senders that count for themselves are even one by one."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(30), parallelism=3)
    builder.set_bolt("record", Record(), parallelism=2).custom_grouping("numbers", OwnCount())
    done = run(builder.create_topology("copies"))
    first = min(one.task for one in done.recorded("record"))
    # Sender i has i, i + 3, i + 6, ...: its first, third, ... go to the first task.
    assert sorted(one.values[0] for one in done.recorded("record") if one.task == first) == [
        n for n in range(30) if n // 3 % 2 == 0
    ]


def test_a_wrong_answer_of_a_custom_grouping_fails_the_tuple_and_nothing_of_the_emit_is_sent(
    run: Run,
) -> None:
    """D13: neither to the consumer nor to another one of the same stream."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(20, replays=0))
    builder.set_bolt("repeat", Repeat(1)).shuffle_grouping("numbers")
    builder.set_bolt("also", Record(), parallelism=2).all_grouping("repeat")
    builder.set_bolt("picked", Record(), parallelism=2).custom_grouping("repeat", Pick(unknown=7, fails=10))
    done = run(builder.create_topology("wrong"))
    reasons = {fail.message: fail.reason for fail in done.failed("numbers")}
    tasks = sorted({one.task for one in done.recorded("picked")})
    assert set(reasons) == {7, 10}
    for reason in reasons.values():
        assert reason.startswith("EmitError: custom grouping Pick from component 'repeat', task ")
        assert "stream 'default' to 'picked': choose_tasks " in reason
    assert f"ids of its target tasks {tasks}" in reasons[7]
    assert f"got [{tasks[0]}, 4711]; not one of them: 4711 of type int" in reasons[7]
    assert "raised ZeroDivisionError: no rule" in reasons[10]
    others = [n for n in range(20) if n not in (7, 10)]
    assert Counter(one.values[0] for one in done.recorded("also")) == Counter(others * 2)
    assert {one.values[0] for one in done.recorded("picked")} == {n for n in others if n % 4}
    assert done.acked("numbers") == Counter(others)


def test_a_custom_grouping_that_cannot_be_prepared_stops_the_topology(run: Run) -> None:
    """An error in a custom grouping's prepare stops the topology and names the grouping's place (D13, W22)."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(5))
    builder.set_bolt("record", Record()).custom_grouping("numbers", NotReady())
    with pytest.raises(
        ComponentError,
        match=r"custom grouping NotReady from component 'numbers', task \d+, stream 'default' to 'record': prepare raised "
        "LookupError: no table of tasks",
    ):
        run(builder.create_topology("not-ready"))


def told_mistakes(done: Any, component: str) -> list[Any]:
    ((told,),) = [rest for what, *rest in done.effects(component) if what == "mistakes"]
    return list(told)


def check_mistakes(told: list[Any], component: str) -> None:
    plain, unknown, unknown_direct, regular, other_stream, nobody = told
    assert f"Cannot do regular emit to direct stream 'to' of '{component}': use emit_direct" in plain
    assert "Unknown stream ID 'nowhere'; it declares 'to', 'plain'" in unknown
    assert "Unknown stream ID 'nowhere'" in unknown_direct
    assert "of 'regular', which does not subscribe by a direct grouping" in regular
    assert (other_stream, nobody) == (
        None,
        None,
    )  # to a task that does not subscribe: nothing, without complaint
    for error in (plain, unknown, unknown_direct, regular):
        assert error.startswith("EmitError: ") and f"'{component}'" in error


def test_a_spout_names_the_tasks_of_a_direct_stream(run: Run) -> None:
    """D11, B9: also each mistake that one can make with it."""
    builder = TopologyBuilder()
    builder.set_spout("spout", DirectSpout(30))
    builder.set_bolt("direct", Record(), parallelism=3).direct_grouping("spout", "to")
    builder.set_bolt("regular", Record(), parallelism=2).shuffle_grouping("spout", "plain")
    done = run(builder.create_topology("direct-spout"))
    check_mistakes(told_mistakes(done, "spout"), "spout")
    tasks = sorted({one.task for one in done.recorded("direct")})
    assert Counter(done.recorded("direct")) == Counter(
        Recorded(tasks[n % 3], "spout", "to", (n,)) for n in range(30)
    )
    assert Counter(one.values[0] for one in done.recorded("regular")) == Counter(range(30))
    assert done.acked("spout") == Counter([*range(30), *(f"plain {n}" for n in range(30)), "to nobody"])


def test_a_bolt_names_the_tasks_of_a_direct_stream(run: Run) -> None:
    """D11, B9: anchored as any emit is."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(30), parallelism=2)
    builder.set_bolt("bolt", DirectBolt(), parallelism=2).shuffle_grouping("numbers")
    builder.set_bolt("direct", Record(fail=(4,)), parallelism=3).direct_grouping("bolt", "to")
    builder.set_bolt("regular", Record(), parallelism=2).shuffle_grouping("bolt", "plain")
    done = run(builder.create_topology("direct-bolt"))
    check_mistakes(told_mistakes(done, "bolt"), "bolt")
    tasks = sorted({one.task for one in done.recorded("direct")})
    assert {(one.task, *one.values) for one in done.recorded("direct")} == {
        (tasks[n % 3], n) for n in range(30)
    }
    assert [fail.message for fail in done.failed("numbers")] == [4]
    assert done.acked("numbers") == Counter(range(30))


def test_several_subscribers_of_a_stream_are_served_each_by_its_own_grouping(run: Run) -> None:
    """D15, D5-D10, D12, D13: an edge for every tuple and task, so a failure anywhere fails the message."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(60))
    builder.set_bolt("shuffled", Record(), parallelism=3).shuffle_grouping("numbers")
    builder.set_bolt("by_key", Record(), parallelism=3).fields_grouping("numbers", Fields("n"))
    builder.set_bolt("partial", Record(), parallelism=3).partial_key_grouping("numbers", Fields("n"))
    builder.set_bolt("drawn", Record(), parallelism=3).none_grouping("numbers")
    builder.set_bolt("everyone", Record(fail=(17,)), parallelism=3).all_grouping("numbers")
    builder.set_bolt("lowest", Record(), parallelism=3).global_grouping("numbers")
    builder.set_bolt("near", Record(), parallelism=3).local_or_shuffle_grouping("numbers")
    builder.set_bolt("picked", Record(), parallelism=3).custom_grouping("numbers", Pick())
    done = run(builder.create_topology("subscribers"))
    for component in ("shuffled", "by_key", "partial", "drawn", "lowest", "near"):
        assert Counter(one.values[0] for one in done.recorded(component)) == Counter([*range(60), 17])
    # Message 17 is sent twice; the first time one of the three has failed it.
    assert Counter(one.values[0] for one in done.recorded("everyone")) == Counter(
        [*(list(range(60)) * 3), *[17] * 2]
    )
    assert Counter(one.values[0] for one in done.recorded("picked")) == Counter(
        [n for n in range(60) for _ in range((0, 1, 2, 3)[n % 4])] + [17]
    )
    assert done.statistics.components["numbers"].transferred == 61 * (6 + 3) + 15 * (1 + 2 + 3) + 1
    assert [(fail.message, fail.outcome) for fail in done.failed("numbers")] == [(17, "FAILED")]
    assert done.acked("numbers") == Counter(range(60))


@pytest.mark.slow
def test_shuffles_that_follow_load_deliver_all_and_nothing_twice(run: Run) -> None:
    """D6, D7: with Storm's default said aloud."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(2000), parallelism=2)
    builder.set_bolt("repeat", Repeat(2), parallelism=3).shuffle_grouping("numbers")
    builder.set_bolt("first", Record(), parallelism=3).local_first_grouping("repeat")
    builder.set_bolt("near", Record(), parallelism=3).local_or_shuffle_grouping("repeat")
    conf = {"topology.disable.loadaware.messaging": False, "topology.executor.receive.buffer.size": 16}
    done = run(builder.create_topology("loads"), conf)
    for component in ("first", "near"):
        assert Counter(one.values for one in done.recorded(component)) == Counter(
            (n, copy) for n in range(2000) for copy in range(2)
        )
    assert done.acked("numbers") == Counter(range(2000))


def test_a_key_stays_with_its_task_when_executors_change(run: Run) -> None:
    """D17, D1: only another number of tasks gives a key another task."""
    tasks_of = []
    for executors in (1, 4):
        builder = TopologyBuilder()
        builder.set_spout("numbers", Numbers(50))
        record = builder.set_bolt("record", Record(), parallelism=executors).set_num_tasks(4)
        record.fields_grouping("numbers", Fields("n"))
        done = run(builder.create_topology(f"executors-{executors}"), ACKERS)
        tasks_of.append({one.values[0]: one.task for one in done.recorded("record")})
    assert len(tasks_of[0]) == 50
    assert tasks_of[0] == tasks_of[1]


def test_acks_come_home_to_the_task_that_emitted(run: Run) -> None:
    """D16: in Storm by a direct stream of the acker's."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(90), parallelism=3)
    builder.set_bolt("record", Record(), parallelism=2).shuffle_grouping("numbers")
    done = run(builder.create_topology("home"))
    by_task = done.effects_by_task("numbers")
    assert [sorted(acked(effects)) for effects in by_task] == [
        list(range(first, 90, 3)) for first in range(3)
    ]
