"""The end of a driver that tests start, and kill and start again."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NoReturn

from stormspark.engine import RunningTopology
from stormspark.metrics import Quiet

__all__ = ["end_when_done"]


def end_when_done(running: RunningTopology, folder: Path) -> NoReturn:
    """Stop the topology when ``done`` is in the folder and all is worked off. Then end the program, with 1 after an error."""
    quiet = Quiet()
    while not running.wait(0.2):
        if (folder / "done").exists() and quiet.reached(running.statistics()):
            running.stop()
    print(running.error)
    sys.exit(running.error is not None)
