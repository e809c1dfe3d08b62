"""The accounts: what was sent, what has come of it, and how every tree ended."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from stormspark.connectors.kafka.offsets import ID
from tests.faults.nothing_lost.topology import SIDES, log_files

__all__ = ["Effects", "check_trees", "committed_offsets", "newest"]


class Effects:
    """Reads what bolts write as it grows, and counts."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[Path, int] = {}
        #: The latest message that was seen.
        self.highest = -1
        #: By (side, n): how often the message was seen.
        self.seen: Counter[tuple[str, int]] = Counter()
        #: By n: in how many windows the pair was.
        self.windowed: Counter[int] = Counter()

    def update(self) -> int:
        """Read on; how many lines there have been so far, of both kinds."""
        for path in log_files(self._folder, "seen"):
            for line in self._new_lines(path):
                side, n = line.split()
                self.seen[side, int(n)] += 1
                self.highest = max(self.highest, int(n))
        for path in log_files(self._folder, "windowed"):
            self.windowed.update(int(line) for line in self._new_lines(path))
        return self.seen.total() + self.windowed.total()

    def _new_lines(self, path: Path) -> list[str]:
        start = self._read.get(path, 0)
        with path.open("rb") as file:
            file.seek(start)
            text = file.read()
        whole = text[: text.rfind(b"\n") + 1]
        self._read[path] = start + len(whole)
        return whole.decode().splitlines()

    def missing(self, numbers: Iterable[int], poison: frozenset[int]) -> tuple[list[str], list[int]]:
        """Messages that nothing has come of: those that were not seen, and pairs that were in no window."""
        pairs = list(numbers)
        unseen = [
            f"{side} {n}"
            for n in pairs
            for side in SIDES
            if (side, n) not in self.seen and not (side == SIDES[0] and n in poison)
        ]
        return unseen, [n for n in pairs if n not in self.windowed]

    def has_all_of(self, side: str, n: int, poison: frozenset[int]) -> bool:
        """Whether all has come of a message that there could."""
        return n in self.windowed and ((side, n) in self.seen or (side == SIDES[0] and n in poison))

    @property
    def distinct(self) -> int:
        """How many of all effects there could be are there."""
        return len(self.seen) + len(self.windowed)

    @property
    def duplicates(self) -> int:
        """Effects that are there once more than needed."""
        return self.seen.total() + self.windowed.total() - self.distinct


@dataclass
class _Life:
    """One life of a spout's task: a file's lines of one process."""

    emits: Counter[str] = field(default_factory=Counter)
    verdicts: Counter[str] = field(default_factory=Counter)


def check_trees(folder: Path) -> tuple[int, int, list[str]]:
    """Emits, verdicts, and what is wrong with them: a tree has one verdict, unless its task's process was killed.

    So a life may have no more verdicts of a message than it has emitted it, at any time; and the last life of each task, which
    ended in order, must have as many.
    """
    emits = verdicts = 0
    wrong: list[str] = []
    for path in log_files(folder, "trees"):
        lives: dict[str, _Life] = {}
        pid = ""
        for line in path.read_text().splitlines():
            pid, what, partition, offset = line.split()
            life = lives.setdefault(pid, _Life())
            if what == "open":
                continue
            message = f"{partition}/{offset}"
            if what == "emit":
                life.emits[message] += 1
                emits += 1
                continue
            life.verdicts[message] += 1
            verdicts += 1
            if life.verdicts[message] > life.emits[message]:
                wrong.append(f"{path.stem} in process {pid}: one {what} too many of {message}")
        if pid:
            last = lives[pid]
            open_trees = last.emits - last.verdicts
            wrong += [f"{path.stem} in process {pid}: no verdict for {message}" for message in open_trees]
    return emits, verdicts, wrong


def newest(log: Path) -> int:
    """The highest batch in one of Spark's logs, ``offsets`` or ``commits``; -1 where there is none."""
    try:
        names = os.listdir(log)
    except FileNotFoundError:
        return -1
    return max((int(name) for name in names if name.isdigit()), default=-1)


def committed_offsets(checkpoint: Path) -> dict[str, dict[int, int]]:
    """By topic and partition, up to where Spark has committed batches, as the data query's checkpoint says."""
    batch = newest(checkpoint / "spark" / "commits")
    if batch < 0:
        return {}
    found: dict[str, dict[int, int]] = {}
    for line in (checkpoint / "spark" / "offsets" / str(batch)).read_text().splitlines():
        offsets = json.loads(line) if line.startswith("{") else None
        if isinstance(offsets, dict):
            for topic, partitions in offsets.items():
                positions = dict(partitions) if isinstance(partitions, dict) else {}
                positions.pop(ID, None)  # the topic's own
                if positions and all(key.isdigit() for key in positions):
                    found[topic] = {int(key): offset for key, offset in positions.items()}
    return found
