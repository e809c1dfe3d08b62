"""Stories of trees: what is told of those that fail, and what of those that are traced."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stormspark import TopologyBuilder
from stormspark.acker import Tree
from stormspark.worker.host.task_logs import TaskLogs
from stormspark.worker.stories.stories import Stories
from stormspark.worker.stories.story import Story, merge_stories, read_stories, root_text
from tests.unit.worker.components import Call, Collect, Script
from tests.unit.worker.rig import Rig, two

TRACE_ALL = {"stormspark_story_sample": 1, "stormspark_story_samples_per_sec": 10_000}


def stories(rig: Rig) -> list[Story]:
    return merge_stories([line for worker in rig.workers for line in worker.stories.lines()])


def relay(bolt: Any, tup: Any) -> None:
    bolt.collector.emit((tup["value"],), anchors=tup)
    bolt.collector.ack(tup)


def keep(bolt: Any, tup: Any) -> None:
    bolt.kept.append(tup)


def drop(bolt: Any, tup: Any) -> None:
    """Neither ack nor fail."""


def chain(last: Callable[[Any, Any], None], rows: list[tuple[Any, ...]]) -> TopologyBuilder:
    """Spout -> relay -> a bolt; with two or more workers the hops cross."""
    builder = two(Call(relay), rows)
    builder.set_bolt("c", Call(last)).shuffle_grouping("b")
    return builder


class Replays(Script):
    """Emits what has failed again, at once."""

    def fail(self, message_id: Any) -> None:
        super().fail(message_id)
        self.collector.emit(self.rows[message_id], message_id=message_id)


def steps(story: Story) -> list[tuple[str, str, str | None, int]]:
    return [(event.what, event.by, event.to, event.tuples) for event in story.events]


# -- trees that time out -------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_the_story_of_a_timed_out_tree_names_its_holder_and_how_long_it_held(workers: int) -> None:
    """W4, W6, E10: nothing of it was recorded before."""
    rig = Rig(chain(keep, [(1,)]), workers, topology_message_timeout_secs=10, stormspark_story_sample=0)
    rig.batches(2)
    for _ in range(40):
        rig.advance(0.5)
    (story,) = stories(rig)
    assert (story.outcome, story.message_id, story.spout, story.traced) == ("timed out", "0", "a[0]", False)
    (held,) = [holder for holder in story.holders if holder.state == "held"]
    assert (held.task, held.tuples) == ("c[0]", 1)
    assert held.seconds is not None and held.seconds >= 10
    ((what, id, verdict),) = rig.users("a")[0].heard
    assert (what, id) == ("fail", 0)
    assert verdict.startswith("timed out: not fully processed within 10 s: ")
    if workers == 1:
        assert f"c[0] has held 1 tuple for {held.seconds:.1f} s without ack or fail" in verdict
    assert rig.users("a")[0].collector.verdict is None  # outside of ack and fail


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_the_replay_of_a_failed_message_is_traced_and_names_the_task_that_dropped_it(workers: int) -> None:
    """W4, W6: the first time only the worker is known in which it was dropped."""
    builder = TopologyBuilder()
    builder.set_spout("a", Replays([(1,)]))
    builder.set_bolt("b", Call(relay)).shuffle_grouping("a")
    builder.set_bolt("c", Call(drop)).shuffle_grouping("b")
    builder.set_bolt("d", Call(relay)).shuffle_grouping("b")
    rig = Rig(builder, workers, topology_message_timeout_secs=10, stormspark_story_sample=0)
    for _ in range(90):
        rig.advance(0.5)
    *_, second, first = [story for story in stories(rig) if story.failed]
    assert (first.traced, second.traced, second.replay_of) == (False, True, first.root)
    (dropped,) = [str(holder) for holder in first.holders if holder.state == "dropped"]
    where = {task.name: worker.index for worker in rig.workers for task in worker.tasks.values()}
    assert dropped == f"a task of worker {where['c[0]']} has let go of 1 tuple without ack or fail"
    assert [str(holder) for holder in second.holders if holder.state != "elsewhere"] == [
        "c[0] has let go of 1 tuple without ack or fail"
    ]
    assert ("acked", "d[0]", None, 1) in steps(second)
    assert not [event for event in second.events if event.by == "c[0]"]


@pytest.mark.parametrize(("workers", "where"), [(1, "waits in b[0]"), (2, "waits to leave for b[0]")])
def test_what_waits_is_reported_too(workers: int, where: str) -> None:
    """W3, W6: tuples in queues here, and those for other workers."""
    rig = Rig(two(Collect(), [(n,) for n in range(5)]), workers)
    home = next(worker for worker in rig.workers if worker.wiring.spouts)
    home.turns.run_pass = lambda deadline: True  # type: ignore[method-assign]  # bolts get no turn
    home.turns.ask_spouts(1.0, home.wiring.spouts)
    why = home.stories.explain(list(home.ledger.open_trees()))
    assert len(why) == 5
    assert set(why.values()) == {f"1 tuple {where}"}


def test_timeouts_say_how_many_are_pending_and_what_would_help(caplog: pytest.LogCaptureFixture) -> None:
    """W3: too many pending for the rate at which they come through."""
    caplog.set_level(logging.WARNING)

    def one_a_second(bolt: Any, tup: Any) -> None:
        bolt.kept.append(tup)

    rig = Rig(two(Call(one_a_second), [(n,) for n in range(100)]), 1, topology_message_timeout_secs=10)
    (bolt,) = rig.users("b")
    for _ in range(21):
        rig.advance(1)
        bolt.collector.ack(bolt.kept.pop(0))
    lines = [record.getMessage() for record in caplog.records]
    (advice,) = [line for line in lines if "pending trees timed out" in line]
    assert advice.startswith(
        "a[0]: 80 of 80 pending trees timed out (topology.message.timeout.secs is 10); 10 were acked"
    )
    assert "At that rate the pending trees take 80 s: set topology.max.spout.pending to 5 or less" in advice
    assert "or the timeout to 160 or more" in advice


def test_timeouts_of_trees_that_are_stuck_do_not_ask_for_a_longer_timeout(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """When a tree is stuck while others are fast, the advice says that the timeout is long enough (W3, W6)."""

    def all_but_the_first(bolt: Any, tup: Any) -> None:
        (bolt.kept.append if tup["value"] == 0 else bolt.collector.ack)(tup)

    rig = Rig(two(Call(all_but_the_first), [(n,) for n in range(100)]), 1, topology_message_timeout_secs=10)
    for _ in range(11):
        rig.advance(1)
    rig.users("a")[0].rows.extend([(n,) for n in range(1, 100)])
    for _ in range(11):
        rig.advance(1)
    (advice,) = [r.getMessage() for r in caplog.records if "pending trees timed out" in r.getMessage()]
    assert "1 of 1 pending" in advice
    assert "the timeout is long enough, and these trees are stuck" in advice


# -- trees that a bolt fails ---------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_a_tree_that_a_bolt_fails_names_it_in_the_log_with_the_root_of_its_story(
    workers: int, caplog: pytest.LogCaptureFixture
) -> None:
    """The log line of a failed message names the failing task, the error and the root of the story (W4, W6, C4)."""

    def fail_it(bolt: Any, tup: Any) -> None:
        raise KeyError("price")

    rig = Rig(chain(fail_it, [(1,)]), workers)
    rig.batches(3)
    (story,) = stories(rig)
    assert (story.outcome, story.reason) == ("failed by a bolt", "c[0]: KeyError: 'price'")
    (said,) = [record.getMessage() for record in caplog.records if record.name == "stormspark.task.a"]
    assert said == (
        f"a[0]: message 0 failed by c[0]: KeyError: 'price'; story {story.root}; if it is emitted again, that is traced"
    )


def test_the_verdict_that_a_spout_hears_names_the_story() -> None:
    """The verdict that a spout hears has the root of the story (W4, W6)."""

    class Listens(Script):
        def fail(self, message_id: Any) -> None:
            self.heard.append(self.collector.verdict)

    def fail_it(bolt: Any, tup: Any) -> None:
        bolt.collector.fail(tup, "no good")

    rig = Rig(two(Call(fail_it), Listens([(1,)])), 1)
    rig.batches(2)
    heard = rig.users("a")[0].heard
    assert [root_text(verdict.root) for verdict in heard] == [story.root for story in stories(rig)]


def test_logged_failures_and_written_stories_have_a_limit_and_the_rest_is_counted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Logged failures and written stories are limited, and the next story counts those left out (W4, C4)."""

    def fail_it(bolt: Any, tup: Any) -> None:
        bolt.collector.fail(tup)

    script = Script([(n,) for n in range(50)])
    rig = Rig(two(Call(fail_it), script), 1, stormspark_story_failures_per_sec=10)
    rig.batches(2)
    told = [record for record in caplog.records if record.name == "stormspark.task.a"]
    assert len(told) == 5
    assert len(stories(rig)) == 10
    (spout,) = rig.users("a")
    assert len(spout.heard) == 50
    spout.rows.append((50,))
    rig.advance(2)
    assert [story.untold for story in stories(rig)] == [40] + [0] * 10
    counters = rig.tasks("a")[0].counters
    assert (counters.failed, counters.errors) == (51, 0)


