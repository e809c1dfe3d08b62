"""State: who is called when, what is kept, what is taken back; the same on every engine."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stormspark import Fields, Topology, TopologyBuilder
from stormspark.connectors import FileSpout
from stormspark.errors import StormsparkError
from tests.conformance.components import Numbers
from tests.conformance.state_components import (
    CallsOfHeron,
    CallsOfStorm,
    Counts,
    CountsWithoutAnchors,
    KeyRange,
    Oblivious,
    Poisoned,
    Round,
    Sequence,
    WithLock,
    WithoutLock,
)

Run = Callable[..., Any]

N = 30


def topology(bolt: Any, n: int = N, tasks: int = 2, spout: Any = None, **conf: Any) -> Topology:
    """Numbers, of which each has one task of the bolt."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", spout or Sequence(n), 2)
    builder.set_bolt("bolt", bolt, tasks).fields_grouping("numbers", Fields("n")).add_configurations(conf)
    return builder.create_topology("state")


def state(done: Any, component: str = "bolt") -> dict[Any, Any]:
    """What the tasks of a component have at the end, together."""
    pairs = [pair for what, *pair in done.effects(component) if what == "state"]
    assert len(pairs) == len({json.dumps(key) for key, _ in pairs}), "a key is with two tasks"
    return {key if not isinstance(key, list) else tuple(key): value for key, value in pairs}


ONCE_EACH = dict.fromkeys(range(N), 1)


def test_the_order_of_a_stateful_bolts_calls(run: Run) -> None:
    """C35, C38: prepare, init_state, execute ..., then pre_prepare and pre_commit of one transaction after the other."""
    done = run(topology(CallsOfStorm(), tasks=1))
    calls = [tuple(effect) for effect in done.effects("bolt") if effect[0] != "state"]
    assert calls[:2] == [("prepare",), ("init_state", {})]
    names = [call[0] for call in calls]
    # The exception ends an instance, and so does the way back to the last transaction.
    back = len(names) - 1 - names[::-1].index("pre_rollback")
    assert [call[0] for call in calls[back + 1 : back + 3]] == ["prepare", "init_state"]
    executed = [call[1] for call in calls if call[0] == "execute"]
    committed = _committed_before(calls, back)
    assert calls[back + 2][1] == ({"last": committed[-1]} if committed else {}), "as it was committed last"
    prepares = [call for call in calls if call[0] in ("pre_prepare", "pre_commit")]
    txids = [txid for _, txid in prepares[::2]]
    assert prepares == [(name, txid) for txid in txids for name in ("pre_prepare", "pre_commit")]
    assert txids == sorted(set(txids)), (
        "one transaction after the other, each once: no batch failed after it was prepared"
    )
    assert all(names[at + 1] == "pre_commit" for at, name in enumerate(names) if name == "pre_prepare")
    after = executed[len([c for c in calls[:back] if c[0] == "execute"]) :]
    assert Counter(after) == Counter(range(N)) - Counter(committed)


def _committed_before(calls: list[tuple[Any, ...]], back: int) -> list[int]:
    """The numbers of the batches that were committed before the way back."""
    committed: list[int] = []
    batch: list[int] = []
    for call in calls[:back]:
        if call[0] == "execute":
            batch.append(call[1])
        elif call[0] == "pre_commit":
            committed += batch
            batch = []
    return committed


def test_the_order_of_herons_calls(run: Run) -> None:
    """C42: init_state before prepare, no tuple between pre_save and post_save, pre_restore before the batch comes again."""
    done = run(topology(CallsOfHeron(), tasks=1))
    calls = [tuple(effect) for effect in done.effects("bolt")]
    assert calls[0] == ("init_state and prepare", {}, False)
    names = [call[0] for call in calls]
    saves = [at for at, name in enumerate(names) if name == "pre_save"]
    assert len(saves) > 2
    for at in saves:
        assert calls[at + 1] == ("post_save", calls[at][1]), (
            "the batch is committed before the next one begins"
        )
    back = names.index("pre_restore")
    assert calls[back + 1][0] == "init_state and prepare"
    saved = _saved_before(calls, back)
    assert calls[back][1] == (saved[0] if saved else -1), "the checkpoint that it returns to"
    assert calls[back + 1][1] == ({"last": saved[1]} if saved else {})


def _saved_before(calls: list[tuple[Any, ...]], back: int) -> tuple[int, Any] | None:
    """The last checkpoint before, and the last number that was executed by then."""
    saved, last = None, None
    for call in calls[:back]:
        if call[0] == "execute":
            last = call[1]
        elif call[0] == "pre_save":
            saved = call[1], last
    return saved


