"""Finds coroutines where stormspark calls ordinary functions. Such a call would do nothing, because nobody awaits its result."""

from __future__ import annotations

import inspect
from collections.abc import Iterable

__all__ = ["kind_of_coroutine", "line_of", "problem_with_coroutine", "refuse_coroutine"]

_INSTEAD = "await in it by asyncio.run(...)"


def kind_of_coroutine(function: object) -> str | None:
    """Return what a function is if a call of it does not run it, because it is written with ``async``. Otherwise return None.

    >>> async def later(x): ...
    >>> kind_of_coroutine(later), kind_of_coroutine(len)
    ('a coroutine function', None)
    """
    for one in (function, getattr(type(function), "__call__", None)):  # noqa: B004
        if inspect.iscoroutinefunction(one):
            return "a coroutine function"
        if inspect.isasyncgenfunction(one):
            return "an asynchronous generator function"
    return None


def problem_with_coroutine(component: object, names: Iterable[str], instead: str = _INSTEAD) -> str | None:
    """Return a sentence about the first of a component's methods with these ``names`` that is written with ``async``, or None.

    ``component`` is an object or its class. ``instead`` says what the user can do if the method has to be asynchronous.

    >>> class Slow:
    ...     async def process(self, tup): ...
    >>> print(problem_with_coroutine(Slow, ["process"], "derive Slow from AsyncBolt"))  # doctest: +ELLIPSIS
    process of class Slow (...) is a coroutine function, which nobody would await: write a plain `def process`, or derive \
Slow from AsyncBolt
    """
    for name in names:
        method = getattr(component, name, None)
        kind = kind_of_coroutine(method)
        if kind is not None:
            cls = component if isinstance(component, type) else type(component)
            return (
                f"{name} of class {cls.__qualname__}{line_of(method)} is {kind}, which nobody would await: write a plain "
                f"`def {name}`, or {instead}"
            )
    return None


def refuse_coroutine(function: object, what: str) -> None:
    """Raise TypeError if a function that the user gave as ``what`` is written with ``async``.

    >>> async def tick(): ...
    >>> refuse_coroutine(tick, "a timer's callback")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    TypeError: a timer's callback, tick (...), is a coroutine function, which nobody would await: write it without async, ...
    """
    kind = kind_of_coroutine(function)
    if kind is not None:
        name = getattr(function, "__name__", type(function).__name__)
        msg = f"{what}, {name}{line_of(function)}, is {kind}, which nobody would await: write it without async, or {_INSTEAD}"
        raise TypeError(msg)


def line_of(function: object) -> str:
    """Return FILE:LINE of a function that is written in Python, in brackets after a space; otherwise nothing."""
    code = getattr(inspect.unwrap(function), "__code__", None)  # type: ignore[arg-type]
    return f" ({code.co_filename}:{code.co_firstlineno})" if code is not None else ""
