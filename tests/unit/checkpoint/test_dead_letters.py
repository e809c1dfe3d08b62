"""The table of dead letters: whoever dies while it writes, each row that was given up has its letter, and is replayed once."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from stormspark.checkpoint import dead_letters
from stormspark.checkpoint.dead_letters import Letter, LetterTable, LocalLetterFiles, local_letters
from stormspark.errors import CheckpointError


def letter(n: int, batch: int = 0, component: str = "lines", data: bytes | None = b"row") -> Letter:
    return Letter(component, 3, batch, f"key {n}", str(n), "unlucky", f"[{n}]", 0.0, data)


def rows(table: LetterTable, committed: int) -> list[str]:
    return [one.letter.row for one in table.letters(committed)]


def test_people_read_the_letters_as_parquet(tmp_path: Path) -> None:
    table = local_letters(tmp_path)
    table.write(7, [letter(1, 6), letter(2, 7)], transactions=False)
    found = pq.read_table(tmp_path / "dead-letters" / "7.parquet").to_pylist()
    assert [(one["id"], one["batch"], one["row_batch"], one["row"]) for one in found] == [
        ("7-0", 7, 6, "[1]"),
        ("7-1", 7, 7, "[2]"),
    ]


def test_a_batch_without_letters_writes_nothing(tmp_path: Path) -> None:
    table = local_letters(tmp_path)
    table.write(7, [], transactions=True)
    assert list(tmp_path.iterdir()) == []


def test_letters_of_a_batch_that_is_not_committed_do_not_count(tmp_path: Path) -> None:
    table = local_letters(tmp_path)
    table.write(7, [letter(1)], transactions=True)
    assert (rows(table, 6), rows(table, 7)) == ([], ["[1]"])


@pytest.mark.parametrize("later", [[], [2]], ids=["without letters", "with another letter"])
def test_a_transaction_that_runs_again_replaces_its_letters(later: list[int], tmp_path: Path) -> None:
    """Also in another driver, and if it has no letters any more."""
    local_letters(tmp_path).write(7, [letter(1, 3)], transactions=True)
    again = local_letters(tmp_path)
    again.write(7, [letter(n, 7) for n in later], transactions=True)
    assert rows(again, 7) == [f"[{n}]" for n in later]


def test_another_batch_that_runs_again_keeps_the_letters_of_rows_that_do_not_come_again(
    tmp_path: Path,
) -> None:
    """A row of batch 3 was given up in batch 7, and its worker is gone; the row of batch 7 comes again."""
    local_letters(tmp_path).write(7, [letter(1, 3), letter(2, 7)], transactions=False)
    again = local_letters(tmp_path)
    again.write(7, [letter(1, 3), letter(4, 7)], transactions=False)
    assert rows(again, 7) == ["[1]", "[4]"]


def test_a_letter_is_ordered_once(tmp_path: Path) -> None:
    table, other = local_letters(tmp_path), local_letters(tmp_path)
    table.write(7, [letter(1), letter(2)], transactions=True)
    assert table.order(["7-0"], 7) == ["7-0"]
    assert other.order(["7-1", "7-0"], 7) == ["7-1"]
    assert table.order(["7-0", "7-1"], 7) == []
    assert [one.status for one in table.letters(7)] == ["comes with the next start"] * 2


def test_of_two_commands_at_once_one_orders_a_letter(tmp_path: Path) -> None:
    """The other finds the number of its order taken, and looks again."""
    folder = tmp_path / "dead-letters"
    local_letters(tmp_path).write(7, [letter(1), letter(2)], transactions=True)

    class Slow(LocalLetterFiles):
        first = True

        def write(self, name: str, data: bytes, *, replace: bool) -> None:
            if self.first:
                self.first = False
                assert local_letters(tmp_path).order(["7-0"], 7) == ["7-0"]
            super().write(name, data, replace=replace)

    table = LetterTable(LocalLetterFiles(folder), Slow(folder / "_replays"), str(folder))
    assert table.order(["7-0", "7-1"], 7) == ["7-1"]


def test_ordered_letters_come_with_one_batch_until_it_is_committed(tmp_path: Path) -> None:
    def assigned(batch: int, components: Iterable[str] = ("lines",)) -> list[str]:
        found = local_letters(tmp_path).assign(batch, list(components))
        return [one.id for letters in found.values() for one in letters]

    table = local_letters(tmp_path)
    table.write(
        7, [letter(1), letter(2), letter(3, component="gone"), letter(4, data=None)], transactions=True
    )
    assert assigned(8) == []
    table.order(["7-0", "7-2"], 7)
    assert assigned(8) == ["7-0"], "its component is there"
    table.order(["7-1"], 7)
    assert assigned(8) == ["7-0", "7-1"], "batch 8 was not committed, so it runs again"
    assert [one.status for one in table.letters(7)] == [
        *["comes with the next start"] * 3,
        "given up, can't be replayed",
    ]
    assert assigned(9) == [], "batch 8 was committed"
    assert [one.replayed_in for one in table.letters(8)] == [8, 8, None, None]
    assert assigned(12, ["lines", "gone"]) == ["7-2"], "its component is there again"


def test_a_component_that_is_gone_when_its_batch_runs_again_has_its_rows_later(tmp_path: Path) -> None:
    table = local_letters(tmp_path)
    table.write(7, [letter(1)], transactions=True)
    table.order(["7-0"], 7)
    assert [one.id for one in table.assign(8, ["lines"])[8]] == ["7-0"]
    assert table.assign(8, ["others"]) == {}
    assert [one.id for one in table.assign(9, ["lines"])[9]] == ["7-0"]


def test_many_small_files_become_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those of an earlier driver; a driver that dies before it has deleted the parts leaves no letter twice."""
    monkeypatch.setattr(dead_letters, "_MERGE_FILES", 5)
    for batch in range(4):
        local_letters(tmp_path).write(batch, [letter(batch, batch)], transactions=True)
    table = local_letters(tmp_path)
    for batch in range(4, 12):
        table.write(batch, [letter(batch, batch)], transactions=True)
        assert rows(table, batch) == [f"[{n}]" for n in range(batch + 1)]
    names = LocalLetterFiles(tmp_path / "dead-letters").names()
    assert len(names) <= 7 and any("-" in name for name in names)

    def delete(self: Any, name: str) -> None:
        raise OSError("killed")

    monkeypatch.setattr(LocalLetterFiles, "delete", delete)
    for batch in range(12, 20):
        table.write(batch, [letter(batch, batch)], transactions=True)
    assert rows(local_letters(tmp_path), 19) == [f"[{n}]" for n in range(20)]


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    table = local_letters(tmp_path)
    table.write(7, [letter(1)], transactions=True)
    (tmp_path / "dead-letters" / "7.parquet").write_bytes(b"PAR1 no more")
    with pytest.raises(CheckpointError, match=r"the dead letters in .*dead-letters can't be read"):
        table.letters(7)


