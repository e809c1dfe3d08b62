"""A bolt that does not return."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from stormspark import BasicBolt
from tests.conformance.components import EFFECTS


class Spins(BasicBolt):
    """Loops for ever on 13, the first ``times`` times that it comes."""

    def __init__(self, times: int) -> None:
        self.times = times

    def prepare(self, conf: Any, context: Any) -> None:
        self.marks = Path(conf[EFFECTS])

    def execute(self, tup: Any, collector: Any) -> None:
        if tup["n"] == 13:
            seen = len(list(self.marks.glob("spun-*")))
            if seen < self.times:
                (self.marks / f"spun-{seen}").touch()
                self.spin()

    def spin(self) -> None:
        """Compute for ever."""
        while True:
            pass


class Hangs(Spins):
    """Waits for ever on 13, the first time that it comes."""

    def __init__(self) -> None:
        super().__init__(1)

    def spin(self) -> None:
        """Wait for ever."""
        while True:
            time.sleep(60)
