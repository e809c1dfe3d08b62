"""Storm's HDFS classes as Flux files make them (K10, K23): `FileBolt`, told by Java's setters where and how to write."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Self

from stormspark.api import Fields, TopologyContext
from stormspark.connectors import DefaultFileNameFormat as _FileNameFormat
from stormspark.connectors import DelimitedRecordFormat as _RecordFormat
from stormspark.connectors import FileBolt, FileRotationPolicy, SyncPolicy, TimedRotationPolicy
from stormspark.connectors import MoveFileAction as _MoveFileAction
from stormspark.errors import InvalidTopologyError
from stormspark.flux.java_values import TimeUnit
from stormspark.flux.objects import Unfinished


class _Path(Unfinished):
    """A file name format that also says in which folder, as Java's do."""

    path = "/storm"

    def with_path(self, path: str) -> Self:
        """The folder."""
        self.path = path
        return self

    def finished(self) -> Any:
        """Itself: `HdfsBolt` asks it for both."""
        return self

    def names(self) -> Callable[[TopologyContext, int, int], str]:
        """The names of files."""
        raise NotImplementedError


class DefaultFileNameFormat(_Path):
    """``{prefix}{component}-{task}-{rotation}-{timestamp}{extension}``."""

    def __init__(self) -> None:
        self.prefix, self.extension = "", ".txt"

    def with_prefix(self, prefix: str) -> Self:
        """What names begin with."""
        self.prefix = prefix
        return self

    def with_extension(self, extension: str) -> Self:
        """What names end with."""
        self.extension = extension
        return self

    def names(self) -> Callable[[TopologyContext, int, int], str]:
        """By that format."""
        return _FileNameFormat(self.prefix, self.extension)


class SimpleFileNameFormat(_Path):
    """A name with ``$TIME``, ``$NUM``, ``$HOST``, ``$COMPONENT`` and ``$TASK`` in it; by default ``$TIME.$NUM.txt``."""

    def __init__(self) -> None:
        self.name, self.time_format = "$TIME.$NUM.txt", "yyyyMMddHHmmss"

    def with_name(self, name: str) -> Self:
        """The name."""
        self.name = name
        return self

    def with_time_format(self, time_format: str) -> Self:
        """How the time is written, in Java's letters: y, M, d, H, m, s and S."""
        _time_format(time_format)
        self.time_format = time_format
        return self

    def names(self) -> Callable[[TopologyContext, int, int], str]:
        """By that name."""
        return _SimpleNames(self.name, _time_format(self.time_format))


class _SimpleNames:
    def __init__(self, name: str, time_format: str) -> None:
        self._name, self._time_format = name, time_format

    def __call__(self, context: TopologyContext, rotation: int, timestamp_ms: int) -> str:
        seconds, ms = divmod(timestamp_ms, 1000)
        time = datetime.fromtimestamp(seconds, UTC).astimezone()
        values = {
            "$TIME": time.strftime(self._time_format).replace("\0", f"{ms:03}"),
            "$NUM": str(rotation),
            "$HOST": socket.gethostname(),
            "$COMPONENT": context.this_component_id,
            "$TASK": str(context.this_task_id),
        }
        return re.sub(r"\$[A-Z]+", lambda found: values.get(found[0], found[0]), self._name)


_LETTERS = {"yyyy": "%Y", "yy": "%y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S", "SSS": "\0"}


def _time_format(java: str) -> str:
    """Python's format for Java's.

    >>> _time_format("yyyy-MM-dd'T'HHmm")
    '%Y-%m-%dT%H%M'
    """

    def python(found: re.Match[str]) -> str:
        if found["quoted"] is not None:
            return found["quoted"].replace("%", "%%")
        if found[0] not in _LETTERS:
            known = ", ".join(_LETTERS)
            msg = f"the time format {java!r} has {found[0]}; here there are {known} and text in quotes (K10)"
            raise InvalidTopologyError(msg)
        return _LETTERS[found[0]]

    return re.sub(r"'(?P<quoted>[^']*)'|([A-Za-z])\2*", python, java.replace("%", "%%"))


class DelimitedRecordFormat(Unfinished):
    """The values with a delimiter between them."""

    def __init__(self) -> None:
        self.field_delimiter, self.record_delimiter = ",", "\n"
        self.fields: Fields | None = None

    def with_fields(self, fields: Fields) -> Self:
        """Only these."""
        self.fields = fields
        return self

    def with_field_delimiter(self, delimiter: str) -> Self:
        """Between values."""
        self.field_delimiter = delimiter
        return self

    def with_record_delimiter(self, delimiter: str) -> Self:
        """Behind a record."""
        self.record_delimiter = delimiter
        return self

    def finished(self) -> _RecordFormat:
        """The format."""
        return _RecordFormat(self.field_delimiter, self.record_delimiter, self.fields)