# -- traced trees --------------------------------------------------------------------------------------------


def test_a_traced_tree_tells_each_step_in_one_worker() -> None:
    """The story of a traced tree has each emit and each ack, in order (W6)."""
    rig = Rig(chain(lambda bolt, tup: bolt.collector.ack(tup), [(1,)]), 1, **TRACE_ALL)
    rig.batches(2)
    (story,) = stories(rig)
    assert (story.outcome, story.traced, story.hosts != ()) == ("acked", True, True)
    assert steps(story) == [
        ("emitted", "a[0]", "b[0]", 1),
        ("emitted", "b[0]", "c[0]", 1),
        ("acked", "b[0]", None, 1),
        ("acked", "c[0]", None, 1),
    ]


@pytest.mark.parametrize("workers", [2, 3])
def test_a_traced_tree_tells_each_step_over_workers(workers: int) -> None:
    """W6: each worker writes what it knows; together it is the whole."""
    rig = Rig(chain(lambda bolt, tup: bolt.collector.ack(tup), [(1,)]), workers, **TRACE_ALL)
    rig.batches(3)
    (story,) = stories(rig)
    where = {task.name: worker.index for worker in rig.workers for task in worker.tasks.values()}
    expected: list[tuple[str, str, str | None, int]] = []
    hops = [("a[0]", "b[0]"), ("b[0]", "c[0]")]
    for sender, target in hops:
        if where[sender] == where[target]:
            expected.append(("emitted", sender, target, 1))
            continue
        expected += [
            ("emitted_away", sender, target, 1),
            ("sent", f"worker {where[sender]}", f"worker {where[target]}", 1),
            ("received", f"worker {where[sender]}", target, 1),
        ]
    expected += [("acked", "b[0]", None, 1), ("acked", "c[0]", None, 1)]
    assert sorted(steps(story), key=str) == sorted(expected, key=str)
    assert story.outcome == "acked"


