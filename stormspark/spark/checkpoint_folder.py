"""A topology's checkpoint folder, in any place that Spark can write to.

<checkpoint>/stormspark/control.json    the control file, see `stormspark.checkpoint.control`
<checkpoint>/stormspark/driver-<id>     shows that a driver lives, see `stormspark.spark.fence`
<checkpoint>/stormspark/commands        commands for the driver, see `stormspark.checkpoint.commands`
<checkpoint>/stormspark/acker/journal   the durable acker's journal
<checkpoint>/stormspark/acker/records   Spark's checkpoint of the acker query, whose state has the open records
<checkpoint>/stormspark/acker/log       the acker's Delta table of an earlier stormspark, and
<checkpoint>/stormspark/acker/query     the checkpoint of its query; both are read once (`acker_upgrade`)
<checkpoint>/stormspark/state           the state table of a topology whose batches are transactions
<checkpoint>/dead-letters               the rows of sources that were given up, see `stormspark.checkpoint.dead_letters`
<checkpoint>/spark                      Spark's offsets and commits of the data query, which runs the topology
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from pyspark.sql import SparkSession

from stormspark.checkpoint.acker_journal import JournalFiles, LocalJournalFiles
from stormspark.checkpoint.commands import FOLDER as COMMANDS
from stormspark.checkpoint.control import ControlFile, LocalControlFile
from stormspark.checkpoint.dead_letters import (
    FOLDER,
    REPLAYS,
    LetterFiles,
    LetterTable,
    LocalLetterFiles,
    local_letters,
)
from stormspark.errors import CheckpointError
from stormspark.launcher import in_databricks, is_url, on_databricks
from stormspark.spark.acker_stream import COMMIT
from stormspark.spark.hadoop_folder import HadoopFolder, HadoopJournalFiles

__all__ = ["CheckpointFolder", "PlannedOffset", "local_path", "planned_offsets"]


def local_path(location: str) -> str | None:
    """Return the path of a checkpoint folder that is local; None for one at a URL.

    On Databricks, a path in a volume is none: its Spark reaches volumes by ``dbfs:`` alone (`in_databricks`).

    >>> local_path("file:/a%20b"), local_path("s3://bucket/c")
    ('/a b', None)
    """
    if on_databricks():
        location = in_databricks(location)
    if location.startswith("file:"):
        location = unquote(urlsplit(location).path)
    return None if is_url(location) else str(Path(location).absolute())


class PlannedOffset(NamedTuple):
    """What the offset log has of one source, as the source has written it, and the file in which that is."""

    file: str
    text: str

    def positions(self) -> dict[str, Any]:
        """Return the offset if it is one of stormspark's own sources. Raises `CheckpointError` if it is cut off."""
        try:
            found = json.loads(self.text)
        except ValueError:
            found = None
        if not isinstance(found, dict):
            what_to_do = _what_to_do(self.file)
            msg = (
                f"{self.file} is cut off: expected an offset in JSON, but got {self.text[:80]!r}{what_to_do}"
            )
            raise CheckpointError(msg)
        return found


def planned_offsets(session: SparkSession, checkpoint: str) -> list[PlannedOffset | None]:
    """Return the offsets at which the last batch ends that a query has planned, one per source, in the order of its plan.

    They are as the log has them, because nobody but a source knows what its own are like. An offset is None if the source has
    given nothing yet. The list is empty if there was no batch. Raises `CheckpointError` if the log can't be read.
    """
    place = f"{checkpoint}/offsets"
    try:
        folder = HadoopFolder(session, place)
        batches = [int(name) for name in folder.names() if name.isdecimal()]
        if not batches:
            return []
        place = f"{place}/{max(batches)}"
        text = folder.read(str(max(batches))).decode(errors="replace")
    except OSError as error:
        what_to_do = _what_to_do(place)
        msg = f"Spark's log of offsets {place} can't be read: {error}{what_to_do}"
        raise CheckpointError(msg) from error
    # The first two lines are the log's version and the batch's settings.
    version, *lines = text.split("\n")
    if version != "v1" and version:
        msg = (
            f"{place} is of version {version[:20]!r}, and of Spark's logs of offsets before Spark 4.2 only 'v1' is known: go on "
            f"with the Spark that wrote it, or begin with a new checkpoint folder"
        )
        raise CheckpointError(msg)
    if len(lines) < 2 or not all(lines):
        what_to_do = _what_to_do(place)
        msg = f"{place} is cut off: expected a version, settings and offsets in a line each, but got {text[:80]!r}{what_to_do}"
        raise CheckpointError(msg)
    return [None if offset == "-" else PlannedOffset(place, offset) for offset in lines[1:]]


def _what_to_do(file: str) -> str:
    """Return what helps against a file that Spark could not write whole."""
    folder, _, batch = file.rpartition("/")
    if not batch.isdecimal():
        return ""
    commits = folder.removesuffix("offsets") + "commits"
    return (
        f". Spark writes it before it runs batch {batch}, and a full disk or a host that dies can leave a part of it. If there "
        f"is no {commits}/{batch}, delete the file and .{batch}.crc beside it, and the batch is planned anew; otherwise take "
        f"the checkpoint from a copy, or begin with a new one"
    )