class MoveFileAction(Unfinished):
    """Moves files that are done."""

    destination = ""

    def to_destination(self, folder: str) -> Self:
        """To this folder."""
        self.destination = folder
        return self

    def finished(self) -> _MoveFileAction:
        """The action; raises `InvalidTopologyError` without a destination."""
        if not self.destination:
            msg = "MoveFileAction needs a config method toDestination with the folder (K10)"
            raise InvalidTopologyError(msg)
        return _MoveFileAction(self.destination)


def timed_rotation_policy(count: float, unit: TimeUnit) -> TimedRotationPolicy:
    """All files are done every ``count`` units."""
    return TimedRotationPolicy(count * unit.value)


class HdfsBolt(Unfinished):
    """Java's HdfsBolt: the URL of the file system is its own, the folder the file name format's."""

    def __init__(self) -> None:
        self._url = ""
        self._names: _Path | None = None
        self._calls: list[Callable[[FileBolt], object]] = []

    def with_fs_url(self, url: str) -> Self:
        """Where the file system is: ``hdfs://host:port``, or ``file:///``."""
        self._url = url
        return self

    def with_config_key(self, key: str) -> Self:
        """Changes nothing here: Hadoop's settings are those of its own files."""
        return self

    def with_file_name_format(self, names: object) -> Self:
        """Folder and names of files; raises `InvalidTopologyError` for something without a folder."""
        if not isinstance(names, _Path):
            msg = (
                f"withFileNameFormat takes a DefaultFileNameFormat or a SimpleFileNameFormat, got {names!r:.80} (K10); with "
                f"names of your own, use stormspark.connectors.FileBolt"
            )
            raise InvalidTopologyError(msg)
        self._names = names
        return self

    def with_record_format(self, record: Callable[[Any], str | bytes]) -> Self:
        """Who makes a record of a tuple."""
        return self._later(lambda bolt: bolt.with_record_format(record))

    def with_rotation_policy(self, policy: FileRotationPolicy) -> Self:
        """When a file is done."""
        return self._later(lambda bolt: bolt.with_rotation_policy(policy))

    def with_sync_policy(self, policy: SyncPolicy) -> Self:
        """When to sync and ack."""
        return self._later(lambda bolt: bolt.with_sync_policy(policy))

    def add_rotation_action(self, action: Callable[[str], Any]) -> Self:
        """What becomes of a file that is done."""
        return self._later(lambda bolt: bolt.add_rotation_action(action))

    def with_tick_tuple_interval_seconds(self, seconds: int) -> Self:
        """Sync at least so often."""
        return self._later(lambda bolt: bolt.with_tick_tuple_interval_seconds(seconds))

    def with_retry_count(self, count: int) -> Self:
        """How often a sync is tried."""
        return self._later(lambda bolt: bolt.with_retry_count(count))

    def with_max_open_files(self, count: int) -> Self:
        """One file more ends the one that was longest without a tuple."""
        return self._later(lambda bolt: bolt.with_max_open_files(count))

    def with_partitioner(self, partitioner: Callable[[Any], str]) -> Self:
        """Who gives the folder below the path that a tuple's file is in."""
        return self._later(lambda bolt: bolt.with_partitioner(partitioner))

    def finished(self) -> FileBolt:
        """The bolt; raises `InvalidTopologyError` where Storm's would: without a file name format."""
        if self._names is None:
            msg = "HdfsBolt needs a config method withFileNameFormat (K10): it says which folder files are in"
            raise InvalidTopologyError(msg)
        bolt = FileBolt(_url(self._url, self._names.path)).with_file_name_format(self._names.names())
        for call in self._calls:
            call(bolt)
        return bolt

    def _later(self, call: Callable[[FileBolt], object]) -> Self:
        self._calls.append(call)
        return self


def _url(file_system: str, path: str) -> str:
    """The folder in its file system.

    >>> _url("hdfs://namenode:8020", "/data/"), _url("file:///", "/data"), _url("", "/data")
    ('hdfs://namenode:8020/data/', 'file:///data', '/data')
    """
    return (
        f"{file_system.rstrip('/')}/{path.lstrip('/')}"
        if "://" in file_system.rstrip("/")
        else (f"file:///{path.lstrip('/')}" if file_system else path)
    )
