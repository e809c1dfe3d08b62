"""Tidying: merging files, and deleting those that are no longer needed.

A failure now and then does no harm, because the next try makes up for it. But if tidying never succeeds, the disk fills up. So
failures in a row are counted, and a warning is logged.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from stormspark.errors import CheckpointError

__all__ = ["Tidying"]

_log = logging.getLogger(__name__)

#: The warning is logged after this many failures in a row, and each time that their number has doubled.
_WARNED_AFTER = 10


class Tidying:
    """Counts how many times in a row one thing could not be tidied. Warnings call this thing ``name``.

    >>> tidying = Tidying("the state table /checkpoints/count")
    >>> with tidying.attempt():
    ...     raise OSError("read-only file system")
    >>> tidying.failures
    1
    """

    def __init__(self, name: str) -> None:
        self.failures = 0
        self._name, self._warn_at = name, _WARNED_AFTER

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """Return a context for one try to tidy. An OSError or a `CheckpointError` in it is counted and not raised."""
        try:
            yield
        except (OSError, CheckpointError) as error:
            self.failures += 1
            if self.failures >= self._warn_at:
                self._warn_at = 2 * self.failures
                _log.warning(
                    "%s could not be tidied %d times in a row, so it takes more and more space: %s",
                    self._name,
                    self.failures,
                    error,
                )
        else:
            if self.failures >= _WARNED_AFTER:
                _log.warning("%s could be tidied again", self._name)
            self.failures, self._warn_at = 0, _WARNED_AFTER