def test_a_tuple_of_several_trees_is_in_the_story_of_each() -> None:
    """E4, W6: also a broadcast, whose copies are one object in several inboxes."""

    def join(bolt: Any, tup: Any) -> None:
        bolt.kept.append(tup)
        if len(bolt.kept) == 3:
            bolt.collector.emit((0,), anchors=bolt.kept)
            for one in bolt.kept:
                bolt.collector.ack(one)

    builder = two(Call(join), [(1,), (2,), (3,)])
    builder.set_bolt("c", Collect(), 2).all_grouping("b")
    rig = Rig(builder, 1, **TRACE_ALL)
    rig.batches(2)
    told = stories(rig)
    assert len(told) == 3
    for story in told:
        assert steps(story) == [
            ("emitted", "a[0]", "b[0]", 1),
            ("emitted", "b[0]", "c[0]", 1),
            ("emitted", "b[0]", "c[1]", 1),
            ("acked", "b[0]", None, 1),
            ("acked", "c[0]", None, 1),
            ("acked", "c[1]", None, 1),
        ]


def test_two_tuples_to_one_task_are_one_event_and_a_stale_inbox_is_not_taken_for_the_target() -> None:
    """Successive emits to one task are one step of the story, and each step names its own target (W6)."""

    def twice_left_once_right(bolt: Any, tup: Any) -> None:
        left, right = bolt.context.component_tasks("c")
        for task in (left, left, right, left):
            bolt.collector.emit_direct(task, (1,), anchors=tup)
        bolt.collector.ack(tup)

    builder = two(Call(twice_left_once_right, direct=True), [(1,)])
    builder.set_bolt("c", Collect(), 2).direct_grouping("b")
    rig = Rig(builder, 1, **TRACE_ALL)
    rig.batches(2)
    (story,) = stories(rig)
    assert steps(story)[1:4] == [
        ("emitted", "b[0]", "c[0]", 2),
        ("emitted", "b[0]", "c[1]", 1),
        ("emitted", "b[0]", "c[0]", 1),
    ]