@pytest.mark.parametrize("what", ["fails", "raises"])
def test_a_batch_with_a_failing_tuple_is_taken_back_everywhere(run: Run, what: str) -> None:
    """C44, C40: spouts with state begin anew where the last batch ended, and hear nothing of what is taken back."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", Sequence(N), 2)
    builder.set_bolt("bolt", Counts(**{what: 7}), 2).fields_grouping("numbers", Fields("n"))
    builder.set_bolt("after", Counts(), 3).fields_grouping("bolt", Fields("n"))
    done = run(builder.create_topology("failing"))
    assert state(done) == state(done, "after") == ONCE_EACH
    assert done.acked("numbers") == Counter(range(N)) and done.failed("numbers") == []


def test_a_spout_without_state_hears_of_the_failure_and_decides(run: Run) -> None:
    """C44, B6: all that was emitted in the batch has failed; what the spout emits again is counted once."""
    done = run(topology(Counts(fails=7), spout=Numbers(N)))
    assert state(done) == ONCE_EACH
    heard = done.acked("numbers")
    assert heard == Counter(range(N))
    failed = {fail.message for fail in done.failed("numbers")}
    assert 7 in failed


def test_acks_come_when_the_batch_is_committed(run: Run) -> None:
    """C39: each once, after an attempt that is taken back too."""
    done = run(topology(Counts(raises=0)))
    assert done.acked("numbers") == Counter(range(N)) and done.failed("numbers") == []


def test_emits_without_anchors_belong_to_the_batch(run: Run) -> None:
    """C39: Storm refuses these in a stateful bolt, since nobody would emit them again; here the batch does."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", Sequence(N), 2)
    builder.set_bolt("bolt", CountsWithoutAnchors(), 2).fields_grouping("numbers", Fields("n"))
    builder.set_bolt("after", Counts(raises=7), 3).fields_grouping("bolt", Fields("n"))
    done = run(builder.create_topology("unanchored"))
    assert state(done) == state(done, "after") == ONCE_EACH


@pytest.mark.parametrize("bolt", [Oblivious, WithoutLock])
def test_attributes_of_a_bolt_that_knows_nothing_of_state(run: Run, bolt: Any) -> None:
    """C35, C44: are as they were before the batch that failed; ``__getstate__`` says what is kept."""
    done = run(topology(bolt(raises=7), **{"topology.state.pickle": True}))
    seen = [
        n for what, *lists in done.effects("bolt") if what == "seen" for numbers in lists for n in numbers
    ]
    assert sorted(seen) == list(range(N))


def test_an_attribute_that_can_not_be_pickled_is_named(run: Run) -> None:
    """C35: with the component, the user's line, and what to do."""
    with pytest.raises(
        StormsparkError, match=r"test_state\.py.*bolt 'bolt'.*can't keep 'lock'.*__getstate__"
    ):
        run(topology(WithLock(), **{"topology.state.pickle": True}), {"stormspark.max.attempts": 2})


def test_keys_by_prefix_deleted_and_more_than_the_cache_holds(run: Run) -> None:
    """A bolt iterates over keys by prefix and deletes keys, with more state than its cache holds (C35, C36)."""
    done = run(topology(KeyRange(), 300, tasks=1, **{"stormspark.state.cache.bytes": 2000}))
    effects = {of: found for of, *found in done.effects("bolt")}
    for user in range(3):
        assert effects[user] == [[n for n in range(300) if n % 3 == user]]
    assert effects["pairs"] == [list(range(0, 300, 2))]
    assert effects["all"] == [450, None]


def test_a_loop_with_tuples_in_flight_ends_in_its_batch(run: Run) -> None:
    """A15, C44: inside of workers and across them, also when it is taken back in the middle."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", Sequence(12), 2)
    bolt = builder.set_bolt("bolt", Round(), 3)
    bolt.fields_grouping("numbers", Fields("n")).fields_grouping("bolt", Fields("n"), "again")
    done = run(builder.create_topology("rounds"))
    assert state(done) == dict.fromkeys(range(12), 6)
    assert Counter(map(tuple, done.effects("numbers"))) == Counter(("ack", n) for n in range(12))


def test_a_row_of_a_source_that_always_fails_is_a_dead_letter(run: Run, tmp_path: Path) -> None:
    """C44, K4: after some attempts the batch goes on without it; the others of the batch are counted once."""
    folder = tmp_path / "lines"
    folder.mkdir()
    (folder / "lines.txt").write_text("a\nb\npoison\nc\n")
    builder = TopologyBuilder()
    builder.set_spout("lines", FileSpout(folder))
    builder.set_bolt("bolt", Poisoned(), 2).fields_grouping("lines", Fields("line"))
    letters = tmp_path / "dead-letters"
    done = run(
        builder.create_topology("poisoned"),
        {"stormspark.dead.letter.dir": str(letters), "stormspark.exactly.once.attempts": 2},
    )
    assert state(done) == {"a": 1, "b": 1, "c": 1}
    (letter,) = [
        json.loads(line) for file in letters.glob("*.jsonl") for line in file.read_text().splitlines()
    ]
    assert letter["row"] == ["poison"] and "too many attempts" in letter["reason"]
    assert done.statistics.components["lines"].dead_letters == 1
