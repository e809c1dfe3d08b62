"""Commands that travel through the checkpoint folder, to a driver that no connection reaches (J1)."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stormspark.checkpoint.commands import FOLDER, Command, CommandBox, answer_to, send_command
from stormspark.checkpoint.control import Driver, LocalControlFile, next_generation
from stormspark.checkpoint.dead_letters import LocalLetterFiles
from stormspark.errors import TopologyNotAliveError
from stormspark.operations.checkpoint_client import CheckpointClient
from stormspark.worker.host.lifeline import this_machine, this_process
from tests.unit.operations.test_server import Words, run

pytestmark = pytest.mark.usefixtures("folder")


class Box:
    """A checkpoint folder, and the driver that uses it."""

    def __init__(self, place: Path) -> None:
        me = this_process()
        self.place = place
        self.control, self.files = LocalControlFile(place), LocalLetterFiles(place / FOLDER)
        self.driver = Driver("17ab", me.host, me.pid, me.started)
        next_generation(self.control, Words().plan, self.driver)
        self.control.write_beat("17ab", f"1 {this_machine()}".encode())
        self.calls: list[tuple[str, str, Any]] = []
        self.box = CommandBox(self.files, "17ab", self.call)

    def call(self, method: str, path: str, body: Any) -> tuple[int, dict[str, Any]]:
        self.calls.append((method, path, body))
        if path.endswith("boom"):
            raise ValueError("boom")
        if path.endswith("summary"):
            return 200, {"topologies": [{"name": "words", "id": "words-0-17", "status": "ACTIVE"}]}
        return 200, {"topologyId": "words-0-17"}


@pytest.fixture
def box(tmp_path: Path) -> Iterator[Box]:
    made = Box(tmp_path / "checkpoint")
    yield made
    made.box.close()


class Time:
    """A clock on which each pause runs the driver's look, if it is to."""

    def __init__(self, box: Box, *, answers: bool = True) -> None:
        self.now, self.said, self._box, self._answers = 0.0, list[str](), box, answers

    def sleep(self, secs: float) -> None:
        self.now += secs
        if self._answers:
            self._box.box.look()

    def client(self, name: str | None = None) -> CheckpointClient:
        return CheckpointClient(
            self._box.control,
            self._box.files,
            name,
            say=self.said.append,
            limit_secs=60.0,
            clock=lambda: self.now,
            sleep=self.sleep,
        )


@pytest.mark.parametrize("name", [None, "words"])
def test_a_command_is_answered_and_leaves_nothing(box: Box, name: str | None) -> None:
    assert Time(box).client(name).do("logconfig", {"a": 1}) == {"topologyId": "words-0-17"}
    assert box.calls == [("POST", "topology/{this}/logconfig", {"a": 1})]
    assert box.files.names() == []


def test_an_id_is_for_the_driver_to_check(box: Box) -> None:
    Time(box).client("words-0-1795861973").do("kill/0")
    assert box.calls[0][1] == "topology/words-0-1795861973/kill/0"


@pytest.mark.parametrize("name", ["other", "word", "words-1", "words-1-2/kill/0#-1-1"])
def test_a_checkpoint_of_another_topology(box: Box, name: str) -> None:
    with pytest.raises(TopologyNotAliveError, match=rf"belongs to the topology 'words', and not to '{name}'"):
        Time(box).client(name)


def test_a_call_that_raises_is_answered(box: Box) -> None:
    assert Time(box).client().send("GET", "boom") == (500, {"errorMessage": "ValueError: boom"})


