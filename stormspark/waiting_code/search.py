"""Finds out whether the code of a component only computes, or may wait: for time, a network, a file, a lock, a process.

The search reads bytecode and values. It calls none of the user's code: no function, no property, no ``__getattr__``. It follows
everything that the component's methods name, and everything in the component's attributes. Whatever it does not understand counts
as code that may wait. So if the search finds no reason, the code only computes. There is one exception: of an object that arrives
in a tuple or in the configuration, the search knows only the names of the methods that are called.
"""

from __future__ import annotations

import gc
import os
from collections import deque
from collections.abc import Mapping
from functools import cached_property
from types import (
    BuiltinFunctionType,
    ClassMethodDescriptorType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodDescriptorType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import Any, NamedTuple, NoReturn, TypeGuard, cast

from stormspark.waiting_code.known_code import (
    WAITING_CALLS,
    WAITING_NAMES,
    Verdict,
    holds_no_code,
    is_stormspark,
    module_verdict,
    verdict,
)
from stormspark.waiting_code.uses import NOT_DEFINED, UNKNOWN, NotImported, Use, module_dict, uses

__all__ = ["why_it_may_wait"]

#: The most functions, and the most values of all kinds, that one search looks through. A component with more may wait.
_MOST_FUNCTIONS = 5_000
_MOST_VALUES = 100_000


def _ids(*types: type) -> frozenset[int]:
    """Return the ids of types. A type is compared by its id, because a user's metaclass may define how its types compare."""
    return frozenset(map(id, types))


#: Values of these types hold no other values.
_PLAIN = _ids(
    *(str, bytes, bytearray, int, float, complex, bool, range, slice, type(None), type(Ellipsis)),
    *(type(NotImplemented), type(UNKNOWN)),
)
#: The types of members of a class that is written in C.
_IN_C = _ids(MethodDescriptorType, WrapperDescriptorType, ClassMethodDescriptorType)
#: A descriptor of one of these types reads an object's own data, without calling the user's code.
_READS = _ids(GetSetDescriptorType, MemberDescriptorType)
#: Names in a class's namespace that are about annotations. No method uses them.
_NOT_CODE = frozenset({"__annotations__", "__annotate__", "__annotate_func__", "__orig_bases__"})


def why_it_may_wait(component: object) -> str | None:
    """Return why the code of a component may wait, e.g. "execute uses time.sleep (my_bolts.py:12)", or None if it only computes.

    An attribute ``waits`` of the component's class or instance overrides the search. True means that the code may wait, and False
    that it only computes.

    >>> import time
    >>> from stormspark import BasicBolt
    >>> class Double(BasicBolt):
    ...     def execute(self, tup, collector):
    ...         collector.emit((2 * tup[0],))
    >>> why_it_may_wait(Double())
    >>> class Slow(Double):
    ...     waits = True
    >>> why_it_may_wait(Slow())
    'its class says so (waits = True)'
    """
    try:
        return _Search(component).reason()
    except Exception as error:
        return f"its code can't be looked through ({type(error).__name__})"


class _MayWaitError(Exception):
    """Ends the search. The message is the reason."""


class _Place(NamedTuple):
    """The place where a value is used, or the attribute that holds the value, for messages."""

    #: The method of the component that leads to the value; empty if an attribute of the component has it.
    method: str = ""
    #: The function that uses the value, if it is not the method itself.
    leads_to: str = ""
    #: The name of the value at this place.
    name: str = ""
    #: FILE:LINE.
    line: str = ""

    def attribute(self, name: str) -> _Place:
        """Return the place of an attribute of the value at this place."""
        return self if self.method else _Place(name=f"{self.name}.{name}" if self.name else name)

    def stop(self, what: str) -> NoReturn:
        """End the search, because ``what`` is at this place and may wait."""
        if self.method:
            through = f"leads to {self.leads_to}, which " if self.leads_to else ""
            same = not self.name or self.name.rpartition(".")[2] == what.rpartition(".")[2]
            msg = (
                f"{self.method} {through}uses {what if same else f'{self.name}, and so {what}'} ({self.line})"
            )
        else:
            msg = f"its {self.name} has {what}" if self.name else f"it has {what}"
        raise _MayWaitError(msg)


class _Search:
    """One search. It begins at a component, and looks at everything that the component uses."""

    def __init__(self, component: object) -> None:
        self._to_do: deque[tuple[object, _Place]] = deque()
        #: All values found so far, by id. A value is kept here, so that no other value gets its id.
        self._found: dict[int, object] = {}
        self._functions = 0
        self._add(component, _Place())

    def reason(self) -> str | None:
        """Look at everything that was found; return the first reason why the component may wait, or None."""
        try:
            while self._to_do:
                self._look(*self._to_do.popleft())
        except _MayWaitError as found:
            return str(found)
        return None

    def _add(self, value: object, place: _Place) -> None:
        if id(type(value)) in _PLAIN or id(value) in self._found:
            return
        self._found[id(value)] = value
        if len(self._found) > _MOST_VALUES:
            place.stop(f"more than {_MOST_VALUES} values, too many to look through")
        self._to_do.append((value, place))

    def _look(self, value: Any, place: _Place) -> None:
        kind = type(value)
        if kind is FunctionType:
            self._function(value, place)
        elif kind is BuiltinFunctionType:
            self._function_in_c(value, place)
        elif issubclass(kind, type):
            self._class(value, place)
        elif issubclass(kind, ModuleType):
            self._whole_module(value, place)
        else:
            self._instance(value, place)

    # -- functions -------------------------------------------------------------------------------------------

    def _function(self, function: FunctionType, place: _Place) -> None:
        """Follow a user's function. Of a known one, follow only its defaults and closure, which may hold a user's function."""
        module, name = _text(function.__globals__.get("__name__")), function.__name__
        known = verdict(module, name)
        if known is Verdict.WAITS:
            place.stop(f"{module}.{name}")
        for given in (function.__defaults__, function.__kwdefaults__, function.__dict__):
            self._add(given, place)
        if known is Verdict.COMPUTES:
            self._add(function.__closure__, place)
            return
        self._functions += 1
        if self._functions > _MOST_FUNCTIONS:
            place.stop(f"more than {_MOST_FUNCTIONS} functions, too many to look through")
        method = place.method or name
        leads_to = function.__qualname__.rpartition("<locals>.")[2] if place.method else ""
        file = os.path.basename(function.__code__.co_filename)
        for use in uses(function):
            written = ".".join(filter(None, (use.name, *use.attributes)))
            self._use(use, _Place(method, leads_to, written, f"{file}:{use.line}"))

    def _function_in_c(self, function: Any, place: _Place) -> None:
        """Look at a function in C. If it is a bound method, look at its object."""
        owner = function.__self__
        if owner is not None and not _is_module(owner):
            self._add(owner, place)
            return
        module = _text(function.__module__) or (_module_name(owner) if _is_module(owner) else "")
        self._check(module, function.__name__, place)

    @staticmethod
    def _check(module: str, name: str, place: _Place) -> None:
        """End the search unless this name of a module is known to compute, because its code can't be read."""
        known = verdict(module, name)
        if known is Verdict.WAITS:
            place.stop(f"{module}.{name}")
        if known is Verdict.UNKNOWN:
            place.stop(f"{module}.{name}, which is compiled")

    def _use(self, use: Use, place: _Place) -> None:
        """Follow a value that a function uses, or the attribute of a module."""
        value, attributes = use.root, use.attributes
        while attributes and _is_module(value):
            module, name = _module_name(value), attributes[0]
            member = module_dict(value).get(name, NOT_DEFINED)
            known = verdict(module, name)
            if not _is_module(member) and known is not Verdict.UNKNOWN:
                if known is Verdict.WAITS:
                    place.stop(f"{module}.{name}")
                return
            value, attributes = member, attributes[1:]
        if value is NOT_DEFINED:
            place.stop("what is not defined so far")
        if type(value) is NotImported:
            if module_verdict(value.module) is not Verdict.COMPUTES:
                place.stop("a module that is not imported so far")
            return
        for number, attribute in enumerate(attributes, 1):
            called = use.called and number == len(attributes)
            if attribute in WAITING_NAMES or (called and attribute in WAITING_CALLS):
                place.stop(f".{attribute}")
        self._add(value, place)

    def _whole_module(self, module: ModuleType, place: _Place) -> None:
        """Look at a whole module, because the code uses it as a value, and any of its names may be used."""
        known = module_verdict(_module_name(module))
        if known is Verdict.WAITS:
            place.stop(_module_name(module))
        if known is Verdict.UNKNOWN:
            for value in module_dict(module).values():
                self._add(value, place)

    # -- classes and instances -------------------------------------------------------------------------------

    def _class(self, cls: type, place: _Place) -> None:
        """Follow all methods and other attributes of a user's class, its bases and its metaclass."""
        if _says_that_it_computes(cls) or _is_known(cls, place):
            return
        for name, member in _namespace(cls).items():
            if id(type(member)) in _IN_C and member.__objclass__ is cls:
                place.stop(f"{_module(cls)}.{_name(cls)}, which is compiled")
            if name not in _NOT_CODE:
                self._add(member, place.attribute(name))
        for base in _bases(cls):
            self._add(base, place)
        self._add(type(cls), place)

    def _instance(self, value: Any, place: _Place) -> None:
        """Follow the class of an object, and all that the object holds."""
        cls = type(value)
        if _name(cls) == "cython_function_or_method" and _module(cls).startswith("_cython"):
            self._check(_text(value.__module__), value.__name__, place)
            return
        held = [one for one in gc.get_referents(value) if one is not cls]
        # Reading the __dict__ of an object that has no attributes so far would make its attributes slower.
        attributes = _attributes(value) if held else {}
        if attributes is None:
            place.stop(f"an object of {_name(cls)}, which defines a __dict__ of its own")
        if _says_that_it_computes(cls, dict.get(attributes, "waits")):
            return
        self._add(cls, place)
        if holds_no_code(_module(cls)):
            return
        if cls is cached_property:
            self._add(attributes["func"], place)  # its lock does not count: nobody waits long for it
            return
        for name, one in dict.items(attributes):
            self._add(one, place.attribute(name))
        for one in held:
            if one is not attributes:
                self._add(one, place)


def _is_known(cls: type, place: _Place) -> bool:
    """Whether a class is known to compute. Ends the search if it is known to wait."""
    known = verdict(_module(cls), _name(cls).partition(".")[0])
    if known is Verdict.WAITS:
        place.stop(f"{_module(cls)}.{_name(cls)}")
    return known is Verdict.COMPUTES


def _says_that_it_computes(cls: type, own: object = None) -> bool:
    """Whether the attribute ``waits`` of a component is False, so that it only computes. Ends the search if it is True.

    ``own`` is the attribute ``waits`` of an instance, which overrides that of its class.
    """
    lines = _mro(cls)
    if not any(is_stormspark(_module(one)) for one in lines):
        return False
    for said in (own, *(_namespace(one).get("waits") for one in lines)):
        if said is True:
            msg = "its class says so (waits = True)"
            raise _MayWaitError(msg)
        if said is False:
            return True
    return False


# -- reading an object without calling code of its class or metaclass ---------------------------------------------------------


def _mro(cls: type) -> tuple[type, ...]:
    return cast("tuple[type, ...]", type.__dict__["__mro__"].__get__(cls))


def _bases(cls: type) -> tuple[type, ...]:
    return cast("tuple[type, ...]", type.__dict__["__bases__"].__get__(cls))


def _namespace(cls: type) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", type.__dict__["__dict__"].__get__(cls))


def _module(cls: type) -> str:
    return _text(type.__dict__["__module__"].__get__(cls))


def _name(cls: type) -> str:
    return _text(type.__dict__["__qualname__"].__get__(cls))


def _is_module(value: object) -> TypeGuard[ModuleType]:
    return issubclass(type(value), ModuleType)


def _module_name(module: ModuleType) -> str:
    return _text(module_dict(module).get("__name__"))


def _text(value: object) -> str:
    return value if type(value) is str else ""


def _attributes(value: object) -> dict[str, Any] | None:
    """Return the attributes of an object that are in its ``__dict__``; None if that can't be read without calling its class."""
    for cls in _mro(type(value)):
        reader = _namespace(cls).get("__dict__")
        if reader is not None:
            if id(type(reader)) not in _READS:
                return None
            return cast("dict[str, Any]", reader.__get__(value))
    return {}
