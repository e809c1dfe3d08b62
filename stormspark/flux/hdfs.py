"""Stand-ins for Storm's HDFS classes in Flux files (K10, K23). They have Java's setters, and make a `FileBolt`."""

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
    """The base class of file name formats. As in Java, a format also has the folder of the files."""

    path = "/storm"

    def with_path(self, path: str) -> Self:
        """Set the folder."""
        self.path = path
        return self

    def finished(self) -> Any:
        """Return the format itself, because `HdfsBolt` needs both its folder and its names."""
        return self

    def names(self) -> Callable[[TopologyContext, int, int], str]:
        """Return the function that names files."""
        raise NotImplementedError


class DefaultFileNameFormat(_Path):
    """The default format of file names: ``{prefix}{component}-{task}-{rotation}-{timestamp}{extension}``."""

    def __init__(self) -> None:
        self.prefix, self.extension = "", ".txt"

    def with_prefix(self, prefix: str) -> Self:
        """Set the beginning of file names."""
        self.prefix = prefix
        return self

    def with_extension(self, extension: str) -> Self:
        """Set the end of file names."""
        self.extension = extension
        return self

    def names(self) -> Callable[[TopologyContext, int, int], str]:
        """Return the function that names files."""
        return _FileNameFormat(self.prefix, self.extension)


class SimpleFileNameFormat(_Path):
    """A format of file names with ``$TIME``, ``$NUM``, ``$HOST``, ``$COMPONENT`` and ``$TASK``; by default ``$TIME.$NUM.txt``."""

    def __init__(self) -> None:
        self.name, self.time_format = "$TIME.$NUM.txt", "yyyyMMddHHmmss"

    def with_name(self, name: str) -> Self:
        """Set the pattern of the names, with its variables."""
        self.name = name
        return self

    def with_time_format(self, time_format: str) -> Self:
        """Set the format of the time. It may have Java's yyyy, yy, MM, dd, HH, mm, ss and SSS, and text in quotes."""
        _time_format(time_format)
        self.time_format = time_format
        return self

    def names(self) -> Callable[[TopologyContext, int, int], str]:
        """Return the function that names files."""
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
    """Convert a time format of Java to one of Python.

    >>> _time_format("yyyy-MM-dd'T'HHmm")
    '%Y-%m-%dT%H%M'
    >>> _time_format("HH''mm 'o''clock'")
    "%H'%M o'clock"
    """

    def python(found: re.Match[str]) -> str:
        if found["quoted"] is not None:
            # In Java, two quotes stand for one quote, inside and outside of quoted text.
            return found["quoted"].replace("''", "'") or "'"
        if found[0] not in _LETTERS:
            known = ", ".join(_LETTERS)
            msg = f"the time format {java!r} has {found[0]}; it may only have {known} and text in quotes"
            raise InvalidTopologyError(msg)
        return _LETTERS[found[0]]

    return re.sub(r"'(?P<quoted>(?:[^']|'')*)'|([A-Za-z])\2*", python, java.replace("%", "%%"))


class DelimitedRecordFormat(Unfinished):
    """A stand-in for Java's DelimitedRecordFormat: the values of a tuple, with a delimiter between them."""

    def __init__(self) -> None:
        self.field_delimiter, self.record_delimiter = ",", "\n"
        self.fields: Fields | None = None

    def with_fields(self, fields: Fields) -> Self:
        """Write only these fields."""
        self.fields = fields
        return self

    def with_field_delimiter(self, delimiter: str) -> Self:
        """Set the delimiter between values."""
        self.field_delimiter = delimiter
        return self

    def with_record_delimiter(self, delimiter: str) -> Self:
        """Set the delimiter that ends a record."""
        self.record_delimiter = delimiter
        return self

    def finished(self) -> _RecordFormat:
        """Return the format."""
        return _RecordFormat(self.field_delimiter, self.record_delimiter, self.fields)


class MoveFileAction(Unfinished):
    """A stand-in for Java's MoveFileAction, which moves each file that has ended."""

    destination = ""

    def to_destination(self, folder: str) -> Self:
        """Set the folder that files are moved to."""
        self.destination = folder
        return self

    def finished(self) -> _MoveFileAction:
        """Return the action. Raises `InvalidTopologyError` without a destination."""
        if not self.destination:
            msg = "MoveFileAction needs a config method toDestination with the folder"
            raise InvalidTopologyError(msg)
        return _MoveFileAction(self.destination)