def test_a_command_runs_once_also_if_it_can_not_be_deleted(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(box.files, "delete", lambda name: None)
    send_command(box.files, "17ab", "POST", "kill/0", None)
    box.box.look()
    box.box.look()
    assert len(box.calls) == 1


def test_a_command_runs_once_also_if_the_storage_goes_away_and_comes_back(box: Box) -> None:
    """The answer and the deletion are not possible then, and meanwhile the folder looks as if it were not there."""
    folder, away = box.place / FOLDER, box.place / "away"
    send_command(box.files, "17ab", "POST", "topology/{this}/rebalance/0", None)

    def call(method: str, path: str, body: Any) -> tuple[int, dict[str, Any]]:
        box.calls.append((method, path, body))
        folder.rename(away)
        folder.write_text("no folder")
        return 200, {}

    box.box._call = call
    with pytest.raises(OSError, match="File exists"):
        box.box.look()
    box.box.look()
    folder.unlink()
    away.rename(folder)
    box.box.look()
    assert len(box.calls) == 1


def test_a_command_runs_once_also_if_its_storage_was_away(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that is not mounted has no files. When it is back, the command is there again, if it could not be deleted."""

    def fails(name: str) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as away:
        away.setattr(box.files, "delete", fails)
        send_command(box.files, "17ab", "POST", "kill/0", None)
        with pytest.raises(OSError, match="Input/output error"):
            box.box.look()
        away.setattr(box.files, "names", list)
        box.box.look()
    box.box.look()
    assert len(box.calls) == 1


def test_a_command_that_can_not_be_read_now_is_read_later(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = send_command(box.files, "17ab", "POST", "activate", None)

    def fails(name: str) -> bytes:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as away:
        away.setattr(box.files, "read", fails)
        box.box.look()
    box.box.look()
    assert answer_to(box.files, sent) is not None


def test_an_answer_that_nobody_fetches_goes_after_ten_minutes(box: Box) -> None:
    """Its sender was killed, or has given up: a script that asks each minute would fill the folder."""
    now = [0.0]
    commands = CommandBox(box.files, "17ab", box.call, clock=lambda: now[0])
    for _ in range(3):
        send_command(box.files, "17ab", "GET", "topology/summary", None)
    commands.look()
    now[0] = 590.0
    commands.look()
    assert len(box.files.names()) == 3
    now[0] = 610.0
    commands.look()
    assert box.files.names() == []


def test_a_command_can_be_read_by_whoever_may_read_the_folder(tmp_path: Path) -> None:
    """A sender who is another user than the driver's, and whose umask is strict."""
    folder = tmp_path / "commands"
    folder.mkdir()
    folder.chmod(0o775)
    before = os.umask(0o077)
    try:
        sent = send_command(
            LocalLetterFiles(folder, shared=True), "17ab", "POST", "topology/words/activate", None
        )
    finally:
        os.umask(before)
    assert stat.S_IMODE((folder / f"command-{sent}.json").stat().st_mode) == 0o644


def test_old_commands_do_nothing_and_the_next_driver_deletes_them(box: Box) -> None:
    send_command(box.files, "of a driver that has ended", "POST", "kill/0", None)
    box.box.look()
    assert box.calls == []
    sent = send_command(box.files, "next", "POST", "kill/0", None)
    calls: list[str] = []

    def call(method: str, path: str, body: Any) -> tuple[int, dict[str, Any]]:
        calls.append(path)
        return 200, {}

    following = CommandBox(box.files, "next", call)
    assert len(box.files.names()) == 1  # this one came while the next driver began
    following.look()
    assert calls == ["kill/0"]
    assert answer_to(box.files, sent) is not None


whole = json.dumps(vars(Command("0123456789abcdef", "17ab", "POST", "kill/0")))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("command-0123456789abcdef.json", whole[:-9]),
        ("command-0123456789abcdef.json", ""),
        ("command-0123456789abcdef.json", "[" * 100_000),
        ("command-0123456789abcdef.json", whole.replace("{", '{"more": 1, ')),
        ("command-0123456789abcdef.json", whole.replace('"POST"', "7")),
        ("command-0123456789abcdef.json", whole.replace('"format": 1', '"format": 2')),
        ("command-0123456789abcdef.json", whole + " " * 300_000),
        ("command-fedcba9876543210.json", whole),
        (".command-0123456789abcdef.json-77.new", whole),
        ("command-0123456789ABCDEF.json", whole),
    ],
)
def test_what_is_no_whole_command_is_not_run(box: Box, name: str, text: str) -> None:
    (box.place / FOLDER).mkdir(parents=True)
    (box.place / FOLDER / name).write_text(text)
    box.box.look()
    assert box.calls == []
    (box.place / FOLDER / "command-0123456789abcdef.json").unlink(missing_ok=True)
    box.box.look()
    (box.place / FOLDER / "command-0123456789abcdef.json").write_text(whole)
    box.box.look()
    assert len(box.calls) == 1


def test_a_driver_that_does_not_answer(box: Box) -> None:
    time = Time(box, answers=False)
    beats = iter(range(2, 1000))
    sleep = time.sleep

    def living(secs: float) -> None:
        sleep(secs)
        box.control.write_beat("17ab", f"{next(beats)} {this_machine()}".encode())

    time.sleep = living  # type: ignore[method-assign]
    with pytest.raises(
        TopologyNotAliveError, match="lives, but has not answered within 60 s: the command is withdrawn"
    ):
        time.client().do("kill/0")
    assert box.files.names() == []
    assert "waiting for process" in time.said[0]


def test_a_driver_that_shows_no_sign_of_life(box: Box) -> None:
    with pytest.raises(TopologyNotAliveError, match="has shown no sign of life for 2"):
        Time(box, answers=False).client().do("kill/0")
    assert box.files.names() == []


def test_a_driver_that_ends_meanwhile(box: Box) -> None:
    time = Time(box, answers=False)
    client = time.client()
    box.control.write_beat("17ab", None)
    with pytest.raises(TopologyNotAliveError, match="has ended before it answered"):
        client.do("kill/0")
    assert box.files.names() == []


def test_a_driver_that_has_ended_or_was_killed(box: Box, tmp_path: Path) -> None:
    checkpoint = str(box.place)
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    next_generation(box.control, Words().plan, Driver("dead", this_process().host, ended.pid, 1))
    assert "no driver uses the checkpoint folder" in run("kill", "--checkpoint", checkpoint)[1]
    box.control.write_beat("dead", f"1 {this_machine()}".encode())
    code, said = run("kill", "words", "--checkpoint", checkpoint)
    assert (code, "has ended without a word, as after kill -9" in said) == (2, True)
    assert "is no checkpoint folder of a topology" in run("list", "--checkpoint", str(tmp_path))[1]
    (box.place / "stormspark" / "control.json").write_text("{")
    assert "is damaged" in run("list", "--checkpoint", checkpoint)[1]


def test_the_commands_go_through_the_folder(box: Box) -> None:
    box.box.keep_looking(0.01)
    checkpoint = box.place.as_uri()
    assert run("kill", "-w", "5", "--checkpoint", checkpoint) == (
        0,
        "words-0-17 is killed, and ends after 5 s\n",
    )
    assert "words-0-17" in run("list", "--checkpoint", str(box.place))[1]
    assert box.calls == [("POST", "topology/{this}/kill/5", None), ("GET", "topology/summary", None)]
    assert run("list", "--checkpoint", checkpoint, "--url", "http://127.0.0.1:1")[0] == 2