@pytest.mark.parametrize("workers", [1, 2])
def test_a_group_of_emits_is_one_story(workers: int) -> None:
    """A group of emits has one story, with one step for its tuples (X68, W6)."""

    class Grouped(Script):
        def next_tuple(self) -> None:
            if self.next < len(self.rows):
                self.next += 1
                with self.collector.group(self.next) as group:
                    group.emit((1,))
                    group.emit((2,))

    rig = Rig(two(Collect(), Grouped([(1,)])), workers, **TRACE_ALL)
    rig.batches(2)
    (story,) = stories(rig)
    assert story.outcome == "acked"
    emitted = [step for step in steps(story) if step[0].startswith("emitted")]
    assert [(by, to, tuples) for _, by, to, tuples in emitted] == [("a[0]", "b[0]", 2)]


def test_a_long_story_is_cut_and_counted() -> None:
    """W6: bounded."""

    def explode(bolt: Any, tup: Any) -> None:
        for n in range(1000):
            bolt.collector.emit((n,), anchors=tup)
        bolt.collector.ack(tup)

    builder = two(Call(explode), [(1,)])
    builder.set_bolt("c", Collect(), 2).shuffle_grouping("b")
    rig = Rig(builder, 1, **TRACE_ALL)
    rig.batches(2)
    (story,) = stories(rig)
    assert len(story.events) == 200
    assert sum(event.tuples for event in story.events) + story.omitted == 1 + 1000 + 1 + 1000
    assert story.outcome == "acked"


@pytest.mark.parametrize(("sample", "expected"), [(0, 0), (1, 40), (7, 5), (40, 1), (41, 0)])
def test_one_in_n_is_sampled(sample: int, expected: int) -> None:
    conf = {**TRACE_ALL, "stormspark_story_sample": sample}
    rig = Rig(two(Collect(), [(n,) for n in range(40)]), 1, **conf)
    rig.batches(2)
    assert len(stories(rig)) == expected


def test_samples_are_limited_a_second() -> None:
    rig = Rig(two(Collect(), [(n,) for n in range(40)]), 1, stormspark_story_sample=1)
    rig.batches(2)
    assert len(stories(rig)) == 5


def test_a_restarted_spout_reports_nothing_of_its_old_trees() -> None:
    """B10: they were neither acked nor failed."""

    class Raises(Script):
        def next_tuple(self) -> None:
            super().next_tuple()
            if self.rows.pop():
                msg = "as long as there are rows"
                raise ValueError(msg)

    rig = Rig(two(Call(keep), Raises([(0,), (1,)])), 1, **TRACE_ALL)
    rig.batches(1)
    spout = rig.tasks("a")[0]
    assert spout.counters.restarts and spout.counters.emitted
    assert stories(rig) == []


class Strange:
    """A message id that can't be shown, compared or hashed."""

    def __repr__(self) -> str:
        raise AttributeError("x")

    def __hash__(self) -> int:
        raise ValueError("y")


