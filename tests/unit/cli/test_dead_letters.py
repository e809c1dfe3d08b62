"""``stormspark dead-letters``: what was given up, and that it comes again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from stormspark.checkpoint.dead_letters import Letter, local_letters
from stormspark.cli.commands import main
from stormspark.driver.letter_lines import LetterLines


def letter(n: int, component: str = "lines", data: bytes | None = b"row") -> Letter:
    return Letter(component, 3, 0, f"key {n}", str(n), "unlucky", f'["row {n}"]', 0.0, data)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["dead-letters", *arguments])


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """Batch 4 is committed, and batch 5 is not."""
    commits = tmp_path / "checkpoint" / "spark" / "commits"
    commits.mkdir(parents=True)
    (commits / "4").touch()
    table = local_letters(tmp_path / "checkpoint")
    table.write(4, [letter(1), letter(2), letter(3, "others"), letter(4, data=None)], transactions=True)
    table.write(5, [letter(5)], transactions=True)
    return tmp_path / "checkpoint"


def test_letters_of_committed_batches_are_listed(checkpoint: Path) -> None:
    done = run("list", str(checkpoint))
    assert done.exit_code == 0
    assert done.output.splitlines()[0] == f"4 dead letters in {checkpoint}/dead-letters:"
    assert '["row 1"]' in done.output and "1970-01-01T00:00:00" in done.output and "row 5" not in done.output
    assert "given up, can't be replayed" in done.output
    assert run("list", f"{checkpoint}/dead-letters").output == done.output
    assert run("list", checkpoint.as_uri()).output == done.output


def test_the_last_letters_and_those_of_a_component_are_listed(checkpoint: Path) -> None:
    done = run("list", str(checkpoint), "-n", "1")
    assert (
        "4 dead letters" in done.output and "the last 1 of them" in done.output and "row 1" not in done.output
    )
    done = run("list", str(checkpoint), "--component", "others", "--json")
    (one,) = map(json.loads, done.output.splitlines())
    assert one == {
        "id": "4-2",
        "time": "1970-01-01T00:00:00+00:00",
        "batch": 4,
        "component": "others",
        "task": 3,
        "message_id": 3,
        "reason": "unlucky",
        "row": ["row 3"],
        "status": "given up",
    }


def test_a_replay_is_ordered_once(checkpoint: Path) -> None:
    done = run("replay", str(checkpoint), "--id", "4-0")
    assert (done.exit_code, done.output) == (
        0,
        "1 row comes again when the topology starts the next time with this checkpoint; if it runs now, stop it and start it "
        "again\n",
    )
    done = run("replay", str(checkpoint))
    assert "2 rows come again" in done.output
    assert "already replayed, or waiting for the next start: 1" in done.output
    assert "can't be replayed, because Python can't hold their values: 1 (4-3)" in done.output
    done = run("replay", str(checkpoint), "--component", "lines", "--id", "4-1")
    assert "0 rows come again" in done.output and "nothing is left to replay" in done.output
    assert run("list", str(checkpoint)).output.count("comes with the next start") == 3


def test_an_unknown_id_is_refused(checkpoint: Path) -> None:
    """Also that of a batch that is not committed."""
    for id in ("5-0", "nonsense"):
        done = run("replay", str(checkpoint), "--id", id)
        assert done.exit_code == 2 and f"there is no dead letter {id} in " in done.output


def test_lines_of_json_are_listed_and_not_replayed(tmp_path: Path) -> None:
    LetterLines(tmp_path).write(7, [letter(1)], transactions=False)
    (tmp_path / "lines-3.jsonl").write_text(
        json.dumps({"component": "lines", "task": 3, "message_id": 2, "reason": "no", "row": ["row 2"]})
        + "\n"
    )
    for where in (tmp_path, tmp_path / "dead-letters.jsonl"):
        done = run("list", str(where))
        assert done.exit_code == 0 and '["row 1"]' in done.output
    assert '["row 2"]' in run("list", str(tmp_path)).output
    done = run("replay", str(tmp_path))
    assert done.exit_code == 2 and "lines of JSON, which can't be replayed" in done.output


def test_a_folder_that_is_something_else_is_refused(tmp_path: Path) -> None:
    done = run("list", str(tmp_path))
    assert done.exit_code == 2 and "is no checkpoint folder of a topology" in done.output
    done = run("list", str(tmp_path / "missing"))
    assert done.exit_code == 2 and "there is no folder or file" in done.output
    done = run("list", "no-such-topology-of-mine")
    assert done.exit_code == 2 and "has started no topology" in done.output


def test_a_checkpoint_without_letters_has_none(tmp_path: Path) -> None:
    (tmp_path / "spark").mkdir()
    done = run("list", str(tmp_path))
    assert (done.exit_code, done.output) == (0, f"no dead letters in {tmp_path}/dead-letters\n")
    assert "0 rows come again" in run("replay", str(tmp_path)).output
    assert [one.name for one in tmp_path.iterdir()] == ["spark"]


def test_a_folder_with_the_name_of_a_topology_does_not_hide_its_letters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The project of the topology `orders`, or its input, is often a folder `orders`."""
    monkeypatch.setattr("stormspark.cli.dead_letters.default_log_folder", lambda: tmp_path / "logs")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "orders").mkdir()
    (tmp_path / "others").mkdir()
    (tmp_path / "logs" / "orders").mkdir(parents=True)
    LetterLines(tmp_path / "logs" / "orders").write(7, [letter(1)], transactions=False)
    done = run("list", "orders")
    assert done.exit_code == 0 and '["row 1"]' in done.output
    done = run("list", "others")
    assert done.exit_code == 2 and "others is no checkpoint folder of a topology" in done.output
