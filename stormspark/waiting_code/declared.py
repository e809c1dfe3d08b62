"""Reads what a component declares about its own code: the attribute ``waits`` of its class or of the instance (A16)."""

from __future__ import annotations

import inspect
import re
from contextlib import suppress
from typing import Any

from stormspark.waiting_code.known_code import is_stormspark
from stormspark.waiting_code.real_attributes import module_of, mro, name_of, namespace

__all__ = ["WaitsValueError", "declared_waits"]

#: The package of the classes that unmodified code of other tools extends.
_COMPAT = "stormspark.compat."


class WaitsValueError(ValueError):
    """A class has an attribute ``waits`` that is neither True nor False nor None, and no method or property. The message names
    the class and its line.
    """


def declared_waits(cls: type, own: object = None) -> bool | None:
    """Return what a component declares by ``waits``: True if it may wait, False if it only computes, None if it declares nothing.

    ``own`` is the attribute ``waits`` of the instance. If it is True or False, it overrides the attribute of the class. Any other
    value is ignored, because an instance may keep something else under this name. In a class, None, a method or a property
    declares nothing, and the next base class decides. Raises `WaitsValueError` for any other value in a class. A class that
    extends no class of stormspark declares nothing. Neither does a class of streamparse, pystorm or heronpy: such code runs
    unmodified, so it means something else by the name.

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
    for one in classes:
        value = namespace(one).get("waits")
        if value is True or value is False:
            return bool(value)
        if value is not None and not _is_code(value):
            raise WaitsValueError(_message(one, value))
    return None


def _is_code(value: object) -> bool:
    """Return whether a value of a class is a method, a property, or another descriptor."""
    return any("__get__" in namespace(one) for one in mro(type(value)))


def _message(cls: type, value: Any) -> str:
    shown = f"an object of type {name_of(type(value))}"
    with suppress(Exception):
        shown = f"{value!r:.100} of type {name_of(type(value))}"
    return (
        f"{_line_of(cls)}: waits of class {name_of(cls)} must be True, False or None, got {shown}: True gives its executors "
        f"threads of their own, False runs its tasks on the worker's thread, and with None stormspark reads the code to find out "
        f"(A16); give an attribute that means something else another name"
    )


def _line_of(cls: type) -> str:
    """Return FILE:LINE of the line in which the class sets ``waits``, or of the class if there is no such line. Return the
    module if there is no source.
    """
    with suppress(Exception):
        lines, first = inspect.getsourcelines(cls)
        at = next((n for n, line in enumerate(lines) if re.match(r"\s+waits\s*[:=]", line)), 0)
        return f"{inspect.getsourcefile(cls)}:{first + at}"
    return f"module {module_of(cls)}"
