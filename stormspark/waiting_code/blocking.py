"""Finds a call by which a coroutine of an async component blocks its event loop, such as ``time.sleep``.

Unlike the search for code that may wait, this search goes from call to call: what the coroutines call, what that calls, and so
on. A function that is only passed on, as to ``asyncio.to_thread`` or ``run_in_executor``, runs elsewhere. The search ends only at
names that are known to block, and it does not look into libraries. It does not know the objects that the code makes while it
runs. So what it finds is right, but it does not find everything. It calls none of the user's code.
"""

from __future__ import annotations

import inspect
import os
from collections import deque
from collections.abc import Collection, Iterator
from contextlib import suppress
from functools import partial
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any, NamedTuple, cast

from stormspark.waiting_code.blocking_names import blocks, blocks_by_reading_files
from stormspark.waiting_code.known_code import Verdict, is_stormspark, shown, verdict
from stormspark.waiting_code.real_attributes import (
    attributes_of,
    is_module,
    module_name,
    module_of,
    mro,
    name_of,
    namespace,
    text,
)
from stormspark.waiting_code.uses import UNKNOWN, NotImported, ParentOf, Use, calls, module_dict

__all__ = ["blocking_call"]

#: The methods of async components that are called again and again, and those that are called once.
_PER_TUPLE = ("execute", "next_tuple", "ack", "fail")
_ONCE = ("prepare", "open", "activate", "deactivate", "cleanup", "close")
#: One search follows at most this many functions.
_MOST_FUNCTIONS = 2_000
_LIBRARIES = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")


def blocking_call(component: object) -> str | None:
    """Return a call in a coroutine of an async component that blocks the event loop, with its line. None if none is found.

    An example is "execute calls time.sleep (my_bolts.py:12)". Reading and writing files counts only in methods that are called
    again and again.
    """
    with suppress(Exception):
        return _found(component, _PER_TUPLE, files=True) or _found(component, _ONCE, files=False)
    return None


class _Function(NamedTuple):
    """A function that runs on the event loop."""

    code: Any  # as a FunctionType it would count as a method of this tuple
    #: The object whose method it is, or `UNKNOWN`.
    of: object
    #: The method of the component that leads to it.
    method: str
    #: Whether it is this method itself.
    is_the_method: bool


def _found(component: object, methods: Collection[str], *, files: bool) -> str | None:
    own = {module_of(cls).partition(".")[0] for cls in mro(type(component))}
    to_do: deque[_Function] = deque()
    seen: set[tuple[int, int]] = set()

    def follow(called: object, of: object, method: str, *, is_the_method: bool = False) -> None:
        code = _in_users_code(called, own)
        if code is not None and (id(code), id(of)) not in seen and len(seen) < _MOST_FUNCTIONS:
            seen.add((id(code), id(of)))
            to_do.append(_Function(code, of, method, is_the_method))

    for method in methods:
        follow(_plain(_member(type(component), method)), component, method, is_the_method=True)
    while to_do:
        function = to_do.popleft()
        for use in calls(function.code, function.of):
            called = _called(use, function.of)
            for module, name in called.names:
                if blocks(module, name) or (files and blocks_by_reading_files(module, name)):
                    return _sentence(function, use, shown(module, name))
            follow(called.code, called.of, function.method)
    return None


def _sentence(function: _Function, use: Use, what: str) -> str:
    leads_to = function.code.__qualname__.rpartition("<locals>.")[2]
    through = "" if function.is_the_method else f"leads to {leads_to}, which "
    written = ".".join(filter(None, (use.name, *use.attributes)))
    same = not written or written.rpartition(".")[2] == what.rpartition(".")[2]
    line = f"{os.path.basename(function.code.__code__.co_filename)}:{use.line}"
    return f"{function.method} {through}calls {what if same else f'{written}, and so {what}'} ({line})"


class _Called(NamedTuple):
    """What a call calls: the names under which it may be listed, each with its module, and the function, if there is one."""

    names: list[tuple[str, str]]
    code: object = None
    of: object = UNKNOWN


