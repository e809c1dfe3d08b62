"""The lines in which a worker writes what it knows of trees, in a rotated file or in memory."""

from __future__ import annotations

import json
import logging
from collections import deque
from pathlib import Path
from typing import Any

from stormspark.private_files import PrivateLogFile

__all__ = ["StoryLines"]

#: If there is no log folder, this many lines of failures are kept in memory, and as many lines of samples.
_KEPT = 1000


class StoryLines:
    """A rotated file of JSON objects, one per line. Without a path the last objects are kept in memory."""

    def __init__(self, path: Path | None, max_bytes: int, backup_count: int) -> None:
        self.kept: deque[dict[str, Any]] = deque(maxlen=_KEPT)
        self._file: PrivateLogFile | None = None
        if path is not None:
            self._file = PrivateLogFile(
                path, maxBytes=max_bytes, backupCount=backup_count, encoding="utf-8", delay=True
            )

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()

    def add(self, line: dict[str, Any]) -> None:
        """Write a line to the file, or keep it in memory."""
        if self._file is None:
            # The line is copied, because later events are added to the original.
            self.kept.append(json.loads(json.dumps(line)))
        else:
            self._file.emit(logging.makeLogRecord({"msg": json.dumps(line)}))
