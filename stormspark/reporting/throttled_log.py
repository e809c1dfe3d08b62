"""Logs failures that come again and again: the first one, then one line for many, and the end."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

__all__ = ["ThrottledLog"]

#: As long as something goes on failing, this many seconds pass between two lines.
_PAUSE_SECS = 300.0

_log = logging.getLogger(__name__)


class ThrottledLog:
    """Logs the failures of one thing, whose name begins each line."""

    def __init__(self, what: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._what, self._clock = what, clock
        self._failures, self._logged_at = 0, -float("inf")
        #: Whether a failure was logged since it worked last.
        self._was_logged = False

    def failed(self, error: BaseException | str) -> None:
        """Log a failure, unless one was logged lately."""
        self._failures += 1
        now = self._clock()
        if now - self._logged_at < _PAUSE_SECS:
            return
        self._logged_at, self._was_logged = now, True
        text = error if isinstance(error, str) else f"{type(error).__name__}: {error}"
        more = f" ({self._failures} failures so far)" if self._failures > 1 else ""
        _log.warning("%s: %s%s; the topology goes on without it", self._what, text, more)

    def worked(self) -> None:
        """Note that it works. Log that if a failure was logged before.

        What fails and works by turns is logged no more often than what fails all the time.
        """
        if self._was_logged:
            _log.info("%s works again, after %d failures", self._what, self._failures)
        self._failures, self._was_logged = 0, False
