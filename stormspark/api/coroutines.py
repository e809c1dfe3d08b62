"""Finds coroutines where stormspark calls ordinary functions. Such a call would do nothing, because nobody awaits its result."""

from __future__ import annotations

import inspect
from collections.abc import Iterable

__all__ = ["kind_of_coroutine", "problem_with_coroutine"]


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


def problem_with_coroutine(component: object, names: Iterable[str], instead: str) -> str | None:
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
            code = getattr(inspect.unwrap(method), "__code__", None)  # type: ignore[arg-type]
            line = f" ({code.co_filename}:{code.co_firstlineno})" if code is not None else ""
            return (
                f"{name} of class {cls.__qualname__}{line} is {kind}, which nobody would await: write a plain `def {name}`, or "
                f"{instead}"
            )
    return None
