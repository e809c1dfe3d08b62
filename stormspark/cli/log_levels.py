"""Sets the levels of loggers of a topology that runs, for some time or for good, as ``storm set_log_level`` does (J22)."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from stormspark.cli.output import wide_enough
from stormspark.cli.reach import Reach
from stormspark.errors import StatusError
from stormspark.operations.log_levels import named_level

__all__ = ["change_log_levels", "level_to_set"]


def level_to_set(text: str) -> tuple[str, dict[str, Any]]:
    """Return a logger, and what is to be set for it, from ``LOGGER=LEVEL`` or ``LOGGER=LEVEL:SECS``.

    >>> level_to_set("my.bolt=debug:30")
    ('my.bolt', {'target_level': 'DEBUG', 'timeout': 30})
    >>> level_to_set("ROOT=WARN")
    ('ROOT', {'target_level': 'WARN', 'timeout': 0})
    """
    logger, equals, rest = text.partition("=")
    level, colon, secs = rest.partition(":")
    if not (logger and equals) or (colon and not (secs.isascii() and secs.isdecimal())):
        msg = f"{text!r} is no level: expected LOGGER=LEVEL or LOGGER=LEVEL:SECS, such as my.bolt=DEBUG:30"
        raise click.BadParameter(msg)
    try:
        return logger, {"target_level": named_level(level), "timeout": int(secs or 0)}
    except StatusError as error:
        raise click.BadParameter(str(error)) from error


def change_log_levels(
    reach: Reach, levels: Sequence[tuple[str, dict[str, Any]]], removed: Sequence[str], *, as_json: bool
) -> int:
    """Set and remove levels, and print those that are set then. Returns the exit code."""
    driver = reach.driver()
    wanted = {**{logger: {"target_level": None} for logger in removed}, **dict(levels)}
    answer = driver.do("logconfig", {"namedLoggerLevels": wanted}) if wanted else driver.about("logconfig")
    if as_json:
        sys.stdout.write(json.dumps(answer) + "\n")
        return 0
    console, found = wide_enough(Console(highlight=False), 160), answer["namedLoggerLevels"]
    if not found:
        console.print(Text("no command has set the level of a logger"))
        return 0
    table = Table(box=None, pad_edge=False)
    for name in ("logger", "level", "falls back to", "at"):
        table.add_column(name)
    for logger, one in found.items():
        until = datetime.fromtimestamp(one["timeout_epoch"] / 1000).astimezone() if one["timeout"] else None
        when = ("", "never") if until is None else (one["reset_level"], f"{until:%Y-%m-%d %H:%M:%S}")
        table.add_row(Text(logger), Text(one["target_level"]), *map(Text, when))
    console.print(table)
    return 0
