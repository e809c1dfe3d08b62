"""Topologies of streamparse's, the same on every engine; what Storm and pystorm make of them stands in rows A30 to C19."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

import pytest

from stormspark.compat.streamparse import lower
from stormspark.compat.streamparse.groupings import Grouping
from stormspark.compat.streamparse.topology import Topology
from tests.conformance import streamparse_components as parts
from tests.conformance.components import Record

Run = Callable[..., Any]


def test_words_are_counted(run: Run) -> None:
    """A30, A31, B16, C12, C13: a pystorm word count, each tuple acked by itself, counts what a plain count does."""

    class WordCount(Topology):
        words = parts.Words.spec(par=2)
        split = parts.Split.spec(inputs=[words], par=2)
        count = parts.Count.spec(inputs={split: Grouping.fields("word")}, par=2)

    done = run(lower(WordCount, "wordcount"))
    counted: defaultdict[str, int] = defaultdict(int)
    tasks = defaultdict(set)
    for task, word, count in done.effects("count"):
        counted[word] = max(counted[word], count)
        tasks[word].add(task)
    assert counted == Counter(word for sentence in parts.Words.sentences for word in sentence.split())
    assert all(len(of_word) == 1 for of_word in tasks.values())
    assert done.statistics.components["words"].acked == len(parts.Words.sentences)
    assert done.statistics.total("pending") == 0


def test_a_tuple_tells_where_it_came_from(run: Run) -> None:
    """C16: values are named after their fields, in a type named after their stream; component, stream and task are told."""

    class Looks(Topology):
        number_source = parts.Numbers.spec(config={"numbers": 1})
        look = parts.Look.spec(inputs=[number_source])

    done = run(lower(Looks, "looks"))
    ((kind, values, component, stream, task, tick),) = done.effects("look")
    assert (kind, values) == ("Number_SourceDefaultTuple", {"n": 0})
    assert (component, stream, tick) == ("number_source", "default", False)
    assert task in (3, 4, 5)  # after the ackers, of which there is one a worker, and look


def test_anchors_are_those_at_hand_unless_others_are_named(run: Run) -> None:
    """C12, C13: ``anchors=[]`` ties a tuple to nothing, so its failure is nobody's; without it the tree fails."""

    class Anchors(Topology):
        numbers = parts.Replayed.spec()
        both = parts.Unanchored.spec(inputs=[numbers])
        loose = parts.Raises.spec(inputs=[both["loose"]])
        tied = parts.Taken.spec(inputs=[both["tied"]])

    done = run(lower(Anchors, "anchors"))
    assert done.failed("numbers") == []
    assert done.statistics.components["loose"].failed == 2
    assert Counter(n for _, n in done.effects("tied")) == Counter(range(10))

    class Tied(Topology):
        numbers = parts.Replayed.spec()
        both = parts.Unanchored.spec(inputs=[numbers])
        loose = parts.Taken.spec(inputs=[both["loose"]])
        tied = parts.Raises.spec(inputs=[both["tied"]])

    done = run(lower(Tied, "tied"))
    assert sorted(fail.message for fail in done.failed("numbers")) == [3, 7]


def test_without_auto_anchor_nothing_is_tied(run: Run) -> None:
    """C13: ``auto_anchor = False``."""

    class Loose(Topology):
        numbers = parts.Replayed.spec()
        loose = parts.AnchorsNothing.spec(inputs=[numbers])
        fails = parts.Raises.spec(inputs=[loose])

    done = run(lower(Loose, "loose"))
    assert not done.effects("numbers")
    assert done.statistics.components["fails"].failed == 2


def test_bolts_that_ack_by_hand(run: Run) -> None:
    """B18, C12, C13: without auto_ack a bolt acks and fails, tuples or their ids, when it likes; a reliable spout replays."""

    class ByHand(Topology):
        numbers = parts.Replayed.spec()
        by_hand = parts.FailsOnce.spec(inputs=[numbers])

    done = run(lower(ByHand, "by-hand"))
    assert Counter(n for _, n in done.effects("by_hand")) == Counter([*range(10)] * 2)
    assert done.statistics.components["numbers"].acked == 10
    assert done.statistics.components["numbers"].failed == 10
    assert done.statistics.components["by_hand"].errors == 0

    class Held(Topology):
        numbers = parts.Numbers.spec()
        sums = parts.Holds.spec(inputs=[numbers])
        taken = parts.Count.spec(inputs=[sums])

    done = run(lower(Held, "held"))
    assert sum(total for _, total, _ in done.effects("taken")) == sum(range(40))
    assert sorted(n for _, n in done.effects("numbers")) == list(range(40))
    assert done.statistics.components["sums"].errors == 0


