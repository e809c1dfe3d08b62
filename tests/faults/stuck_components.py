"""A bolt that does not return."""

from __future__ import annotations

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
                while True:
                    pass