def timed_rotation_policy(count: float, unit: TimeUnit) -> TimedRotationPolicy:
    """Return a policy that ends all files every ``count`` units."""
    return TimedRotationPolicy(count * unit.value)


class HdfsBolt(Unfinished):
    """A stand-in for Java's HdfsBolt. The bolt has the URL of the file system, and its file name format has the folder."""

    def __init__(self) -> None:
        self._url = ""
        self._names: _Path | None = None
        self._calls: list[Callable[[FileBolt], object]] = []

    def with_fs_url(self, url: str) -> Self:
        """Set the URL of the file system: ``hdfs://host:port``, or ``file:///``."""
        self._url = url
        return self

    def with_config_key(self, key: str) -> Self:
        """Do nothing, because Hadoop's settings come from Hadoop's own files."""
        return self

    def with_file_name_format(self, names: object) -> Self:
        """Set the folder and the names of files. Raises `InvalidTopologyError` for a format without a folder."""
        if not isinstance(names, _Path):
            msg = (
                f"withFileNameFormat needs a DefaultFileNameFormat or a SimpleFileNameFormat, got {names!r:.80}; with "
                f"names of your own, use stormspark.connectors.FileBolt"
            )
            raise InvalidTopologyError(msg)
        self._names = names
        return self

    def with_record_format(self, record: Callable[[Any], str | bytes]) -> Self:
        """Set the function that turns a tuple into a record."""
        return self._later(lambda bolt: bolt.with_record_format(record))

    def with_rotation_policy(self, policy: FileRotationPolicy) -> Self:
        """Set the policy that decides when a file ends."""
        return self._later(lambda bolt: bolt.with_rotation_policy(policy))

    def with_sync_policy(self, policy: SyncPolicy) -> Self:
        """Set the policy that decides when to sync and ack."""
        return self._later(lambda bolt: bolt.with_sync_policy(policy))

    def add_rotation_action(self, action: Callable[[str], Any]) -> Self:
        """Add an action for files that have ended."""
        return self._later(lambda bolt: bolt.add_rotation_action(action))

    def with_tick_tuple_interval_seconds(self, seconds: int) -> Self:
        """Sync at least every ``seconds``."""
        return self._later(lambda bolt: bolt.with_tick_tuple_interval_seconds(seconds))

    def with_retry_count(self, count: int) -> Self:
        """Set how many times a sync is tried."""
        return self._later(lambda bolt: bolt.with_retry_count(count))

    def with_max_open_files(self, count: int) -> Self:
        """Set how many files a task keeps open. To open one more, the task ends the file whose last tuple is the oldest."""
        return self._later(lambda bolt: bolt.with_max_open_files(count))

    def with_partitioner(self, partitioner: Callable[[Any], str]) -> Self:
        """Set the function that returns a tuple's folder. This folder is inside of the file name format's folder."""
        return self._later(lambda bolt: bolt.with_partitioner(partitioner))

    def finished(self) -> FileBolt:
        """Return the bolt. Raises `InvalidTopologyError` without a file name format, as Storm does."""
        if self._names is None:
            msg = "HdfsBolt needs a config method withFileNameFormat, which names the folder of the files"
            raise InvalidTopologyError(msg)
        bolt = FileBolt(_url(self._url, self._names.path)).with_file_name_format(self._names.names())
        for call in self._calls:
            call(bolt)
        return bolt

    def _later(self, call: Callable[[FileBolt], object]) -> Self:
        self._calls.append(call)
        return self


def _url(file_system: str, path: str) -> str:
    """Return the URL or path of a folder in a file system.

    >>> _url("hdfs://namenode:8020", "/data/"), _url("file:///", "/data"), _url("", "/data")
    ('hdfs://namenode:8020/data/', 'file:///data', '/data')
    """
    return (
        f"{file_system.rstrip('/')}/{path.lstrip('/')}"
        if "://" in file_system.rstrip("/")
        else (f"file:///{path.lstrip('/')}" if file_system else path)
    )
