"""Makes a component's ``self.logger``, which follows the settings ``pystorm.log.*`` (C19).

Without ``pystorm.log.path``, lines go to the task's own log, as for any other component. If the setting names a folder, lines go
only to a file in that folder.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any

__all__ = ["LEVELS", "TASK_LEVELS", "task_logger"]

#: The values of ``pystorm.log.level``.
LEVELS = {
    "critical": logging.CRITICAL,
    "error": logging.ERROR,
    "warning": logging.WARNING,
    "warn": logging.WARNING,
    "info": logging.INFO,
    "debug": logging.DEBUG,
    "trace": logging.DEBUG,
}
#: The levels of ``Component.log``. Storm has no level above error, so ``critical`` means error.
TASK_LEVELS = {**LEVELS, "critical": logging.ERROR}

_FILE = "pystorm_{topology_name}_{component_name}_{task_id}_{pid}.log"
_FORMAT = "%(asctime)s - %(name)s - %(levelname)s - %(message)s"
#: The open log files, by path. A task that starts again finds its file here and continues it.
_files: dict[Path, RotatingFileHandler] = {}


def task_logger(conf: Mapping[str, Any], component: str, task: int, log: logging.Logger) -> logging.Logger:
    """Return the logger of one task. ``log`` is the task's own log. Tasks never share a logger, even if the names are equal."""
    level = logging.DEBUG if conf.get("topology.debug") else _level(conf)
    logger = logging.Logger(f"pystorm.component.{component}", level)
    logger.parent = log
    form = conf.get("pystorm.log.format")
    if path := conf.get("pystorm.log.path"):
        name = str(conf.get("pystorm.log.file") or _FILE).format(
            topology_name=conf.get("topology.name", ""),
            component_name=component,
            task_id=task,
            pid=os.getpid(),
        )
        handler: logging.Handler = _file(Path(path, name), conf)
        handler.setFormatter(logging.Formatter(form or _FORMAT))
        logger.propagate = False
    elif form:
        handler = _Formatted(log)
        handler.setFormatter(logging.Formatter(form))
        logger.propagate = False
    else:
        return logger
    logger.addHandler(handler)
    return logger


def _level(conf: Mapping[str, Any]) -> int:
    return LEVELS.get(str(conf.get("pystorm.log.level", "info")).lower(), logging.INFO)


def _file(path: Path, conf: Mapping[str, Any]) -> RotatingFileHandler:
    handler = _files.get(path)
    if handler is None:
        path.parent.mkdir(parents=True, exist_ok=True)
        most = conf.get("pystorm.log.max_bytes", 1_000_000)
        count = conf.get("pystorm.log.backup_count", 10)
        handler = RotatingFileHandler(path, maxBytes=most, backupCount=count, encoding="utf-8", delay=True)
        _files[path] = handler
    return handler


class _Formatted(logging.Handler):
    """A log handler that writes lines to the task's log, in the user's format."""

    def __init__(self, log: logging.Logger) -> None:
        super().__init__()
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        self._log.handle(
            logging.LogRecord(
                record.name, record.levelno, record.pathname, record.lineno, self.format(record), (), None
            )
        )
