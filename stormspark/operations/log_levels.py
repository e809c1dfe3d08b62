"""The levels of loggers that commands have set, with the time after which each falls back (J22), in Storm's words."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from stormspark.errors import StatusError

__all__ = ["LEVELS", "LogLevels", "named_level"]

#: Storm's levels, as numbers of Python's logging. Python has no level for all or none: 0 would be that of the logger above.
LEVELS = {
    "ALL": 1,
    "TRACE": 5,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
    "OFF": logging.CRITICAL + 10,
}
_NAMES = {"WARNING": "WARN", "CRITICAL": "FATAL"}
_MOST_LOGGERS, _LONGEST_NAME = 100, 200
#: About 31 years: more would not fit a timer.
_MOST_SECS = 1_000_000_000


@dataclass(frozen=True)
class _Level:
    target: str
    reset: str
    #: 0 for a level that stays.
    secs: int
    #: In seconds since 1970; 0 for never.
    until: float


class LogLevels:
    """The levels that are set now. ``apply`` brings them to the loggers of all processes. A level falls back by itself when its
    time is over. ``usual`` is the level of all loggers otherwise (``stormspark.log.level``).

    >>> applied = []
    >>> levels = LogLevels(lambda levels: applied.append(dict(levels)), "INFO", wall_clock=lambda: 1000.0)
    >>> levels.change({"my.bolt": {"target_level": "DEBUG", "timeout": 30}})
    >>> applied
    [{'my.bolt': 10}]
    >>> levels.as_json()["namedLoggerLevels"]["my.bolt"]
    {'target_level': 'DEBUG', 'reset_level': 'INFO', 'timeout': 30, 'timeout_epoch': 1030000}
    """

    def __init__(
        self,
        apply: Callable[[Mapping[str, int]], None],
        usual: str,
        *,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._apply, self._usual, self._wall_clock = apply, named_level(usual), wall_clock
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None
        self._set: dict[str, _Level] = {}

    def change(self, wanted: Mapping[str, Any]) -> None:
        """Set or remove levels, as Storm's ``POST topology/:id/logconfig`` has them in ``namedLoggerLevels``.

        Raises `StatusError`, and changes nothing, if something in there is no name, level or number of seconds.
        """
        now = self._wall_clock()
        with self._lock:
            new = dict(self._set)
            for name, entry in wanted.items():
                logger = _checked_name(name)
                level, secs = _level_of(logger, entry)
                if level is None:
                    new.pop(logger, None)
                else:
                    new[logger] = _Level(level, self._usual, secs, now + secs if secs else 0.0)
            if len(new) > _MOST_LOGGERS:
                msg = (
                    f"levels of more than {_MOST_LOGGERS} loggers are set: remove some (log-level -r LOGGER)"
                )
                raise StatusError(msg)
            self._set = new
            self._bring(now)

    def fall_back(self) -> None:
        """Remove the levels whose time is over."""
        now = self._wall_clock()
        with self._lock:
            self._set = {
                name: level for name, level in self._set.items() if not level.secs or level.until > now
            }
            self._bring(now)

    def close(self) -> None:
        """Let no level fall back any more, because the topology has ended."""
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()

    def _bring(self, now: float) -> None:
        """Bring the levels to the loggers, and come back when the next one falls back."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
        if ends := [level.until for level in self._set.values() if level.secs]:
            secs = min(max(0.0, min(ends) - now), threading.TIMEOUT_MAX)
            self._timer = threading.Timer(secs, self.fall_back)
            self._timer.daemon, self._timer.name = True, "log levels fall back"
            self._timer.start()
        self._apply({name: LEVELS[level.target] for name, level in self._set.items()})

    def as_json(self) -> dict[str, Any]:
        """Return what ``GET topology/:id/logconfig`` says. As in Storm, ``timeout_epoch`` is in milliseconds since 1970."""
        with self._lock:
            levels = dict(self._set)
        return {
            "namedLoggerLevels": {
                name: {
                    "target_level": level.target,
                    "reset_level": level.reset,
                    "timeout": level.secs,
                    "timeout_epoch": int(level.until * 1000),
                }
                for name, level in levels.items()
            }
        }


def named_level(level: str) -> str:
    """Return Storm's name of a level, which may also be Python's. Raises `StatusError` if there is no such level.

    >>> named_level("warning"), named_level("TRACE")
    ('WARN', 'TRACE')
    """
    name = level.upper()
    name = _NAMES.get(name, name)
    if name not in LEVELS:
        msg = f"there is no level {level[:40]!r}: expected one of {', '.join(LEVELS)}"
        raise StatusError(msg)
    return name


def _level_of(logger: str, entry: Any) -> tuple[str | None, int]:
    if not isinstance(entry, Mapping):
        msg = f"the level of {logger!r} is {entry!r:.80}: expected an object with target_level and timeout"
        raise StatusError(msg)
    level, secs = entry.get("target_level"), entry.get("timeout", 0)
    if level is None:
        return None, 0
    if not isinstance(level, str):
        msg = f"the target_level of {logger!r} is {level!r:.80}: expected one of {', '.join(LEVELS)}, or null"
        raise StatusError(msg)
    if isinstance(secs, bool) or not isinstance(secs, int) or not 0 <= secs <= _MOST_SECS:
        msg = f"the timeout of {logger!r} is {secs!r:.80}: expected a whole number of seconds, and 0 for a level that stays"
        raise StatusError(msg)
    return named_level(level), secs


def _checked_name(name: str) -> str:
    """Return the name of a logger in this process. Storm's root logger is ROOT."""
    if not name or len(name) > _LONGEST_NAME or not name.isprintable():
        msg = f"the name of a logger is {name!r:.80}: expected 1 to {_LONGEST_NAME} characters that can be printed"
        raise StatusError(msg)
    return "root" if name.lower() == "root" else name