def _called(use: Use, caller: object) -> _Called:
    """Find out what a call calls. ``caller`` is the object whose method calls it."""
    value, attributes = use.root, list(use.attributes)
    bound: object = UNKNOWN
    names: list[tuple[str, str]] = []
    if type(value) is ParentOf and attributes and caller is not UNKNOWN:
        value, bound = _plain(_member(type(caller), attributes.pop(0), behind=value.cls)), caller
    while attributes:
        if type(value) is NotImported:
            return _Called(_names_not_imported(value.module, attributes))
        name, bound = attributes.pop(0), UNKNOWN
        if is_module(value):
            names.append((module_name(value), name))
            value = module_dict(value).get(name, UNKNOWN)
            continue
        cls, own = type(value), UNKNOWN
        if issubclass(cls, type):
            cls = cast("type", value)
        else:
            own = dict.get(attributes_of(value) or {}, name, UNKNOWN)
            bound = value if own is UNKNOWN else UNKNOWN
        names += _names_of_class(cls)
        value = _plain(_member(cls, name)) if own is UNKNOWN else own
    return _of_value(value, bound, names)


def _of_value(value: Any, bound: object, names: list[tuple[str, str]]) -> _Called:
    """Return what a call of a value calls."""
    while type(value) is partial:
        value = value.func
    if type(value) is MethodType:
        value, bound = value.__func__, value.__self__
    kind = type(value)
    if kind is FunctionType:
        if value.__qualname__ == value.__name__:  # a method may have the name of a function that is listed
            names.append((text(value.__globals__.get("__name__")), value.__name__))
        return _Called(names, value, bound)
    if kind is BuiltinFunctionType:
        owner = value.__self__
        if owner is None or is_module(owner):
            names.append((text(value.__module__), value.__name__))
        else:
            names += _names_of_class(type(owner))
    elif issubclass(kind, type):
        names += _names_of_class(value)
        return _Called(names, _member(value, "__init__"))
    return _Called(names)


def _names_not_imported(module: str, attributes: list[str]) -> list[tuple[str, str]]:
    """Return the names under which an attribute of a module may be listed that is not imported so far.

    After ``import urllib.request``, the code writes ``urllib.request.urlopen``.
    """
    *inner, name = attributes
    _, *rest = module.split(".")
    if inner[: len(rest)] == rest:
        inner = inner[len(rest) :]
    return [(module, attributes[0]), (".".join((module, *inner)), name)]


def _names_of_class(cls: type) -> Iterator[tuple[str, str]]:
    """Yield the names of a class and of its bases, each with its module."""
    return ((module_of(one), name_of(one)) for one in mro(cls))


def _member(cls: type, name: str, *, behind: object = None) -> object:
    """Return what Python finds under a name in a class and its bases, or only in those behind the class ``behind``."""
    classes = mro(cls)
    if behind is not None:
        at = next((number for number, one in enumerate(classes, 1) if one is behind), len(classes))
        classes = classes[at:]
    return next((namespace(one)[name] for one in classes if name in namespace(one)), UNKNOWN)


def _plain(member: Any) -> object:
    """Return the function of a static method or of a class method, and any other member as it is."""
    return member.__func__ if type(member) is staticmethod or type(member) is classmethod else member


def _in_users_code(code: Any, own: Collection[str]) -> FunctionType | None:
    """Return a function if users have written it. A decorator of a library leads to the coroutine function that it decorates.

    ``own`` has the packages of the component's classes, which count as the user's even if they are installed like a library.
    """
    for function in _decorated(code):
        module = text(function.__globals__.get("__name__"))
        if is_stormspark(module) or verdict(module, function.__name__) is not Verdict.UNKNOWN:
            continue
        file = function.__code__.co_filename
        if module.partition(".")[0] in own or not any(folder in file for folder in _LIBRARIES):
            return function
    return None


def _decorated(code: Any) -> Iterator[FunctionType]:
    """Yield a function, and then each coroutine function that it wraps."""
    for _ in range(10):
        if type(code) is not FunctionType:
            return
        yield code
        code = code.__dict__.get("__wrapped__")
        if type(code) is FunctionType and not code.__code__.co_flags & inspect.CO_COROUTINE:
            return
