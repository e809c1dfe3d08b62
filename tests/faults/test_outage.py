"""Storage that goes away for a while and comes back ends nothing and loses nothing, wherever it is missed.

``OUTAGE_SECS=600 pytest tests/faults/test_outage.py`` has it away for ten minutes, CI for seconds. ``stormspark.max.attempts``
is 2 here, so each attempt that fails must be known for what it is.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.faults.exactly_once.test_exactly_once import Run, running
from tests.waiting import wait_for, worker_processes

pytestmark = [pytest.mark.spark, pytest.mark.faults, pytest.mark.slow]

SECS = float(os.environ.get("OUTAGE_SECS", "8"))


@contextmanager
def away(folder: Path) -> Iterator[None]:
    """A file is where the folder was: whatever is read or written below fails, and nobody can make the folder anew."""
    hidden = folder.with_name(f"{folder.name}-is-away")
    folder.rename(hidden)
    folder.touch()
    try:
        yield
    finally:
        folder.unlink()
        hidden.rename(folder)


def _last_through(run: Run, secs: float) -> None:
    """Wait until the outage has lasted so long; the driver must live through it."""
    began = time.monotonic()

    def enough() -> bool:
        assert run.process is not None
        assert run.process.poll() is None, run.output
        return time.monotonic() - began > secs

    wait_for(enough, secs + 60)
    assert "is run again as attempt" in (run.folder / "output").read_text(), "it was missed"


def _settings(run: Run) -> None:
    run.settings = {
        "stormspark.max.attempts": 2,
        "stormspark.restart.max.delay.secs": 5 if SECS > 60 else 0.2,
    }


@pytest.mark.parametrize("what", ["stormspark/state", pytest.param("spark", marks=pytest.mark.long)])
def test_storage_that_is_away_ends_nothing(tmp_path: Path, what: str) -> None:
    """C35, C38, W3: the state's table, with a worker that dies meanwhile and has to read it; Spark's own checkpoint."""
    with running(tmp_path, 2, prepare=_settings) as run:
        with away(run.folder / "checkpoint" / what):
            _last_through(run, SECS / 2)
            next(iter(worker_processes(run.name).values())).kill()
            _last_through(run, SECS / 2)
        run.goes_on(2)
        run.end()
        assert run.drivers == 1
        print(f"{run.check():,} numbers")
