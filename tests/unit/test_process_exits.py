"""Who calls ``os._exit`` is told, and the process ends all the same."""

from __future__ import annotations

import os
from multiprocessing import get_context
from pathlib import Path

import pytest

from stormspark.process_exits import telling_exits
from stormspark.user_line import CodePlace


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
