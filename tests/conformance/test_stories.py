"""Stories of trees are the same on every engine, and whole: each worker tells its part."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from stormspark import Fields, TopologyBuilder
from stormspark.worker.stories.story import Story
from tests.conformance.acker_components import SlowAndForgetful
from tests.conformance.components import Numbers, Record, Repeat

Run = Callable[..., Any]
TRACE_ALL = {"stormspark.story.sample": 1, "stormspark.story.samples.per.sec": 1000}


def tuples(story: Story, *what: str) -> int:
    return sum(event.tuples for event in story.events if event.what in what)


def test_every_tuple_of_every_tree_is_in_its_story(run: Run) -> None:
    """W4, W6: also where it crosses workers; a replay names the tree that failed."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(20), parallelism=2)
    builder.set_bolt("repeat", Repeat(3), parallelism=2).shuffle_grouping("numbers")
    builder.set_bolt("record", Record(fail=(3, 7)), parallelism=3).fields_grouping("repeat", Fields("n"))
    done = run(builder.create_topology("stories"), TRACE_ALL)
    assert Counter(story.outcome for story in done.stories) == {"acked": 20, "failed by a bolt": 2}
    failed = {story.message_id: story for story in done.stories if story.failed}
    assert set(failed) == {"3", "7"}
    for story in done.stories:
        assert story.traced
        assert story.spout is not None and story.spout.startswith("numbers[")
        assert tuples(story, "emitted_away") == tuples(story, "sent") == tuples(story, "received")
        if story.failed:
            assert story.reason is not None and story.reason.startswith("record[")
            continue
        assert tuples(story, "emitted", "emitted_away") == tuples(story, "acked") == 4
        acked = Counter(
            event.by.partition("[")[0]
            for event in story.events
            for _ in range(event.tuples)
            if event.what == "acked"
        )
        assert acked == {"repeat": 1, "record": 3}
        if story.message_id in failed:
            assert story.replay_of == failed[story.message_id].root


@pytest.mark.slow
def test_the_story_of_a_timed_out_tree_names_the_task_that_dropped_it(run: Run) -> None:
    """W3, W4, W6: nothing is sampled."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(4, replays=1), parallelism=2)
    builder.set_bolt("repeat", Repeat(1), parallelism=2).shuffle_grouping("numbers")
    builder.set_bolt("slow", SlowAndForgetful(seconds=0.1), parallelism=3).shuffle_grouping("repeat")
    done = run(
        builder.create_topology("holders"),
        {"topology.message.timeout.secs": 2, "stormspark.story.sample": 0},
    )
    assert {(story.message_id, story.outcome) for story in done.stories} == {
        ("1", "timed out"),
        ("3", "timed out"),
    }
    assert Counter(story.traced for story in done.stories) == {False: 2, True: 2}
    for story in done.stories:
        (dropped,) = [holder for holder in story.holders if holder.state == "dropped"]
        assert dropped.tuples == 1
        assert dropped.task.startswith("slow[" if story.traced else "a task of worker ")
    assert "timed out" in done.statistics.components["numbers"].last_failure
