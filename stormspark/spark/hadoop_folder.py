"""Gives the driver access to a folder at a URL of any file system that Spark knows. A file appears whole, or not at all."""

from __future__ import annotations

import contextlib
import errno
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from stormspark.checkpoint.acker_journal import LocalJournalFiles
from stormspark.launcher import is_url
from stormspark.spark.versions import bare_manager, checkpoint_managers

__all__ = ["BARE_MANAGER", "MANAGER", "HadoopFolder", "HadoopJournalFiles"]

#: The setting for the class with which Spark writes the files of a checkpoint, and the class that a local session of stormspark
#: has, because it is quick for local folders. This class renames files. If there is a file already, HDFS and S3 rename nothing,
#: and Spark takes that for success. Then a control file would stay as it was for ever.
MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
BARE_MANAGER = bare_manager()


class HadoopFolder:
    """A folder at a URL. Each method may raise OSError. A ``name`` is the name of a file directly in the folder."""

    def __init__(self, session: SparkSession, location: str) -> None:
        self.location = location
        jvm: Any = session.sparkContext._jvm
        self._path_class = jvm.org.apache.hadoop.fs.Path
        self._conf = session._jsparkSession.sessionState().newHadoopConf()
        self._folder = self._path_class(location)
        self._made = False
        managers = checkpoint_managers(jvm)
        elsewhere = is_url(location) and not location.startswith("file:")
        self._files: Any = None
        if elsewhere and self._conf.get(MANAGER) == BARE_MANAGER:
            self._conf.unset(MANAGER)
            # Some file systems only work with the class for local folders.
            with contextlib.suppress(Py4JJavaError):
                self._files = managers.create(self._folder, self._conf)
            self._conf.set(MANAGER, BARE_MANAGER)
        with _os_errors():
            self._files = self._files or managers.create(self._folder, self._conf)
        #: Whether a file that is to be replaced has to be deleted first.
        self._deletes = elsewhere and self._files.getClass().getName() == BARE_MANAGER

    def names(self) -> list[str]:
        """Return the names of the files in the folder; an empty list if there is no folder."""
        with _os_errors():
            if not self._files.exists(self._folder):
                return []
            return [status.getPath().getName() for status in self._files.list(self._folder)]

    def read(self, name: str) -> bytes:
        """Return a file's bytes. Raises FileNotFoundError."""
        with _os_errors():
            stream = self._files.open(self._path(name))
            try:
                return bytes(stream.readAllBytes())
            finally:
                stream.close()

    def write(self, name: str, data: bytes, *, replace: bool) -> None:
        """Write a file, whole or not at all. Without ``replace``, raises FileExistsError if there is one already."""
        with _os_errors():
            if not self._made:
                self._files.mkdirs(self._folder)
                self._made = True
            path = self._path(name)
            if not replace and self._files.exists(path):
                raise FileExistsError(errno.EEXIST, "it exists already", path.toString())
            if replace and self._deletes:
                self._files.delete(path)
            stream = self._files.createAtomic(path, replace)
            try:
                stream.write(data)
                stream.close()
            except BaseException:
                with contextlib.suppress(Py4JJavaError):
                    stream.cancel()
                raise

    def delete(self, name: str) -> None:
        """Delete a file, or a folder with everything in it, if it exists."""
        with _os_errors():
            self._files.delete(self._path(name))

    def _path(self, name: str) -> Any:
        return self._path_class(f"{self.location}/{name}")


class HadoopJournalFiles:
    """The durable acker's journal in a `HadoopFolder` at ``location``.

    Spark's Python sources can't read such a folder. So this class copies the journal's files to ``spool``, a local folder, and
    the acker query reads the copies.
    """

    def __init__(self, session: SparkSession, location: str, spool: Path) -> None:
        self._remote, self._local = HadoopFolder(session, location), LocalJournalFiles(spool)
        self.folder = spool
        shutil.rmtree(spool, ignore_errors=True)
        for number in self.numbers():
            self.read(number)

    def numbers(self) -> list[int]:
        """See `JournalFiles`."""
        names = (name.removesuffix(".arrow") for name in self._remote.names())
        return sorted(int(name) for name in names if name.isdecimal())

    def read(self, number: int) -> bytes:
        """See `JournalFiles`. The file is in the spool after this, even if an earlier `add` wrote only the remote file."""
        data = self._remote.read(f"{number}.arrow")
        with contextlib.suppress(FileExistsError):
            self._local.add(number, data)
        return data

    def add(self, number: int, data: bytes) -> None:
        """See `JournalFiles`."""
        self._remote.write(f"{number}.arrow", data, replace=False)
        self._local.add(number, data)

    def delete(self, numbers: Iterable[int]) -> None:
        """See `JournalFiles`."""
        for number in numbers:
            self._remote.delete(f"{number}.arrow")
            self._local.delete([number])

    def __str__(self) -> str:
        return self._remote.location


@contextmanager
def _os_errors() -> Iterator[None]:
    try:
        yield
    except Py4JJavaError as error:
        java = error.java_exception
        if java.getClass().getSimpleName() == "InvocationTargetException" and java.getCause() is not None:
            java = java.getCause()  # Spark 4.0 makes the class by reflection, and hands this on
        kind = java.getClass().getSimpleName()
        if kind in ("FileNotFoundException", "NoSuchFileException"):
            raise FileNotFoundError(errno.ENOENT, str(java)) from error
        if kind.startswith("FileAlreadyExists"):
            raise FileExistsError(errno.EEXIST, str(java)) from error
        raise OSError(str(java)) from error
