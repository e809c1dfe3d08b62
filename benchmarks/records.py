"""What has been measured so far: JSON lines that are only ever appended to, so that a run can be broken off and gone on with.

A line is one measurement of one round, with the state of the code and the settings that it was made with. A run goes on with the
lines of its own state and settings, and leaves those of others alone.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.places import ROOT
from stormspark.tuple_path import compiled

__all__ = ["Records", "code_state"]


def code_state() -> str:
    """Which code is measured: the state of the package alone, and whether its modules are compiled.

    Benchmarks and documents may change while a table is being filled; who changes what is measured begins a new file.
    """

    def git(*words: str) -> str:
        done = subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=True)
        return done.stdout

    try:
        state = git("rev-parse", "--short=10", "HEAD:stormspark").strip()
        changes = git("diff", "HEAD", "--", "stormspark")
    except (subprocess.CalledProcessError, FileNotFoundError):
        return "no commit"
    state += f"+{hashlib.sha256(changes.encode()).hexdigest()[:6]}" if changes else ""
    return state + (" compiled" if compiled() else "")


class Records:
    """The lines of ``path`` that belong to ``code`` and ``settings``.

    ``figures[round, measurement]`` is what was measured; a measurement that could not be is in ``missing``, with why.
    """

    def __init__(self, path: Path, code: str, settings: Mapping[str, Any]) -> None:
        self._path, self._belongs_to = path, {"code": code, "settings": dict(settings)}
        self.figures: dict[tuple[int, str], dict[str, Any]] = {}
        self.missing: dict[str, str] = {}
        for line in path.read_text().splitlines() if path.exists() else ():
            record = json.loads(line)
            if all(record.get(name) == value for name, value in self._belongs_to.items()):
                self._take(record)

    def _take(self, record: Mapping[str, Any]) -> None:
        measurement, figures = record["measurement"], record["figures"]
        if why := figures.get("unavailable"):
            self.missing[measurement] = why
        else:
            self.figures[record["round"], measurement] = figures
            self.missing.pop(measurement, None)

    def add(self, round_: int, measurement: str, figures: Mapping[str, Any]) -> None:
        """Write a line, at once."""
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime())
        record = {
            "round": round_,
            "measurement": measurement,
            "at": at,
            **self._belongs_to,
            "figures": figures,
        }
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a") as file:
            file.write(json.dumps(record) + "\n")
        self._take(json.loads(json.dumps(record)))