class CheckpointFolder:
    """The folder at ``location``, which is a local path or a URL of any file system that Spark knows."""

    def __init__(self, session: SparkSession, location: str) -> None:
        self._session = session
        local = local_path(location)
        self._local = local is not None
        self._location = local or (in_databricks(location) if on_databricks() else location).rstrip("/")

    def __str__(self) -> str:
        return self._location

    @property
    def local(self) -> str | None:
        """The folder's path if it is local; otherwise None."""
        return self._location if self._local else None

    @property
    def spark(self) -> str:
        """The location of Spark's checkpoint of the data query."""
        return self._for_spark("spark")

    def acker_journal(self, spool: Path) -> JournalFiles:
        """Return the files of the durable acker's journal. Raises OSError.

        ``spool`` is a local folder of this driver. If only Spark can reach the journal, the files are copied to this folder, and
        the acker query reads the copies.
        """
        folder = f"{self._location}/stormspark/acker/journal"
        return (
            LocalJournalFiles(Path(folder))
            if self._local
            else HadoopJournalFiles(self._session, folder, spool)
        )

    def dead_letters(self) -> LetterTable:
        """Return the table of dead letters. Raises OSError."""
        if self._local:
            return local_letters(self._location)
        place = f"{self._location}/{FOLDER}"
        replays = HadoopFolder(self._session, f"{place}/{REPLAYS}")
        return LetterTable(HadoopFolder(self._session, place), replays, place)

    @property
    def old_acker_table(self) -> str:
        """The location of an earlier stormspark's acker table, in the form that delta-rs needs."""
        return f"{self._location}/stormspark/acker/log"

    @property
    def old_acker_query(self) -> str:
        """The location of the checkpoint of an earlier stormspark's acker query."""
        return self._for_spark("stormspark/acker/query")

    @property
    def state_table(self) -> str:
        """The location of the state table, in the form that delta-rs needs."""
        return f"{self._location}/stormspark/state"

    @property
    def state_table_for_spark(self) -> str:
        """The location of the state table, in the form that Spark needs."""
        return self._for_spark("stormspark/state")

    @property
    def acker_query(self) -> str:
        """The location of the acker query's checkpoint."""
        return self._for_spark("stormspark/acker/records")

    def last_committed_batch(self) -> int:
        """Return the last batch of the data query that Spark has committed; -1 if there is none."""
        return self._last_commit(self.spark)

    def has_acker_state(self) -> bool:
        """Whether the acker query has ended a batch."""
        return self._last_commit(self.acker_query) >= 0

    def acker_position(self) -> int:
        """Return the number of the last commit of the journal that is in the acker query's state; 0 if there is none."""
        found = self.last_offset(self.acker_query)
        return 0 if found is None else int(found[COMMIT])

    def last_offset(self, checkpoint: str) -> Any:
        """Return the offset at which a query's last committed batch ended; None if there is no such batch.

        The query must have exactly one source.
        """
        batch = self._last_commit(checkpoint)
        if batch < 0:
            return None
        text = HadoopFolder(self._session, f"{checkpoint}/offsets").read(str(batch)).decode()
        return json.loads(text.splitlines()[-1])

    def has_old_acker(self) -> bool:
        """Whether an earlier stormspark has kept open rows in this folder."""
        return "_delta_log" in HadoopFolder(self._session, self._for_spark("stormspark/acker/log")).names()

    def forget_old_acker(self) -> None:
        """Delete the durable acker's files of an earlier stormspark."""
        folder = HadoopFolder(self._session, self._for_spark("stormspark/acker"))
        for name in ("log", "query"):
            folder.delete(name)

    def _last_commit(self, checkpoint: str) -> int:
        names = HadoopFolder(self._session, f"{checkpoint}/commits").names()
        return max((int(name) for name in names if name.isdecimal()), default=-1)

    def _for_spark(self, name: str) -> str:
        folder = f"{self._location}/{name}"
        # If a local path has no scheme, Spark looks for it in the cluster's default file system.
        return Path(folder).as_uri() if self._local else folder

    def commands(self) -> LetterFiles:
        """Return the files of commands for the driver. See `stormspark.checkpoint.commands`."""
        place = f"{self._location}/{COMMANDS}"
        return (
            LocalLetterFiles(Path(place), shared=True) if self._local else HadoopFolder(self._session, place)
        )

    def control_file(self) -> ControlFile:
        """Return the control file of this folder."""
        return (
            LocalControlFile(Path(self._location))
            if self._local
            else _HadoopControlFile(self._session, self._location)
        )


class _HadoopControlFile:
    """A control file at a URL."""

    _NAME = "control.json"

    def __init__(self, session: SparkSession, location: str) -> None:
        self._location = location
        self._folder = HadoopFolder(session, f"{location}/stormspark")

    def read(self) -> bytes | None:
        """Return the file's bytes, or None if there is no file."""
        return self._folder.read(self._NAME) if self._NAME in self._folder.names() else None

    def write(self, data: bytes) -> None:
        """Replace the file."""
        self._folder.write(self._NAME, data, replace=True)

    def read_beat(self, driver: str) -> bytes | None:
        """Return what a driver wrote last."""
        try:
            return self._folder.read(f"driver-{driver}")
        except FileNotFoundError:
            return None

    def write_beat(self, driver: str, data: bytes | None) -> None:
        """Write the driver's file, or delete it."""
        if data is None:
            self._folder.delete(f"driver-{driver}")
        else:
            self._folder.write(f"driver-{driver}", data, replace=True)

    def __str__(self) -> str:
        return self._location
