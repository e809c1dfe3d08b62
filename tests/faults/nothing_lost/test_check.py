"""The accounts of `test_nothing_lost` notice what is not there, what is there twice, and trees that end badly."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.faults.nothing_lost.check import Effects, check_trees, committed_offsets


def test_what_is_missing_and_what_is_there_twice(tmp_path: Path) -> None:
    """Effects of all tasks count; a line that is not whole yet does not, until it is."""
    (tmp_path / "seen-3.log").write_text("orders 0\npayments 0\norders 1\n")
    (tmp_path / "seen-4.log").write_text("orders 0\npayments 1")
    (tmp_path / "windowed-7.log").write_text("0\n0\n0\n")
    effects = Effects(tmp_path)
    assert effects.update() == 7
    assert effects.missing(range(2), frozenset()) == (["payments 1"], [1])
    assert effects.duplicates == 3
    with (tmp_path / "seen-4.log").open("a") as file:
        file.write("\norders 2\n")
    assert effects.update() == 9
    assert effects.missing(range(3), frozenset([2])) == (["payments 2"], [1, 2])
    assert effects.missing(range(3), frozenset()) == (["payments 2"], [1, 2])
    assert effects.has_all_of("orders", 0, frozenset()) and not effects.has_all_of("orders", 1, frozenset())


@pytest.mark.parametrize(
    ("lines", "wrong"),
    [
        ("emit 0 7, ack 0 7", []),
        ("emit 0 7, fail 0 7, emit 0 7, ack 0 7", []),
        ("emit 0 7, ack 0 7, ack 0 7", ["one ack too many of 0/7"]),
        ("emit 0 7, ack 0 7, fail 0 7", ["one fail too many of 0/7"]),
        ("ack 0 7, emit 0 7", ["one ack too many of 0/7"]),
        ("emit 0 7, emit 1 7, ack 1 7", ["no verdict for 0/7"]),
    ],
)
def test_each_tree_has_one_verdict(lines: str, wrong: list[str], tmp_path: Path) -> None:
    """E22: no more than one, and no less."""
    said = "".join(f"12 {line}\n" for line in ["open - -", *lines.split(", ")])
    (tmp_path / "trees-1.log").write_text(said)
    assert check_trees(tmp_path)[2] == [f"trees-1 in process 12: {one}" for one in wrong]


def test_trees_of_a_life_that_was_killed_may_stay_open(tmp_path: Path) -> None:
    """B10: but not those of the life that ended in order, and nobody hears of another life's trees."""
    (tmp_path / "trees-1.log").write_text("12 open - -\n12 emit 0 7\n13 open - -\n")
    assert check_trees(tmp_path) == (1, 0, [])
    (tmp_path / "trees-1.log").write_text("12 open - -\n12 emit 0 7\n13 open - -\n13 ack 0 7\n")
    assert check_trees(tmp_path)[2] == ["trees-1 in process 13: one ack too many of 0/7"]


def test_only_what_is_committed_counts(tmp_path: Path) -> None:
    """K3: a batch that was begun has offsets, one that is done has a commit."""
    spark = tmp_path / "spark"
    assert committed_offsets(tmp_path) == {}
    for log in ("offsets", "commits"):
        (spark / log).mkdir(parents=True)
    for batch, end in ((9, 5), (10, 8)):
        lines = [
            "v1",
            json.dumps({"batchWatermarkMs": 0, "conf": {}}),
            json.dumps({"orders": {"0": end}}),
            "-",
        ]
        (spark / "offsets" / str(batch)).write_text("\n".join(lines))
    (spark / "commits" / "9").touch()
    (spark / "commits" / ".10.crc").touch()
    assert committed_offsets(tmp_path) == {"orders": {0: 5}}
