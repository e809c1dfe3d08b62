"""Compaction of a state table: chooses files to merge, and merges them in small steps.

The files of one batch are a run. A merge turns `FAN_IN` neighbouring runs of about the same size into one run. So a row is
written again about log(keys / changes per batch) times, where the base of the logarithm is `FAN_IN`. And the number of runs stays
bounded, however old the topology is. A merge writes its files over many steps, and a smaller merge may begin and end meanwhile.
Nobody sees the new files until one commit puts them in the place of the old ones. So steps need not be recorded: if the driver
dies before the commit, only the work of the merge is lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from operator import attrgetter

from stormspark.checkpoint.state_files import FileDescription, Folder, RunWriter, Wanted, read_file
from stormspark.checkpoint.state_merge import merged
from stormspark.extras import pyarrow as pa

__all__ = ["FAN_IN", "Merge", "Run", "neighbours", "runs_of", "streams"]

FAN_IN = 8
#: A merge is worth while if its largest run has at most twice as many rows as its other runs have on average. If there are more
#: runs than `_MANY_RUNS`, the largest run may have as many rows as the others together.
_MANY_RUNS = 4 * FAN_IN


@dataclass(frozen=True)
class Run:
    """The files of one batch or of one merge. ``batches`` are the first and the last batch whose changes are in the files."""

    batches: tuple[int, int]
    files: tuple[FileDescription, ...]

    @property
    def rows(self) -> int:
        """The number of rows in all files."""
        return sum(file.rows for file in self.files)


def runs_of(files: Sequence[FileDescription]) -> list[Run]:
    """Sort files into runs, oldest first.

    A merge takes neighbouring runs and skips none between them, so the batches of two runs never overlap.
    """
    ordered = sorted(files, key=attrgetter("batches", "path"))
    return [Run(batches, tuple(found)) for batches, found in groupby(ordered, attrgetter("batches"))]


def neighbours(runs: Sequence[Run | None]) -> tuple[int, int] | None:
    """Return which runs to merge next: the index of the first run and the index after the last; None if no merge is worth while.

    Of several merges, the one with the fewest rows comes first. ``runs`` are sorted, oldest first. None among them stands for a
    run that is already being merged.
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
    """Return streams of the wanted rows of files, for `merged`, newest first. All files of a run are one stream."""
    ordered = sorted(files, key=lambda file: (file.batches[1], file.path), reverse=True)
    found: list[Iterator[pa.RecordBatch]] = []
    for _, run in groupby(ordered, attrgetter("run")):
        parts = sorted(run, key=attrgetter("path"))
        found.append(chain.from_iterable(read_file(folder, part, wanted) for part in parts))
    return found


class Merge:
    """A merge of runs that has begun. ``horizon`` is the oldest batch that can still be restored afterwards."""

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
        """The beginning of the names of the merge's files."""
        return self._writer.name

    def step(self) -> list[FileDescription] | None:
        """Merge at most a few thousand rows per call. Return the files once all of them are written, and None before that."""
        rows = next(self._rows, None)
        if rows is None:
            return self._writer.close(self._time)
        self._writer.write(pa.Table.from_batches([rows]))
        return None

    def abandon(self) -> None:
        """Stop the merge. Nobody uses the files that it has written, so `StateTable.vacuum` deletes them."""
        self._writer.abandon()
