"""A topology's checkpoint folder, wherever Spark can write one.

<checkpoint>/stormspark/control.json    ours: see `stormspark.checkpoint.control`
<checkpoint>/stormspark/acker/log       the durable acker's table
<checkpoint>/stormspark/acker/query     Spark's checkpoint of the acker query
<checkpoint>/stormspark/state           the state table of a topology whose batches are transactions
<checkpoint>/spark                      Spark's offsets and commits of the data query
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from stormspark.checkpoint.control import ControlFile, LocalControlFile

__all__ = ["CheckpointFolder"]


class CheckpointFolder:
    """``location`` is a local path or a URL of any file system that Spark knows."""

    def __init__(self, session: SparkSession, location: str) -> None:
        self._session = session
        if location.startswith("file:"):
            location = unquote(urlsplit(location).path)
        self._local = re.match(r"\w[\w+.-]+:", location) is None
        self._location = str(Path(location).absolute()) if self._local else location.rstrip("/")

    def __str__(self) -> str:
        return self._location

    @property
    def local(self) -> str | None:
        """Its path if it is a local one."""
        return self._location if self._local else None

    @property
    def spark(self) -> str:
        """The location of the query's own checkpoint."""
        return self._for_spark("spark")

    @property
    def acker_table(self) -> str:
        """The location of the durable acker's table, for delta-rs and for Spark."""
        return f"{self._location}/stormspark/acker/log"

    @property
    def state_table(self) -> str:
        """The location of the state table, for delta-rs."""
        return f"{self._location}/stormspark/state"

    @property
    def state_table_for_spark(self) -> str:
        """The location of the state table as Spark has it."""
        return self._for_spark("stormspark/state")

    @property
    def acker_query(self) -> str:
        """The location of the acker query's checkpoint."""
        return self._for_spark("stormspark/acker/query")

    def last_committed_batch(self) -> int:
        """The last batch of the data query that Spark has committed; -1 where there is none."""
        return self._last_commit(self.spark)

    def has_acker_state(self) -> bool:
        """Whether the acker query has ended a batch."""
        return self._last_commit(self.acker_query) >= 0

    def _last_commit(self, checkpoint: str) -> int:
        jvm: Any = self._session.sparkContext._jvm
        conf = self._session._jsparkSession.sessionState().newHadoopConf()
        path = jvm.org.apache.hadoop.fs.Path(f"{checkpoint}/commits")
        try:
            files = path.getFileSystem(conf)
            found = files.listStatus(path) if files.exists(path) else []
        except Py4JJavaError as error:
            raise OSError(str(error.java_exception)) from error
        names = [status.getPath().getName() for status in found]
        return max((int(name) for name in names if name.isdecimal()), default=-1)

    def _for_spark(self, name: str) -> str:
        folder = f"{self._location}/{name}"
        # A local path without a scheme would be looked for in the cluster's default file system.
        return Path(folder).as_uri() if self._local else folder

    def control_file(self) -> ControlFile:
        """The control file of this folder."""
        return (
            LocalControlFile(Path(self._location))
            if self._local
            else _HadoopControlFile(self._session, self._location)
        )


class _HadoopControlFile:
    """The control file behind a URL; written as Spark writes its own logs there, whole or not at all."""

    def __init__(self, session: SparkSession, location: str) -> None:
        self._location = location
        jvm: Any = session.sparkContext._jvm
        conf = session._jsparkSession.sessionState().newHadoopConf()
        self._path = jvm.org.apache.hadoop.fs.Path(f"{location}/stormspark/control.json")
        streaming = jvm.org.apache.spark.sql.execution.streaming.checkpointing
        self._files = streaming.CheckpointFileManager.create(self._path.getParent(), conf)

    def read(self) -> bytes | None:
        """The file's bytes, or None where there is none."""
        try:
            if not self._files.exists(self._path):
                return None
            stream = self._files.open(self._path)
            try:
                return bytes(stream.readAllBytes())
            finally:
                stream.close()
        except Py4JJavaError as error:
            raise OSError(str(error.java_exception)) from error

    def write(self, data: bytes) -> None:
        """Replace the file."""
        try:
            self._files.mkdirs(self._path.getParent())
            stream = self._files.createAtomic(self._path, True)
            stream.write(data)
            stream.close()
        except Py4JJavaError as error:
            raise OSError(str(error.java_exception)) from error

    def __str__(self) -> str:
        return self._location
