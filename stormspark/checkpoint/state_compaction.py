"""Which runs of a state table are merged, and a merge that goes on in small steps.

The files of one batch are a run, and so is what a merge made of neighbouring ones. A merge takes so many neighbours (`FAN_IN`) of
about the same size, so a row is written again about log(keys / changes a batch) times, to the base
``FAN_IN``, and the number of files stays in the same bounds, however large the state and however old the
topology is. A merge writes its files over many steps, and small ones overtake it; nobody sees them before
one commit puts them in the place of all that they were made of. So a step needs no record, and a driver that
dies in between has lost some work.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from operator import attrgetter

import pyarrow as pa

from stormspark.checkpoint.state_files import FileDescription, Folder, RunWriter, Wanted, read_file
from stormspark.checkpoint.state_merge import merged

__all__ = ["FAN_IN", "Merge", "Run", "neighbours", "runs_of", "streams"]

FAN_IN = 8
#: With more runs than that a merge is worth while if its largest part is no larger than all the others.
_MANY_RUNS = 4 * FAN_IN


@dataclass(frozen=True)
class Run:
    """The files of a batch, or of a merge; ``batches`` are the first and the last."""

    batches: tuple[int, int]
    files: tuple[FileDescription, ...]

    @property
    def rows(self) -> int:
        """In all files."""
        return sum(file.rows for file in self.files)


def runs_of(files: Sequence[FileDescription]) -> list[Run]:
    """The runs that files make up, oldest first.

    Merges take neighbours and leave none of them, so the batches of two runs never overlap.
    """
    ordered = sorted(files, key=attrgetter("batches", "path"))
    return [Run(batches, tuple(found)) for batches, found in groupby(ordered, attrgetter("batches"))]


def neighbours(runs: Sequence[Run | None]) -> tuple[int, int] | None:
    """Which runs to merge next, from one index to before another; None where nothing is worth while.

    None among ``runs``, which are oldest first, stands for a run that is being merged.
    """
    best: tuple[int, int] | None = None
    least = 0
    for begin in range(len(runs) - FAN_IN + 1):
        rows = [run.rows for run in runs[begin : begin + FAN_IN] if run is not None]
        total, largest = sum(rows), max(rows, default=0)
        others = total - largest
        near = 2 * others / (FAN_IN - 1) if len(runs) <= _MANY_RUNS else others
        if len(rows) == FAN_IN and largest <= near and (best is None or total < least):
            best, least = (begin, begin + FAN_IN), total
    return best


def streams(
    folder: Folder, files: Sequence[FileDescription], wanted: Wanted
) -> list[Iterator[pa.RecordBatch]]:
    """The wanted rows of files as `merged` takes them, newest first: a run of compaction is one stream."""
    ordered = sorted(files, key=lambda file: (file.batches[1], file.path), reverse=True)
    found: list[Iterator[pa.RecordBatch]] = []
    for _, run in groupby(ordered, attrgetter("run")):
        parts = sorted(run, key=attrgetter("path"))
        found.append(chain.from_iterable(read_file(folder, part, wanted) for part in parts))
    return found


class Merge:
    """Runs on their way to be one. ``horizon`` is the oldest batch that restores may ask for afterwards."""

    def __init__(
        self, folder: Folder, runs: Sequence[Run], horizon: int, nothing_older: bool, generation: int
    ) -> None:
        self.inputs = tuple(file for run in runs for file in run.files)
        self.horizon = horizon
        self.rows = sum(run.rows for run in runs)
        self._writer = RunWriter(folder, (runs[0].batches[0], runs[-1].batches[1]), generation)
        self._rows = merged(streams(folder, self.inputs, Wanted()), horizon, drop_deleted=nothing_older)
        self._time = max(file.time for file in self.inputs)

    @property
    def name(self) -> str:
        """What the names of its files begin with."""
        return self._writer.name

    def step(self) -> list[FileDescription] | None:
        """Merge some thousand rows; its files once all are there."""
        rows = next(self._rows, None)
        if rows is None:
            return self._writer.close(self._time)
        self._writer.write(pa.Table.from_batches([rows]))
        return None

    def abandon(self) -> None:
        """Stop: what was written is nobody's."""
        self._writer.abandon()
