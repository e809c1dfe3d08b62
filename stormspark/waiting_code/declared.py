"""Reads what a component declares about its own code: the attribute ``waits`` of its class or of the instance (A16)."""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from stormspark.waiting_code.known_code import is_stormspark
from stormspark.waiting_code.real_attributes import module_of, mro, name_of, namespace

__all__ = ["WaitsValueError", "declared_waits"]

#: The package of the classes that unmodified code of other tools extends.
_COMPAT = "stormspark.compat."


class WaitsValueError(ValueError):
    """A class or an object has an attribute ``waits`` that is neither True nor False nor None, and no method or property. The
    message names the class, and the line that sets ``waits``, if that line is in the class.
    """


def declared_waits(cls: type, own: object = None) -> bool | None:
    """Return what a component declares by ``waits``: True if it may wait, False if it only computes, None if it declares nothing.

    ``own`` is the attribute ``waits`` of the instance. If it is True or False, it overrides the attribute of the class. None, a
    method or a property declares nothing: in an instance, the class decides, and in a class, the next base class. Raises
    `WaitsValueError` for any other value. A class that extends no class of stormspark declares nothing. Neither does a class of
    streamparse, pystorm or heronpy: such code runs unmodified, so it means something else by the name.

    >>> from stormspark import BasicBolt
    >>> class Slow(BasicBolt):
    ...     waits = True
    >>> declared_waits(Slow), declared_waits(Slow, False), declared_waits(BasicBolt)
    (True, False, None)
    """
    classes = mro(cls)
    modules = [module_of(one) for one in classes]
    if not any(map(is_stormspark, modules)) or any(one.startswith(_COMPAT) for one in modules):
        return None
    if own is True or own is False:
        return own
    if own is not None and not _has(own, "__get__", "__call__") and not _is_code(_of_class(classes)):
        raise WaitsValueError(_message(cls, own, of_object=True))
    for one in classes:
        value = namespace(one).get("waits")
        if value is True or value is False:
            return bool(value)
        if value is not None and not _is_code(value):
            raise WaitsValueError(_message(one, value))
    return None


def _of_class(classes: Sequence[type]) -> object:
    """Return the attribute ``waits`` that an instance finds in its class. A cached property keeps its result in the instance."""
    return next((namespace(one)["waits"] for one in classes if "waits" in namespace(one)), None)


def _is_code(value: object) -> bool:
    """Return whether a value is a method, a property, or another descriptor."""
    return _has(value, "__get__")


def _has(value: object, *names: str) -> bool:
    """Return whether the type of a value defines one of these names."""
    return any(name in namespace(one) for one in mro(type(value)) for name in names)


def _message(cls: type, value: Any, *, of_object: bool = False) -> str:
    shown = f"an object of type {name_of(type(value))}"
    with suppress(Exception):
        shown = f"{value!r:.100} of type {name_of(type(value))}"
    what = f"waits of class {name_of(cls)}"
    if of_object:
        what = f"waits of an object of class {name_of(cls)}"
        # If the attribute is set outside of the object's classes, nobody knows the line.
        line = next(filter(None, (_line_of(one, r"\s+self\.waits\s*[:=]") for one in mro(cls))), "")
    else:
        line = _line_of(cls, r"\s+waits\s*[:=]") or _place_of(cls)
    return (
        f"{line}{': ' if line else ''}{what} must be True, False or None, got {shown}: True gives its executors "
        f"threads of their own, False runs its tasks on the worker's thread, and with None stormspark reads the code to find out"
        f"; give an attribute that means something else another name"
    )


def _line_of(cls: type, pattern: str) -> str:
    """Return FILE:LINE of the first line of a class that begins as ``pattern`` says. Empty if no such line is found."""
    with suppress(Exception):
        lines, first = inspect.getsourcelines(cls)
        at = next((n for n, line in enumerate(lines) if re.match(pattern, line)), None)
        return "" if at is None else f"{inspect.getsourcefile(cls)}:{first + at}"
    return ""


def _place_of(cls: type) -> str:
    """Return FILE:LINE of a class. Return its module if there is no source."""
    with suppress(Exception):
        return f"{inspect.getsourcefile(cls)}:{inspect.getsourcelines(cls)[1]}"
    return f"module {module_of(cls)}"
