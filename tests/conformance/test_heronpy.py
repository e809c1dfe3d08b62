"""heronpy's topologies do the same on every engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from stormspark import Topology
from stormspark.compat.heronpy.constants import TopologyReliabilityMode as Mode
from stormspark.compat.heronpy.stream import Grouping
from stormspark.compat.heronpy.topology import TopologyBuilder
from tests.conformance.heronpy_components import (
    Counts,
    Directed,
    Forget,
    Numbers,
    Relay,
    Sequence,
    Take,
    ToTheLast,
)

Run = Callable[..., Any]

N = 60
MODE = "topology.reliability.mode"
_HERE = "tests.conformance.heronpy_components"


def topology(
    grouping: Any = Grouping.SHUFFLE,
    bolt: Any = Take,
    spout: Any = Numbers,
    stream: Any = None,
    **config: Any,
) -> Topology:
    builder = TopologyBuilder("heron")
    numbers = builder.add_spout("numbers", spout, par=2 if spout is Numbers else 1)
    builder.add_bolt("take", bolt, par=3, inputs={numbers[stream] if stream else numbers: grouping})
    builder.set_config({"n": N, **{key.replace("__", "."): value for key, value in config.items()}})
    return builder.build().lowered()


def taken(done: Any) -> Counter[int]:
    return Counter(number for number, *_ in done.effects("take"))


ONCE_EACH = Counter(range(N))


def test_what_comes_once_is_taken_once(run: Run) -> None:
    """A40, B21, B22, C20, C21: a spout of two tasks and a bolt of three, joined by the builder."""
    done = run(topology())
    assert taken(done) == ONCE_EACH
    assert all(text == f"text {number}" for number, text in done.effects("take"))


@pytest.mark.parametrize("grouping", [Grouping.SHUFFLE, Grouping.NONE, Grouping.LOCAL_OR_SHUFFLE])
def test_shuffles_are_even(run: Run, grouping: Any) -> None:
    """A42, D7, D8, D14: shuffle, none and local or shuffle are the same."""
    done = run(topology(grouping))
    assert taken(done) == ONCE_EACH
    assert [len(of_task) for of_task in done.effects_by_task("take")] == [N / 3] * 3


def test_equal_keys_go_to_one_task(run: Run) -> None:
    """A42, D4: which task that is, is not what it is in Heron."""
    done = run(topology(Grouping.fields("text"), n=2 * N))
    tasks = [{number for number, *_ in of_task} for of_task in done.effects_by_task("take")]
    assert len(tasks) == 3 and sum(map(len, tasks)) == 2 * N


def test_all_and_lowest(run: Run) -> None:
    """A42, D9, D10: every task, and the first one."""
    assert taken(run(topology(Grouping.ALL))) == Counter(dict.fromkeys(range(N), 3))
    done = run(topology(Grouping.LOWEST))
    assert taken(done) == ONCE_EACH
    assert len(done.effects_by_task("take")) == 1


@pytest.mark.parametrize("grouping", [ToTheLast(), f"{_HERE}.ToTheLast"])
def test_a_custom_grouping(run: Run, grouping: Any) -> None:
    """A42, D13: an object, or the path of a class; also where values travel by a serializer of one's own (A45)."""
    done = run(topology(Grouping.custom(grouping), topology__serializer__classname=f"{_HERE}.Backwards"))
    assert taken(done) == ONCE_EACH
    assert len(done.effects_by_task("take")) == 1


def test_direct_streams(run: Run) -> None:
    """W23, D11: heronpy has the argument and refuses it; here the emit names the task."""
    done = run(topology(Grouping.DIRECT, spout=Directed, stream="orders"))
    tasks = [sorted(number for number, *_ in of_task) for of_task in done.effects_by_task("take")]
    assert tasks == [list(range(index, N, 3)) for index in range(3)]