@pytest.mark.parametrize("make", [list, Strange])
def test_message_ids_without_a_hash_or_a_repr_do_no_harm(make: Callable[[], Any]) -> None:
    """B6: nobody else needs one."""

    class Lists(Script):
        def next_tuple(self) -> None:
            if self.next < len(self.rows):
                self.next += 1
                self.collector.emit(self.rows[self.next - 1], message_id=make())

    def fail_odd(bolt: Any, tup: Any) -> None:
        (bolt.collector.fail if tup["value"] % 2 else bolt.collector.ack)(tup)

    rig = Rig(two(Call(fail_odd), Lists([(n,) for n in range(4)])), 1, **TRACE_ALL)
    rig.batches(2)
    assert len(rig.users("a")[0].heard) == 4


def test_a_spout_that_replays_nothing_is_not_looked_at_for_replays_for_ever() -> None:
    """W6: each emit costs a look as long as a replay is expected."""

    def fail_it(bolt: Any, tup: Any) -> None:
        bolt.collector.fail(tup)

    rig = Rig(two(Call(fail_it), [(n,) for n in range(200)]), 1, stormspark_story_sample=0)
    rig.batches(2)
    (instance,) = rig.users("a")
    assert instance.collector.new_tree is not Tree
    rig.advance(700)
    assert instance.collector.new_tree is Tree
    instance.rows += [(n,) for n in range(200)]
    rig.batches(2)
    assert len(instance.heard) == 400
    assert instance.collector.new_tree is Tree


# -- files ---------------------------------------------------------------------------------------------------


def test_stories_go_to_files_of_the_log_folder_and_can_be_read_from_there(tmp_path: Path) -> None:
    """W6, X53e: failures apart from samples, so that these do not push them out."""

    def fail_odd(bolt: Any, tup: Any) -> None:
        (bolt.collector.fail if tup["value"] % 2 else bolt.collector.ack)(tup)

    rig = Rig(two(Call(fail_odd), [(n,) for n in range(4)]), 1, **TRACE_ALL)
    (worker,) = rig.workers
    logs = TaskLogs(tmp_path, 0, "INFO", 1000, 1)
    again = Stories(worker.plan, 0, 0, rig.clock, 0.0, lambda: worker.call.at, logs.directory)
    again.connect(worker.ledger, worker.wiring.spouts, worker.wiring.bolts, [])
    for spout in worker.wiring.spouts:
        spout._stories._stories = again
    worker.stories = again
    rig.batches(2)
    worker.close()
    assert sorted(path.name for path in tmp_path.glob("stories*")) == [
        "stories-0-sampled.jsonl",
        "stories-0.jsonl",
    ]
    with (tmp_path / "stories-0.jsonl").open("a") as file:
        file.write('{"root": "00')  # a worker that was killed while it wrote
    told = read_stories(tmp_path)
    assert sorted((story.outcome, story.message_id) for story in told) == [
        ("acked", "0"),
        ("acked", "2"),
        ("failed by a bolt", "1"),
        ("failed by a bolt", "3"),
    ]


def test_many_failures_of_one_kind_do_not_silence_another(caplog: pytest.LogCaptureFixture) -> None:
    """Many logged failures do not suppress the log lines about timeouts (W3, W4)."""

    def fail_all_but_the_first(bolt: Any, tup: Any) -> None:
        (bolt.collector.fail if tup["value"] else bolt.kept.append)(tup)

    rig = Rig(
        two(Call(fail_all_but_the_first), [(n,) for n in range(20)]), 1, topology_message_timeout_secs=4
    )
    for _ in range(9):
        rig.users("a")[0].rows += [(n,) for n in range(1, 20)]
        rig.advance(1)
    lines = [record.getMessage() for record in caplog.records if record.name == "stormspark.task.a"]
    assert len([line for line in lines if "failed by b[0]" in line]) == 5
    assert len([line for line in lines if "message 0 timed out" in line]) == 1
    assert len([line for line in lines if "1 of 1 pending trees timed out" in line]) == 1