def test_many_letters_come_in_several_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A transaction of all letters of a long outage may never end. A driver that ends in between leaves the rest to the next."""
    monkeypatch.setattr(dead_letters, "_BATCH_ROWS", 2)
    table = local_letters(tmp_path)
    table.write(7, [letter(n) for n in range(5)], transactions=True)
    table.order([f"7-{n}" for n in range(5)], 7)

    def assigned(batch: int, *components: str) -> dict[int, list[str]]:
        found = local_letters(tmp_path).assign(batch, components)
        return {number: [one.id for one in letters] for number, letters in found.items()}

    assert assigned(8, "lines") == {8: ["7-0", "7-1"], 9: ["7-2", "7-3"], 10: ["7-4"]}
    assert assigned(9, "lines") == {9: ["7-2", "7-3"], 10: ["7-4"]}
    assert [one.replayed_in for one in table.letters(9)] == [8, 8, 9, 9, None]
    assert assigned(10, "others") == {}
    assert [one.replayed_in for one in table.letters(11)] == [8, 8, 9, 9, None]
    assert assigned(12, "lines") == {12: ["7-4"]}


def test_large_letters_come_in_several_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dead_letters, "_BATCH_BYTES", 10)
    table = local_letters(tmp_path)
    table.write(7, [letter(1, data=bytes(100)), letter(2, data=bytes(9)), letter(3)], transactions=True)
    table.order(["7-0", "7-1", "7-2"], 7)
    assert [len(letters) for letters in table.assign(8, ["lines"]).values()] == [1, 2]
