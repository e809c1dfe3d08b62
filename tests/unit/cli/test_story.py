"""W6, W4: ``stormspark story`` over files as workers write them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from stormspark.cli import main


def line(root: str, worker: int = 0, at: float = 140.0, host: str = "one", **more: Any) -> dict[str, Any]:
    return {"root": root, "worker": worker, "life": 0, "host": host, "epoch": 1000.0, "at": at, **more}


def home(outcome: str, message_id: str, **more: Any) -> dict[str, Any]:
    return {
        "spout": "lines[0]",
        "message_id": message_id,
        "emitted_at": 100.0,
        "ended_at": 131.0,
        "outcome": outcome,
        "reason": None,
        "untold": 0,
        **more,
    }


FIRST, REPLAY, FINE = "a1" * 8, "b2" * 8, "c3" * 8
LATE = "not fully processed within 30 s"
REASON = f"{LATE}: count[7] has held 1 tuple for 30.9 s without ack or fail"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two workers: a tree that timed out, its replay, which was traced and failed too, and one that was acked."""
    logs = tmp_path / "logs" / "demo"
    logs.mkdir(parents=True)
    held = ["count[7]", "held", 1, 30.9]
    zero = [
        line(FIRST, home=home("timed out", "17", reason=LATE, untold=3), holders=[held]),
        line(
            REPLAY,
            at=175.0,
            home=home("failed by a bolt", "17", reason="parse[1]: KeyError: 'price'", replay_of=FIRST),
            events=[
                [100.0, "emitted", "lines[0]", "split[3]", 1, None],
                [100.012, "emitted_away", "split[3]", "parse[1]", 2, None],
                [100.013, "acked", "split[3]", None, 1, 100.010],
                [100.1, "sent", "worker 0", "worker 1", 2, None],
            ],
            omitted=0,
        ),
    ]
    one = [
        line(
            REPLAY,
            worker=1,
            at=175.5,
            events=[
                [100.2, "received", "worker 0", "parse[1]", 2, None],
                [100.3, "failed", "parse[1]", None, 1, 100.25],
            ],
            omitted=5,
            holders=[["parse[1]", "waiting", 1, None]],
        )
    ]
    (logs / "stories-0.jsonl").write_text("".join(json.dumps(x) + "\n" for x in zero))
    (logs / "stories-1.jsonl").write_text("".join(json.dumps(x) + "\n" for x in one) + '{"root": "cut sho')
    fine = line(FINE, at=180.0, home=home("acked", "18"), events=[], omitted=0)
    (logs / "stories-0-sampled.jsonl.1").write_text(json.dumps(fine) + "\n")
    return logs


def story(folder: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["story", "demo", "--log-dir", str(folder), *arguments])


def test_a_story_shows_each_step_with_what_it_took(folder: Path) -> None:
    done = story(folder, REPLAY[:6])
    assert done.exit_code == 0, done.output
    assert done.output.splitlines() == [
        f"story {REPLAY}: message 17 of lines[0] failed by a bolt after 31 s: parse[1]: KeyError: 'price'",
        f"it is a replay of {FIRST}",
        "",
        "    0.000 ms  lines[0] emitted 1 tuple to split[3]",
        "   12.000 ms  split[3] emitted 2 tuples to parse[1], which lives in another worker",
        "   13.000 ms  split[3] acked 1 tuple 13.000 ms after it had come, 3.000 ms into its turn",
        "  100.000 ms  worker 0 sent 2 tuples to worker 1",
        "  200.000 ms  2 tuples came from worker 0 for parse[1]",
        "  300.000 ms  parse[1] failed 1 tuple 100.000 ms after it had come, 50.000 ms into its turn",
        "    31.000 s  failed by a bolt",
        "",
        "where its tuples were when it failed:",
        "  1 tuple waits in parse[1]",
        "",
        "5 more tuples moved, but these moves were not recorded.",
        f"The same message: {FIRST} timed out.",
    ]


def test_the_story_of_an_untraced_tree_names_the_tasks_that_have_not_acked(folder: Path) -> None:
    out = story(folder, FIRST).output
    assert f"message 17 of lines[0] timed out after 31 s: {REASON}" in out
    assert "  count[7] has held 1 tuple for 30.9 s without ack or fail" in out
    assert "The tree was not traced" in out
    assert f"The same message: {REPLAY} failed by a bolt, traced." in out


def test_the_list_has_failures_first_and_counts_those_without_a_story(folder: Path) -> None:
    done = story(folder)
    assert done.exit_code == 0
    roots = [word for word in done.output.split() if word in (FIRST, REPLAY, FINE)]
    assert roots == [REPLAY, FIRST, FINE]
    assert "3 more failures have no story" in done.output
    assert [word for word in story(folder, "-n", "1").output.split() if len(word) == 16] == [REPLAY]


def test_it_can_be_had_as_json(folder: Path) -> None:
    told = [json.loads(text) for text in story(folder, "--json").output.splitlines()]
    assert [one["root"] for one in told] == [REPLAY, FIRST, FINE]
    assert told[0]["events"][0] == {
        "at": 0.0,
        "what": "emitted",
        "by": "lines[0]",
        "to": "split[3]",
        "tuples": 1,
        "since": None,
    }


def test_times_of_another_host_are_compared_by_wall_clocks_and_that_is_shown(folder: Path) -> None:
    part = line(FINE, worker=1, host="two", events=[[5000.5, "acked", "c[0]", None, 1, None]])
    part |= {"epoch": -3900.0, "at": 5001.0}
    (folder / "stories-1.jsonl").write_text(json.dumps(part) + "\n")
    out = story(folder, FINE).output
    assert "  500.000 ms  c[0] acked 1 tuple" in out
    assert (
        "Workers on 2 hosts recorded this story: times between hosts are as exact as the hosts' clocks."
        in out
    )


def test_a_root_that_nobody_knows_is_code_1(folder: Path) -> None:
    done = story(folder, "ff")
    assert done.exit_code == 1
    assert f"there is no story of ff in {folder}" in done.output


def test_a_topology_without_logs_is_refused_with_the_name_that_is_like_it(folder: Path) -> None:
    done = story(folder.parent / "dmeo")
    assert done.exit_code == 2
    assert f"there are no logs of a topology in {folder.parent / 'dmeo'}" in done.output
    assert "a host of the topology's workers; did you mean 'demo'?" in done.output


def test_the_folder_is_the_default_one_of_that_name(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stormspark.cli.commands.default_log_folder", lambda: folder.parent)
    done = CliRunner().invoke(main, ["story", "demo", FIRST])
    assert done.exit_code == 0, done.output
    assert REASON in done.output
