"""Levels of loggers that somebody sets while a topology runs (J22), and the handlers that show what comes through them."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

__all__ = ["LevelledHandler", "LoggerLevels"]


class LevelledHandler(logging.Handler):
    """A handler with a level of its own, which also passes what loggers let through whose level was set by a command.

    >>> handler = LevelledHandler(logging.WARNING)
    >>> handler.pass_also({"my.bolt": logging.DEBUG})
    >>> debug = logging.makeLogRecord({"name": "my.bolt.split", "levelno": logging.DEBUG})
    >>> other = logging.makeLogRecord({"name": "other", "levelno": logging.DEBUG})
    >>> bool(handler.filter(debug)), bool(handler.filter(other))
    (True, False)
    """

    def __init__(self, level: int | str) -> None:
        super().__init__(level)
        #: The level without commands. `level` is the least that may pass.
        self.usual_level = self.level
        self._passed: dict[str, int] = {}

    def pass_also(self, levels: Mapping[str, int]) -> None:
        """Pass these loggers' records from now on, from a level of each. Those of a former call count no more."""
        self._passed = dict(levels)
        self.setLevel(min([self.usual_level, *levels.values()]))

    def filter(self, record: logging.LogRecord) -> Any:
        """Whether the record is shown."""
        return (record.levelno >= self.usual_level or self._was_asked_for(record)) and super().filter(record)

    def _was_asked_for(self, record: logging.LogRecord) -> bool:
        return any(
            record.levelno >= level
            for name, level in self._passed.items()
            if name in ("root", record.name) or record.name.startswith(f"{name}.")
        )


class LoggerLevels:
    """The levels of loggers of this process that were set by commands. The root logger is called ``root``.

    >>> levels = LoggerLevels()
    >>> levels.apply({"my.bolt": logging.DEBUG})
    >>> logging.getLogger("my.bolt").level == logging.DEBUG
    True
    >>> levels.apply({})
    >>> logging.getLogger("my.bolt").level == logging.NOTSET
    True
    """

    def __init__(self) -> None:
        self._levels: dict[str, int] = {}
        #: The levels that the loggers had before.
        self._before: dict[str, int] = {}

    def apply(self, levels: Mapping[str, int]) -> None:
        """Give loggers these levels, and all others back the level that they had."""
        if levels == self._levels:
            return
        for name in self._before.keys() - levels.keys():
            logger = logging.getLogger(name)
            before = self._before.pop(name)
            if logger.level == self._levels[name]:  # else the user's code has changed it meanwhile
                logger.setLevel(before)
        for name, level in levels.items():
            logger = logging.getLogger(name)
            self._before.setdefault(name, logger.level)
            logger.setLevel(level)
        self._levels = dict(levels)
        for handler in (*logging.getLogger().handlers, *logging.getLogger("stormspark").handlers):
            if isinstance(handler, LevelledHandler):
                handler.pass_also(levels)