def test_a_reliable_spout_gives_up(run: Run) -> None:
    """B18: a tuple is replayed ``max_fails`` times, with its own id, and then dropped as if it had been acked."""

    class GivesUp(Topology):
        numbers = parts.Replayed.spec(config={"numbers": 1})
        never = parts.AlwaysFails.spec(inputs=[numbers])

    done = run(lower(GivesUp, "gives-up"))
    assert done.effects("numbers") == [
        ["fail", 0],
        ["open", [0], 1],
        ["fail", 0],
        ["open", [0], 2],
        ["fail", 0],
        ["open", [], 0],
    ]
    assert done.statistics.components["numbers"].emitted == 3


def test_an_exception_ends_the_instance(run: Run) -> None:
    """C13, C14: what ``process`` raises fails the tuple, and this task alone begins anew: no worker dies."""

    class Raising(Topology):
        numbers = parts.Replayed.spec()
        raises = parts.Raises.spec(inputs=[numbers])
        taken = parts.Taken.spec(inputs=[raises])

    done = run(lower(Raising, "raising"))
    raising = done.statistics.components["raises"]
    assert (raising.failed, raising.restarts, raising.errors) == (2, 2, 2)
    assert sorted(n for _, n in done.effects("taken")) == list(range(10))
    assert sum(life == 1 for life, _ in done.effects("raises")) == 3  # the first of each instance


def test_a_bolt_that_goes_on_after_an_exception(run: Run) -> None:
    """C14: with ``exit_on_exception = False`` the tuple fails, the error is reported, and the instance goes on."""

    class Raising(Topology):
        numbers = parts.Replayed.spec()
        raises = parts.RaisesAndGoesOn.spec(inputs=[numbers])
        taken = parts.Taken.spec(inputs=[raises])

    done = run(lower(Raising, "going-on"))
    raising = done.statistics.components["raises"]
    assert (raising.failed, raising.restarts, raising.errors) == (2, 0, 2)
    assert sorted(n for _, n in done.effects("taken")) == list(range(10))
    assert [life for life, _ in done.effects("raises")] == list(range(1, 13))


@pytest.mark.slow
def test_ticks(run: Run) -> None:
    """C15, W20: ticks go to ``process_tick`` and need no ack; other tuples do not wait for them."""

    class Ticking(Topology):
        numbers = parts.Numbers.spec()
        held = parts.Timed.spec(name="timed", inputs=[numbers])
        ticks = parts.Ticks.spec(inputs=[numbers])
        slow = parts.Parity.spec(inputs=[numbers])

    effects = run(lower(Ticking, "ticking")).effects("ticks")
    ticks = [tick for what, *tick in effects if what == "tick"]
    assert ticks and all(tick == ["__system", "__tick", [0.2], True] for tick in ticks)
    assert sorted(tup for what, *tup in effects if what == "tuple") == [[n] for n in range(40)]


@pytest.mark.slow
def test_batches_between_ticks(run: Run) -> None:
    """C17: a batch a key, with the second tick; acked and anchored as a whole; an exception fails all batches."""

    class Batches(Topology):
        numbers = parts.Replayed.spec()
        parity = parts.Parity.spec(inputs=[numbers])
        taken = parts.Batches.spec(inputs=[parity])

    done = run(lower(Batches, "batches"))
    effects = done.effects("parity")
    batches = [effect for effect in effects if effect[0] == "batch"]
    assert all(ticks >= 2 for _, _, _, ticks in batches)
    assert Counter(n for _, _, numbers, _ in batches for n in numbers) >= Counter(range(10))
    ((failed,),) = [numbers for what, *numbers in effects if what == "failed"]
    replayed = {fail.message for fail in done.failed("numbers")}
    assert set(failed) <= replayed
    assert done.statistics.components["parity"].restarts == 1
    assert done.statistics.components["numbers"].acked == 10
    got = [(odd, tuple(numbers)) for odd, numbers in done.effects("taken")]
    assert got == [(odd, tuple(numbers)) for _, odd, numbers, _ in batches]


