"""The event log is turned on and off by the REST API and by commands, and shown (J20)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from stormspark.cli.events import _Followed
from tests.unit.operations.test_server import run
from tests.unit.operations.test_storm_fields import Words, served

pytestmark = pytest.mark.usefixtures("folder")


@pytest.fixture
def words(folder: Path, tmp_path: Path) -> Iterator[tuple[Words, httpx.Client]]:
    running = Words(lines="the lines/1")
    running.log_folder = str(tmp_path)  # type: ignore[assignment]
    tmp_path.chmod(0o700)
    for client in served(running):
        yield running, client


def test_the_rest_api_turns_it_on_and_off(words: tuple[Words, httpx.Client]) -> None:
    running, client = words
    page = f"topology/{Words.storm_id}"
    assert client.post(f"{page}/debug/enable/10").json()["topologyOperation"] == "debug/enable"
    assert running.sampling.sampled == {"": 10.0}
    assert (client.get(page).json()["debug"], client.get(page).json()["samplingPct"]) == (True, 10.0)
    client.post(f"{page}/component/the+lines%2F1/debug/disable/0")
    assert running.sampling.sampled == {"": 10.0, "the lines/1": 0.0}
    component = client.get(f"{page}/component/the+lines%2F1").json()
    assert (component["id"], component["debug"], component["samplingPct"]) == ("the lines/1", False, 10.0)
    client.post(f"{page}/debug/disable/0")
    assert running.sampling.sampled == {}


@pytest.mark.parametrize(
    ("call", "status"),
    [
        ("debug/enable/x", 400),
        ("debug/enable/-1", 400),
        ("debug/enable/101", 400),
        ("debug/enable/nan", 400),
        ("debug/maybe/5", 404),
        ("component/nothing/debug/enable/5", 404),
    ],
)
def test_what_is_wrong_changes_nothing(words: tuple[Words, httpx.Client], call: str, status: int) -> None:
    running, client = words
    assert client.post(f"topology/{Words.storm_id}/{call}").status_code == status
    assert running.sampling.sampled == {}


def test_commands(words: tuple[Words, httpx.Client], tmp_path: Path) -> None:
    running, _ = words
    code, said = run("events", "words")
    assert (code, "turn it on with `stormspark debug words --on 10`" in said) == (2, True)
    code, said = run("debug", "words", "the lines/1", "--on", "5")
    assert (code, "logs 5 % of what the lines/1 emits" in said) == (0, True)
    assert running.sampling.sampled == {"the lines/1": 5.0}
    assert run("debug", "words", "--off") == (0, f"{running.storm_id} logs no events\n")
    assert running.sampling.sampled == {}
    for wrong in ([], ["--on", "5", "--off"], ["--on", "500"], ["nothing", "--on", "5"]):
        assert run("debug", "words", *wrong)[0] == 2, wrong
    (tmp_path / "worker-1").mkdir()
    lines = [
        f"Sat Nov 28 13:35:4{n} UTC 2026,{name},7,,[{n}]\n"
        for n, name in enumerate(["count", "split", "count"])
    ]
    (tmp_path / "worker-1" / "events.log").write_text("".join(lines))
    assert run("events", "words") == (0, "".join(lines))
    assert run("events", "words", "count", "-n", "1") == (0, lines[2])


def test_a_file_is_followed_over_its_rotation(tmp_path: Path) -> None:
    path = tmp_path / "events.log"
    followed = _Followed(path)
    assert list(followed.lines()) == []
    path.write_text("one\ntw")
    assert list(followed.lines()) == ["one\n"]
    path.write_text("one\ntwo\n")
    assert list(followed.lines()) == ["two\n"]
    path.rename(tmp_path / "events.log.1")
    path.write_text("three\n")
    assert list(followed.lines()) == ["three\n"]


def test_a_value_does_nothing_to_the_terminal(tmp_path: Path) -> None:
    (tmp_path / "events.log").write_text("now,split,7,,[\x1b[2Jgone]\n")
    assert list(_Followed(tmp_path / "events.log").shown("split")) == ["now,split,7,,[\\x1b[2Jgone]\n"]
