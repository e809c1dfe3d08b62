"""Decides whether and when a failed batch is tried again, and what to log meanwhile. This module uses neither a clock nor Spark.

There are two kinds of failure. User code that has failed is likely to fail again, so after several failures in a row
(``stormspark.max.attempts``) the topology stops. But what failed *outside* of the topology may come back: storage, a broker, a
Spark executor that the cluster took away. The topology waits for it, with growing pauses, for up to
``stormspark.outage.timeout.secs``. A committed batch ends a series of failures. `Retries.succeeded` or a later batch number shows
that a batch was committed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from stormspark.api import ExponentialBackoff
from stormspark.errors import CheckpointError, UnavailableError

__all__ = ["Retries", "is_outside", "is_outside_error"]

_FIRST_DELAY_SECS = 0.1
#: This many failures in a row are logged one by one. If something outside failed, later ones are logged once per minute at most.
_LOGGED = 3
_LOG_SECS = 60.0

#: Matches Spark's message if something outside of the topology failed. The pattern has class names of Java and Python, because
#: messages differ between file systems. ``FetchFailed`` and ``ExecutorLostFailure`` are Spark's own names for failed tasks.
_OUTSIDE = re.compile(
    r"ExecutorLostFailure|FetchFailed|executor .{0,40}(lost|decommission)|java\.(io|net|nio)\.[\w.]+Exception"
    r"|org\.apache\.hadoop\.[\w.]*Exception|software\.amazon\.awssdk|com\.microsoft\.azure|com\.google\.cloud"
    r"|kafka\.common\.errors|KafkaException|\w*TimeoutException"
    r"|\b(OSError|IOError|ConnectionError|Connection\w+Error|TimeoutError|BrokenPipeError|FileNotFoundError|PermissionError"
    r"|NotADirectoryError)\b"
)


def is_outside(text: str) -> bool:
    """Whether the text of a failure, with the names of its exceptions, shows that something outside of the topology failed.

    >>> is_outside("java.io.FileNotFoundException: /mnt/checkpoint/offsets/7")
    True
    >>> is_outside("ValueError: no such word")
    False
    """
    return _OUTSIDE.search(text) is not None


def is_outside_error(error: Exception) -> bool:
    """Whether something outside of the topology failed. An unusable checkpoint counts as outside, too.

    >>> is_outside_error(BlockingIOError("busy")), is_outside_error(KeyError("key"))
    (True, False)
    """
    return isinstance(error, OSError | UnavailableError | CheckpointError) or is_outside(
        f"{type(error).__name__}: {error}"
    )


@dataclass
class Retries:
    """A count of failed attempts in a row.

    >>> retries = Retries(most_attempts=2, outage_secs=600.0, longest_delay_secs=30.0)
    >>> retries.failed(7, "the disk is away", outside=True, now=0.0)
    >>> [retries.failed(7, "the disk is away", outside=True, now=float(now)) for now in (1, 300, 599)]
    [None, None, None]
    >>> retries.failed(8, "bolt b raised", outside=False, now=700.0)
    >>> retries.failed(8, "bolt b raised", outside=False, now=701.0)
    'batch 8 failed 2 times (stormspark.max.attempts): bolt b raised'
    """

    most_attempts: int
    outage_secs: float
    longest_delay_secs: float
    #: The batch that failed last; -1 if it is unknown.
    batch: int = -1
    #: The number of failures in a row.
    failures: int = 0
    #: How many of these failures had no cause outside of the topology.
    own: int = 0
    #: Why the last attempt failed.
    reason: str = ""
    #: The time of the first of these failures that had a cause outside of the topology; None if there was none.
    away_since: float | None = None
    _logged_at: float = field(default=0.0, repr=False)

    def failed(self, batch: int, reason: str, *, outside: bool, now: float) -> str | None:
        """Count an attempt at ``batch`` that failed at ``now`` (monotonic seconds). ``batch`` is -1 if the query reached none.

        Return why the topology stops, or None if another attempt follows.
        """
        if batch not in (-1, self.batch):
            self.batch, self.failures, self.own, self.away_since = batch, 0, 0, None
        self.failures += 1
        self.reason = reason
        if not outside:
            self.own += 1
            if self.own >= self.most_attempts:
                return f"{self._batch} failed {self.own} times (stormspark.max.attempts): {reason}"
            return None
        if self.away_since is None:
            self.away_since = now
        away = now - self.away_since
        if away >= self.outage_secs:
            return (
                f"{self._batch} could not be completed for {away:.0f} s (stormspark.outage.timeout.secs), in "
                f"{self.failures} attempts: {reason}"
            )
        return None

    def succeeded(self) -> None:
        """Start anew, because a batch has been committed since the last failure. Later failures begin a new series.

        >>> retries = Retries(most_attempts=2, outage_secs=600.0, longest_delay_secs=30.0)
        >>> retries.failed(7, "bolt b raised", outside=False, now=0.0)
        >>> retries.succeeded()
        >>> retries.failed(-1, "bolt b raised", outside=False, now=9000.0)
        """
        self.batch, self.failures, self.own, self.away_since = -1, 0, 0, None

    @property
    def delay_secs(self) -> float:
        """The pause before the next attempt. The first retry comes at once, because a new worker process cures most trouble."""
        return ExponentialBackoff(0.0, _FIRST_DELAY_SECS, self.longest_delay_secs).delay(self.failures) or 0.0

    @property
    def _batch(self) -> str:
        return f"batch {self.batch}" if self.batch >= 0 else "the next batch"

    def to_log(self, attempt: int, now: float) -> str | None:
        """Return what to log before attempt ``attempt``; None in a long outage that was logged within the last minute."""
        if self.away_since is None or self.failures <= _LOGGED:
            self._logged_at = now
            return f"{self._batch} is run again as attempt {attempt}: {self.reason}"
        if now - self._logged_at < _LOG_SECS:
            return None
        self._logged_at = now
        left = self.outage_secs - (now - self.away_since)
        return (
            f"{self._batch} has failed for {now - self.away_since:.0f} s, in {self.failures} attempts. The next attempt starts "
            f"in {self.delay_secs:.0f} s; the topology stops after another {left:.0f} s (stormspark.outage.timeout.secs): "
            f"{self.reason}"
        )
