"""The partial key grouping: Storm's two tasks for every key, and the one of them that got less (D12)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from stormspark.errors import InvalidTopologyError, ValueNotHashableError
from stormspark.grouping import FieldsGrouping, Grouping, GroupingContext, PartialKeyGrouping, two_tasks
from stormspark.grouping.hashing import value_hash

HERE = Path(__file__).parent
TASKS = (4, 5, 6, 9)
FIELDS = ("word", "n", "tags")


def chooser(
    grouping: Grouping, targets: tuple[int, ...] = TASKS, ints: str = "long"
) -> Callable[[Sequence[Any]], int]:
    return grouping.chooser(GroupingContext("split", "words", FIELDS, 2, targets, (), Random(1), ints))


def test_a_sequence_of_tuples_goes_where_storm_sends_it() -> None:
    """D12, D3: the record was made by Storm's own class; `StormPartialKey.java` says how."""
    messages = [json.loads(line) for line in (HERE / "storm_partial_key.jsonl").read_text().splitlines()]
    assert len(messages) > 300
    choosers: dict[int, Callable[[Sequence[Any]], int]] = {}
    first_only = chooser(PartialKeyGrouping(), tuple(range(7)))
    for message in messages:
        values = message["t"]
        if len(values) not in choosers:
            names = tuple(f"f{i}" for i in range(len(values)))
            context = GroupingContext("words", "default", names, 9, tuple(range(7)), (), Random(1), "json")
            choosers[len(values)] = PartialKeyGrouping(names).chooser(context)
        assert choosers[len(values)](values) == message["task"], message
        if message["by_first"] is not None:
            assert first_only(values) == message["by_first"], message


def test_a_key_alternates_between_its_two_tasks_the_first_one_first() -> None:
    """D12: a tie goes to the first."""
    choose = chooser(PartialKeyGrouping("word"))
    first = choose(["storm", 1, None])
    second = choose(["storm", 2, None])
    assert first != second
    assert [choose(["storm", n, None]) for n in range(4)] == [first, second, first, second]


def test_what_other_keys_sent_counts_too() -> None:
    """D12: the counts are of tasks, not of keys."""
    choose = chooser(PartialKeyGrouping("word"), (4, 5))
    chosen = [choose([word, 0, None]) for word in ("storm", "storm", "storm", "heron", "spark", "nimbus")]
    assert sorted(chosen[:2]) == sorted(chosen[2:4]) == sorted(chosen[4:]) == [4, 5]


def test_senders_count_for_themselves() -> None:
    """Each sender counts its own tuples, so two senders choose alike (D12)."""
    grouping = PartialKeyGrouping("word")
    one, other = chooser(grouping), chooser(grouping)
    first = [one(["storm", n, None]) for n in range(3)]
    assert [other(["storm", n, None]) for n in range(3)] == first


def test_a_frequent_key_is_shared_by_two() -> None:
    """D12: every fourth word is the same; a fields grouping gives one task more than twice its share."""
    rng = Random(3)
    words = [f"word {rng.randrange(500)}" if rng.random() < 0.75 else "the" for _ in range(8000)]
    shares = []
    for grouping in (PartialKeyGrouping("word"), FieldsGrouping("word")):
        choose = chooser(grouping, tuple(range(1, 9)))
        sent = Counter(choose([word, 0, None]) for word in words)
        shares.append(max(sent.values()) / 1000)
    assert shares[0] < 1.5 < 2.5 < shares[1]


def test_a_single_task_gets_all() -> None:
    """A single task gets all keys (D12)."""
    assert {chooser(PartialKeyGrouping("word"), (4,))([str(n), 0, None]) for n in range(20)} == {4}


def test_keys_that_python_confuses_have_tasks_of_their_own() -> None:
    """D12, D2, D3: whatever was asked before."""
    look_alikes: list[Any] = [
        1,
        True,
        1.0,
        0,
        False,
        0.0,
        -0.0,
        None,
        "",
        b"",
        (),
        [],
        [1],
        (1.0,),
        {},
        -1,
        2**70,
    ]
    targets = tuple(range(1009))
    for ints in ("long", "integer", "json"):
        keeps_the_memory = chooser(PartialKeyGrouping("n"), targets, ints)
        for value in [*look_alikes, *look_alikes[::-1]]:
            keeps_the_memory(["", value, None])
            text = (value_hash(value, ints) & 0xFFFF_FFFF).to_bytes(4, "big")
            assert (
                chooser(PartialKeyGrouping("n"), targets, ints)(["", value, None])
                == two_tasks(targets, text)[0]
            )


def test_the_key_is_told_apart_by_field() -> None:
    """D12: the bytes of several hashes stand one after another, in the order of the grouping."""
    targets = tuple(range(1000))
    both, turned = PartialKeyGrouping(["word", "n"]), PartialKeyGrouping(["n", "word"])
    assert chooser(both, targets)(["a", 1, None]) == two_tasks(targets, b"\0\0\0a\0\0\0\1")[0]
    assert chooser(turned, targets)(["a", 1, None]) == two_tasks(targets, b"\0\0\0\1\0\0\0a")[0]


@pytest.mark.parametrize("value", [None, 1.5, b"storm", ["storm"]])
def test_without_fields_the_first_value_must_have_a_text(value: Any) -> None:
    """D12: Java's text of a null there is none, of an array it is another one each time."""
    choose = chooser(PartialKeyGrouping())
    with pytest.raises(
        ValueNotHashableError, match=r"field 'word' of stream 'words' of 'split': .* name the fields"
    ):
        choose([value, 1, None])


def test_without_fields_the_stream_must_have_some() -> None:
    """Without named fields, a stream that declares no fields is rejected (D12)."""
    with pytest.raises(InvalidTopologyError, match="'default' of 'split', but that declares no fields"):
        PartialKeyGrouping().chooser(GroupingContext("split", "default", (), 2, TASKS, (), Random(1)))


def test_mistakes_in_fields_are_reported() -> None:
    """A field that is named twice, or that the stream does not declare, is rejected (D12)."""
    with pytest.raises(
        InvalidTopologyError, match="a partial key grouping takes each field once, got 'n' twice"
    ):
        PartialKeyGrouping(["n", "word", "n"])
    with pytest.raises(
        InvalidTopologyError,
        match=r"partial key grouping uses field 'wrod' .* declares only 'word', 'n', 'tags'",
    ):
        chooser(PartialKeyGrouping("wrod"))


def test_a_key_without_a_stable_hash_is_refused_by_field() -> None:
    """A value without a stable hash is rejected, with the field's name (D12, D2)."""
    choose = chooser(PartialKeyGrouping(["word", "tags"]))
    with pytest.raises(
        ValueNotHashableError, match=r"^field 'tags' of stream 'words' of 'split': .* of type object:"
    ):
        choose(["storm", 7, object()])
