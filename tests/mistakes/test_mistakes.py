"""Whoever makes a mistake is told what it is, where it is, and what to do, with an exit code, and without tracebacks of ours."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
from click.testing import CliRunner

from stormspark.cli import main
from tests.imports import imports_undone
from tests.mistakes.mistakes import FILES, MISTAKES, Mistake
from tests.mistakes.prepared import full_disk, prepared

_OUR_FRAME = re.compile(r'File ".*/stormspark/\w+')
#: Exit codes of topologies that ran, which takes longer than to refuse one.
_RAN = (0, 3)


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """An own working directory. A topology's file is imported, which leaves its module and its folder behind."""
    monkeypatch.chdir(tmp_path)
    with imports_undone(monkeypatch, tmp_path):
        yield tmp_path


def _done(mistake: Mistake, broker: str = "") -> tuple[int, str]:
    """What comes of the command: the exit code and all output."""
    command = prepared(mistake, broker)
    with full_disk(Path("full")) if mistake.on_full_disk else nullcontext():
        if mistake.alone:
            done = subprocess.run(
                [sys.executable, "-m", "stormspark", *command],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
                env={**os.environ, **mistake.environment},
            )
            return done.returncode, done.stdout
        result = CliRunner(env=mistake.environment).invoke(main, command, prog_name="stormspark")
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.output


def _marked(mistake: Mistake) -> object:
    marks = [pytest.mark.slow] if mistake.alone or mistake.with_broker or mistake.code in _RAN else []
    if mistake.on_spark:
        marks += [pytest.mark.spark]
    if mistake.is_long:
        marks += [pytest.mark.long]
    return pytest.param(mistake, id=mistake.name, marks=marks)


@pytest.mark.parametrize("mistake", [*map(_marked, MISTAKES)])
def test_a_mistake_is_told(mistake: Mistake, request: pytest.FixtureRequest) -> None:
    """The exit code and the sentences."""
    if mistake.on_full_disk and os.geteuid():
        pytest.skip("only root may mount a small disk")
    broker = request.getfixturevalue("kafka").bootstrap if mistake.with_broker else ""
    code, output = _done(mistake, broker)
    words = " ".join(output.split())
    missing = [one for one in mistake.says if one.replace("THE_FILE", mistake.file) not in words]
    assert not missing, f"{missing} is not in:\n{output}"
    assert code == mistake.code, output
    assert not _OUR_FRAME.search(output), f"frames of this package are of no use to users:\n{output}"


@pytest.mark.slow
@pytest.mark.parametrize("file", [name for name in FILES if name.endswith(".py")])
def test_without_a_mistake_the_files_run_well(file: str) -> None:
    """Otherwise a mistake would not be known to be one."""
    code, output = _done(Mistake("none", 0, [], file=file))
    assert code == 0, output
    assert "Warning" not in output and "error" not in output.partition("component  kind")[0], output
