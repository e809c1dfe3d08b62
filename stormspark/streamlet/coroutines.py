"""Refuses functions and operators that are written with ``async``, because nobody would await them."""

from __future__ import annotations

from collections.abc import Iterable

from stormspark.coroutines import kind_of_coroutine, problem_with_coroutine
from stormspark.errors import InvalidTopologyError
from stormspark.user_line import user_line

__all__ = ["refuse_coroutine", "refuse_coroutines_of"]


def refuse_coroutine(function: object, operation: str) -> None:
    """Raise `InvalidTopologyError` if a function that the user gave to ``operation`` is written with ``async``."""
    kind = kind_of_coroutine(function)
    if kind is not None:
        called = getattr(function, "__qualname__", type(function).__qualname__).rpartition(".")[2]
        msg = (
            f"{user_line()}: {operation} takes a function that returns its result, but {called} is {kind}, which nobody would "
            f"await: write it without async; if it waits, the stage's executors have threads"  # G24
        )
        raise InvalidTopologyError(msg)


def refuse_coroutines_of(operator: object, names: Iterable[str]) -> None:
    """Raise `InvalidTopologyError` if one of these methods of a user's object is written with ``async``."""
    problem = problem_with_coroutine(operator, names, "await in it by asyncio.run(...)")
    if problem is not None:
        msg = f"{user_line()}: {problem}"
        raise InvalidTopologyError(msg)
