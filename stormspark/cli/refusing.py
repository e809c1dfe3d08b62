"""Shows errors of stormspark as click shows usage errors: a message, and the exit code 2."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import click

from stormspark.config import parse_assignment
from stormspark.errors import StormsparkError

__all__ = ["Refused", "assignments", "refusing"]

_P = ParamSpec("_P")
_R = TypeVar("_R")


class Refused(click.ClickException):
    """An error of stormspark, shown as click shows usage errors, with the same exit code."""

    exit_code = 2


def refusing(command: Callable[_P, _R]) -> Callable[_P, _R]:
    """Let a command end with `Refused` in place of an error of stormspark."""

    @functools.wraps(command)
    def wrapped(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return command(*args, **kwargs)
        except StormsparkError as error:
            raise Refused("\n".join([str(error), *getattr(error, "__notes__", ())])) from error

    return wrapped


def assignments(context: click.Context, option: click.Parameter, given: tuple[str, ...]) -> dict[str, Any]:
    """Return the settings of ``-c KEY=VALUE``."""
    try:
        return dict(parse_assignment(text) for text in given)
    except StormsparkError as error:
        raise click.BadParameter(str(error)) from error
