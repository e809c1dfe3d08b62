"""Runs a topology's file by the real command line, in a process of its own, as a user does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

PROJECTS = Path(__file__).parent / "projects"
_ROOT = Path(__file__).parents[3]

LONG_ON_SPARK = ["local", pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.long])]


@dataclass(frozen=True)
class Run:
    """A run that has ended: its figures, and what the tasks have written."""

    figures: dict[str, Any]
    folder: Path
    told: str

    def notes(self, component: str) -> list[Any]:
        """The lines of JSON that a component's tasks have written."""
        return [json.loads(line) for line in (self.folder / f"{component}.jsonl").read_text().splitlines()]

    def lines(self) -> Iterator[list[str]]:
        """The lines of all text files, in words."""
        for file in sorted(self.folder.glob("*.txt")):
            for line in file.read_text().splitlines():
                yield line.split()


def command(*arguments: object, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    """``stormspark ...``; ``path`` is a folder on the module path."""
    paths = [str(_ROOT), *([str(path)] if path else [])]
    return subprocess.run(
        [sys.executable, "-m", "stormspark.cli", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )


def run(target: object, engine: str, folder: Path, *arguments: object, path: Path | None = None) -> Run:
    """Run a topology until it is idle, unless ``arguments`` say when it ends."""
    out = folder / "figures.json"
    until = () if "--seconds" in arguments else ("--until-idle", 2)
    on_spark = ("--master", "local[3]") if engine == "spark" else ()
    settings = ("-c", f"test.folder={folder}", "-c", f"stormspark.log.dir={folder / 'logs'}")
    done = command(
        "run",
        target,
        "--engine",
        engine,
        *until,
        "--json",
        out,
        *settings,
        *on_spark,
        *arguments,
        path=path,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return Run(json.loads(out.read_text()), folder, done.stderr)