def test_atleast_once(run: Run) -> None:
    """B23, C43, A43: trees are tracked, what a bolt fails comes again, and each emit has one verdict."""
    settings: dict[str, Any] = {MODE: Mode.ATLEAST_ONCE, "fail.every": 7}
    done = run(topology(**settings))
    heard = Counter(map(tuple, done.effects("numbers")))
    failed = [n for n in range(N) if n % 7 == 0]
    assert {n for what, n in heard if what == "ack"} == set(range(N)) and set(taken(done)) == set(range(N))
    # Each of the three tasks fails a number once; a replay may go to another one.
    assert set(failed) == {n for what, n in heard if what == "fail"}
    assert all(count == 1 for (what, _), count in heard.items() if what == "ack")


def test_nothing_is_tracked_by_default(run: Run) -> None:
    """A43, B23: acks come at once, though no bolt acks; a fail is not heard of."""
    done = run(topology(bolt=Forget))
    assert taken(done) == ONCE_EACH
    heard = Counter(map(tuple, done.effects("numbers")))
    assert heard == Counter({("ack", number): 1 for number in range(N)})
    settings: dict[str, Any] = {"fail.every": 2}
    done = run(topology(**settings))
    assert all(what == "ack" for what, _ in done.effects("numbers"))
    assert done.statistics.components["numbers"].pending == 0


def test_acks_that_come_at_once_come_backwards(run: Run) -> None:
    """B23: the last that a call of next_tuple has emitted is acked first."""
    done = run(topology(group=5))
    for of_task in done.effects_by_task("numbers"):
        ids = [number for _, number in of_task]
        for at in range(0, len(ids), 5):
            assert ids[at : at + 5] == sorted(ids[at : at + 5], reverse=True)


@pytest.mark.parametrize("anchored", [True, False])
def test_nothing_is_anchored_by_itself(run: Run, anchored: bool) -> None:
    """C20: the spout hears of what fails behind a bolt that anchors, and of nothing behind one that does not."""
    builder = TopologyBuilder("relayed")
    numbers = builder.add_spout("numbers", Numbers, 1)
    relay = builder.add_bolt("relay", Relay, 2, [numbers], config={"anchored": anchored})
    builder.add_bolt("take", Take, 1, {relay: Grouping.LOWEST}, config={"fail.every": 10})
    builder.set_config({MODE: Mode.ATLEAST_ONCE, "n": N})
    done = run(builder.build().lowered())
    fails = sorted(number for what, number in done.effects("numbers") if what == "fail")
    assert fails == (list(range(0, N, 10)) if anchored else [])
    assert len(taken(done)) == (N if anchored else N - N // 10)


def test_hooks(run: Run) -> None:
    """J21: those that the configuration names hear of emits, executes, acks and fails."""
    config: dict[str, Any] = {"topology.auto.task.hooks": [f"{_HERE}.TellingHook"], MODE: Mode.ATLEAST_ONCE}
    done = run(topology(**config))
    told: Counter[str] = Counter()
    for component in ("numbers", "take"):
        for what, *counts in done.effects(component):
            if what == "hook":
                told.update(*counts)
    assert told == {"emit": N, "spout_ack": N, "bolt_execute": N, "bolt_ack": N}


@pytest.mark.parametrize("raise_at", [None, 41])
def test_state_is_exact(run: Run, raise_at: int | None) -> None:
    """B26, C42-C44: init_state, initialize, pre_save; what an exception takes back comes again, and counts once."""
    builder = TopologyBuilder("counts")
    numbers = builder.add_spout("numbers", Sequence, 1)
    builder.add_bolt("counts", Counts, 1, [numbers], config={"raise.at": raise_at} if raise_at else None)
    builder.set_config({MODE: Mode.EFFECTIVELY_ONCE, "n": 100})
    done = run(builder.build().lowered())
    saved = [counts for what, *counts in done.effects("counts") if what == "saved"]
    assert saved[-1] == [{str(digit): 10 for digit in range(10)}]
    assert (["raised"] in done.effects("counts")) == (raise_at is not None)
