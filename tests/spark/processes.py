"""Programs that a test starts, and that end with the test."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

__all__ = ["Runs", "ending_with_the_test"]


class Runs:
    """Runs of ``stormspark run``."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._started: list[subprocess.Popen[str]] = []

    def start(
        self,
        topology: str,
        *options: str,
        before: tuple[str, ...] = (),
        stdout: int | IO[Any] = subprocess.PIPE,
        **more: Any,
    ) -> subprocess.Popen[str]:
        """Run the topology whose code is ``topology``. ``before`` are words before the command, and ``more`` is for Popen."""
        file = self._folder / "some_topology.py"
        file.write_text(topology)
        command = [*before, sys.executable, "-m", "stormspark", "run", str(file), *options]
        command += ["-c", f"stormspark.log.dir={self._folder / 'logs'}"]
        process = subprocess.Popen(command, stdout=stdout, stderr=subprocess.STDOUT, text=True, **more)
        self._started.append(process)
        return process

    def end(self) -> None:
        """Kill those that still run."""
        for process in self._started:
            if process.poll() is None:
                process.kill()
                process.communicate()


@contextmanager
def ending_with_the_test(folder: Path) -> Iterator[Runs]:
    """Offer runs that are killed at the end. Their files are in ``folder``."""
    runs = Runs(folder)
    try:
        yield runs
    finally:
        runs.end()
