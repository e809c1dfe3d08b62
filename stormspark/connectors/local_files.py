"""Reads the files of a folder as Spark reads them, but without Spark, for `FileSpout` on the local engine."""

from __future__ import annotations

import bz2
import csv
import fnmatch
import glob
import gzip
import json
import logging
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import IO, Any

from stormspark.api import SourceProgress
from stormspark.connectors.schema_text import Column, read_schema
from stormspark.errors import InvalidTopologyError

__all__ = ["LocalFiles"]

_log = logging.getLogger(__name__)

Row = tuple[Any, ...]

#: `poll` yields at most this many rows. While at least as many rows wait in the topology, `poll` yields none.
_PIECE = 4096
#: File systems' clocks tick only every few ms, so two changes of a folder may have the same time. So if a folder was listed less
#: than this many ns after its last change, it is listed again.
_FOLDER_TICK_NS = 50_000_000
_TRUE = ("true", "1", "yes")


class LocalFiles:
    """A `LocalSource` that returns each row of every file in ``path`` once, including files that appear there later.

    ``path`` is a folder, a file or a pattern. As in Spark, files whose names begin with a dot or an underscore are skipped. New
    files are read in the order of their modification times, then of their names. A file is one partition, so all of its rows go
    to one task, in order. The list of files that have been read does not outlive the topology.

    Raises `InvalidTopologyError` for a folder or file that does not exist, and if only Spark can read these files with these
    options.
    """

    def __init__(self, path: str, format: str, schema: str | None, options: Mapping[str, Any]) -> None:
        self._path = path.removeprefix("file://") if path.startswith("file:///") else path
        self._glob = str(options.get("pathGlobFilter", "*"))
        self._read = _reader(format, schema, options)
        if "://" in self._path:
            _refuse(f"reads only files of this host, got {path}")
        if not glob.has_magic(self._path) and not os.path.exists(self._path):
            _refuse(f"finds no file or folder {path}")
        self._seen: set[str] = set()
        self._found: list[str] = []  # the files to read; the next file is the last of the list
        self._listed_at = -1
        self._number = -1
        self._file = ""
        self._rows: Iterator[Row] | None = None
        self._waiting = 0
        self._looks_again = True

    def prepare_available_now(self) -> None:
        """List the files now, and never again."""
        self._look()
        self._looks_again = False

    def is_done(self) -> bool:
        """Return whether all files that were found are read."""
        return self._rows is None and not self._found

    def poll(self) -> Iterable[tuple[int, Sequence[Row]]]:
        """Yield rows of the next files, unless many rows wait already."""
        if self._waiting >= _PIECE:
            return
        if self._looks_again:
            self._look()
        left = _PIECE
        while left > 0 and (self._rows is not None or self._found):
            if self._rows is None:
                self._number, self._file = self._number + 1, self._found.pop()
                self._rows = self._read(self._file)
            rows = self._next_rows(left)
            left -= len(rows)
            if rows:
                yield self._number, rows

    def told(self, progress: SourceProgress) -> None:
        """Remember how many rows still wait in the topology."""
        self._waiting = progress.waiting

    def close(self) -> None:
        """Close the file that is being read."""
        self._rows = None

    def _next_rows(self, most: int) -> list[Row]:
        assert self._rows is not None
        try:
            rows = list(islice(self._rows, most))
        except FileNotFoundError:
            _log.warning("%s was deleted before it was read", self._file)
            rows = []
        if len(rows) < most:
            self._rows = None
        return rows

    def _look(self) -> None:
        """Find new files. A folder that has not changed is not listed again, because this method runs very often."""
        if os.path.isdir(self._path):
            changed = os.stat(self._path).st_mtime_ns
            if changed == self._listed_at:
                return
            with os.scandir(self._path) as entries:
                paths = [entry.path for entry in entries]
            self._listed_at = changed if time.time_ns() - changed > _FOLDER_TICK_NS else -1
        else:
            paths = glob.glob(self._path)
        new = [path for path in paths if path not in self._seen and self._is_data(path)]
        self._seen.update(new)
        self._found = sorted(new, key=lambda path: (_changed(path), path), reverse=True) + self._found

    def _is_data(self, path: str) -> bool:
        name = os.path.basename(path)
        return not name.startswith((".", "_")) and fnmatch.fnmatch(name, self._glob) and os.path.isfile(path)


def _refuse(problem: str) -> None:
    msg = f"FileSpout on the local engine {problem}; run the topology on Spark, or mock the spout"
    raise InvalidTopologyError(msg)


def _changed(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0


def _reader(format: str, schema: str | None, options: Mapping[str, Any]) -> Callable[[str], Iterator[Row]]:
    readers = {"text": _text, "json": _json, "csv": _csv, "parquet": _parquet}
    if format not in readers:
        _refuse(f"reads files of the formats {', '.join(readers)}, got {format!r}")
    known = {"maxFilesPerTrigger", "pathGlobFilter"} | (
        {"header", "sep", "delimiter"} if format == "csv" else set()
    )
    unknown = sorted(set(options) - known)
    if unknown:
        _refuse(
            f"does not know the option {unknown[0]!r} for format {format!r}; it knows {', '.join(sorted(known))}"
        )
    columns = read_schema(schema) if schema is not None else []
    return lambda path: readers[format](path, columns, options)


def _lines(path: str) -> Iterator[str]:
    """Yield the lines as Spark does. A line ends with LF, CR LF or CR, and the last line may have no such end."""
    opener: Callable[..., IO[str]] = {".gz": gzip.open, ".bz2": bz2.open}.get(Path(path).suffix, open)  # type: ignore[assignment]
    with opener(path, "rt", encoding="utf-8", errors="replace") as file:
        for line in file:
            yield line.removesuffix("\n")


def _text(path: str, columns: Sequence[Column], options: Mapping[str, Any]) -> Iterator[Row]:
    return ((line,) for line in _lines(path))


def _json(path: str, columns: Sequence[Column], options: Mapping[str, Any]) -> Iterator[Row]:
    """Read one object per line. A value that does not fit its column becomes None.

    If a line is no object, all values of its row are None. Empty lines are skipped.
    """
    for line in _lines(path):
        if line.strip():
            try:
                values = json.loads(line)
            except ValueError:
                values = {}
            get = values.get if isinstance(values, dict) else {}.get
            yield tuple(column.of_json(get(column.name)) for column in columns)


def _csv(path: str, columns: Sequence[Column], options: Mapping[str, Any]) -> Iterator[Row]:
    """Read values by position. A value that is empty or missing, or that does not fit its column, becomes None."""
    separator = str(options.get("sep", options.get("delimiter", ",")))
    lines = _lines(path)
    if str(options.get("header", "")).lower() in _TRUE:
        next(lines, None)
    for line in lines:
        if line.strip():
            texts = next(csv.reader([line], delimiter=separator, escapechar="\\", doublequote=False))
            texts += [""] * (len(columns) - len(texts))
            yield tuple(column.of_text(text) for column, text in zip(columns, texts, strict=False))


def _parquet(path: str, columns: Sequence[Column], options: Mapping[str, Any]) -> Iterator[Row]:
    """Read columns by name. A column that the file does not have becomes None."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        there = [column.name for column in columns if column.name in file.schema_arrow.names]
        for batch in file.iter_batches(_PIECE, columns=there):
            values = {name: batch.column(name).to_pylist() for name in there}
            nothing = [None] * batch.num_rows
            yield from zip(*(values.get(column.name, nothing) for column in columns), strict=True)
