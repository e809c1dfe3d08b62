"""Who calls ``os._exit`` is told, and the process ends all the same."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Mapping
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from stormspark import AsyncBolt, Bolt, TopologyBuilder
from stormspark.cli.run import tell_exit
from stormspark.local import submit
from stormspark.process_exits import telling_exits
from stormspark.user_line import CodePlace
from tests.finite_components import Numbers


class _EndedError(Exception):
    """In the place of a process's end."""


def _end(status: int) -> None:
    raise _EndedError(status)


def execute() -> None:
    """What a component's author wrote."""
    os._exit(7)


def test_the_code_and_the_users_line_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """And then the process ends, with the user's code."""
    monkeypatch.setattr(os, "_exit", _end)
    told: list[tuple[int, CodePlace]] = []
    with telling_exits(lambda code, place: told.append((code, place))), pytest.raises(_EndedError, match="7"):
        execute()
    ((code, place),) = told
    assert code == 7
    assert place.line == f"{__file__}:{execute.__code__.co_firstlineno + 2}"
    assert os._exit is _end


def test_a_process_ends_even_if_nothing_can_be_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error on the way is no reason to go on."""
    monkeypatch.setattr(os, "_exit", _end)

    def raises(code: int, place: CodePlace) -> None:
        raise OSError

    with telling_exits(raises), pytest.raises(_EndedError):
        execute()


@pytest.mark.slow
def test_children_end_as_usual(tmp_path: Path) -> None:
    """A child that is forked ends by `os._exit`, which is no news."""
    told = tmp_path / "told"
    with telling_exits(lambda code, place: told.write_text(str(code))):
        child = get_context("fork").Process(target=execute)
        child.start()
        child.join()
    assert child.exitcode == 7
    assert not told.exists()


class InCoroutine(AsyncBolt):
    async def prepare(self, conf: Mapping[str, Any], context: Any, collector: Any) -> None:
        pass

    async def execute(self, tup: Any) -> None:
        os._exit(7)


class InTaskOfCoroutine(InCoroutine):
    async def execute(self, tup: Any) -> None:
        await asyncio.create_task(super().execute(tup))


class InThreadOfCoroutine(InCoroutine):
    async def execute(self, tup: Any) -> None:
        await asyncio.to_thread(execute)


class InOwnThread(Bolt):
    def prepare(self, conf: Mapping[str, Any], context: Any, collector: Any) -> None:
        self.collector = collector

    def execute(self, tup: Any) -> None:
        thread = threading.Thread(target=execute)
        thread.start()
        thread.join()
        self.collector.ack(tup)


@pytest.mark.parametrize("bolt", [InCoroutine(), InTaskOfCoroutine(), InThreadOfCoroutine(), InOwnThread()])
def test_the_task_is_told_too(
    bolt: Any, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Also in coroutines, and in threads that a task has started."""
    monkeypatch.setattr(os, "_exit", lambda status: None)
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(1))
    builder.set_bolt("sink", bolt).shuffle_grouping("numbers")
    with telling_exits(tell_exit):
        running = submit(builder.create_topology("exits", {"stormspark.log.dir": str(tmp_path)}))
        assert running.wait()
    assert running.error is None
    assert (
        f"{__file__}:" in (told := capfd.readouterr().err) and "execute of sink[0] calls os._exit(7)" in told
    )