@pytest.mark.slow
def test_a_batch_that_fails_alone(run: Run) -> None:
    """C14, C17: where exceptions end nothing, one in ``process_batch`` fails that batch, and the others are processed."""

    class Batches(Topology):
        numbers = parts.Replayed.spec()
        parity = parts.ParityGoesOn.spec(inputs=[numbers])
        taken = parts.Batches.spec(inputs=[parity])

    done = run(lower(Batches, "batch-alone"))
    effects = done.effects("parity")
    ((failed,),) = [numbers for what, *numbers in effects if what == "failed"]
    assert sorted(fail.message for fail in done.failed("numbers")) == sorted(failed)
    batches = [effect for effect in effects if effect[0] == "batch"]
    assert Counter(n for _, _, numbers, _ in batches for n in numbers) == Counter(range(10))
    assert done.statistics.components["parity"].restarts == 0


@pytest.mark.slow
def test_batches_by_time(run: Run) -> None:
    """C18, W20: a tickless batching bolt needs no ticks, and its seconds may be parts of one."""

    class Timed(Topology):
        numbers = parts.Numbers.spec()
        timed = parts.Timed.spec(inputs=[numbers])

    done = run(lower(Timed, "timed"))
    assert Counter(n for _, numbers in done.effects("timed") for n in numbers) == Counter(range(40))
    assert done.statistics.components["numbers"].acked == 40


def test_direct_tasks_and_task_ids(run: Run) -> None:
    """A33, A34, B16, B17, W24: a direct emit goes to its task, ``need_task_ids`` tells where a tuple went."""

    class Directs(Topology):
        picky = parts.Picky.spec()
        direct = parts.Taken.spec(inputs={picky["direct"]: Grouping.DIRECT}, par=3)
        shuffled = parts.Taken.spec(inputs=[picky["shuffled"]], par=2)

    done = run(lower(Directs, "directs"))
    where = {n: task for task, n in done.effects("direct")}
    also = {n: task for task, n in done.effects("shuffled")}
    assert len(where) == 6
    for n, target, told, asked in done.effects("picky"):
        assert told == [target] and where[n] == target
        assert asked == [also[n]]


@pytest.mark.parametrize("grouping", ["SHUFFLE", "GLOBAL", "ALL", "NONE", "LOCAL_OR_SHUFFLE"])
def test_groupings(run: Run, grouping: str) -> None:
    """A34: every constant of ``Grouping``."""

    class Grouped(Topology):
        numbers = parts.Numbers.spec()
        taken = parts.Taken.spec(inputs={numbers: getattr(Grouping, grouping)}, par=3)

    effects = run(lower(Grouped, "grouped")).effects("taken")
    copies = 3 if grouping == "ALL" else 1
    assert Counter(n for _, n in effects) == Counter(dict.fromkeys(range(40), copies))
    if grouping == "GLOBAL":
        assert len({task for task, _ in effects}) == 1


def test_what_is_emitted_is_a_copy(run: Run) -> None:
    """C12: as through JSON, a component may change what it has emitted, and a bolt what it was given."""

    class Copies(Topology):
        things = parts.Containers.spec()
        one = parts.Changes.spec(inputs=[things])
        other = parts.Changes.spec(inputs=[things])

    done = run(lower(Copies, "copies"))
    for bolt in ("one", "other"):
        things = [thing for (thing,) in done.effects(bolt)]
        assert things == [
            {"1": ["a", [None]]},
            {"1": ["a", [None]], "left": 2},
            {"1": ["a", [None]], "left": 1},
        ]


def test_components_of_stormspark_beside_those_of_streamparse(run: Run) -> None:
    """A32, W11: a topology may have both, so one can be ported step by step, and have windows."""
    from stormspark.compat.streamparse.native import native

    class Mixed(Topology):
        numbers = parts.Numbers.spec()
        record = native(Record(), inputs={numbers: Grouping.fields("n")}, par=2)

    recorded = run(lower(Mixed, "mixed")).recorded("record")
    assert sorted(one.values for one in recorded) == [(n,) for n in range(40)]
