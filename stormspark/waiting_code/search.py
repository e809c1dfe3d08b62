"""Finds out whether the code of a component only computes, or may wait: for time, a network, a file, a lock, a process.

The search reads bytecode and values. It calls none of the user's code: no function, no property, no ``__getattr__``. It follows
everything that the component's methods name, and everything in the component's attributes. Of a method that a subclass overrides
it reads only what other code calls, by ``super`` or by the name of the base class. Whatever it does not understand counts
as code that may wait. So if the search finds no reason, the code only computes. There is one exception: if an object arrives in a
tuple or in the configuration, the search knows only the names of the attributes that are used. A few such names count as waiting,
and all others do not.
"""

from __future__ import annotations

import gc
import os
from collections import deque
from contextlib import suppress
from functools import cached_property
from types import (
    BuiltinFunctionType,
    ClassMethodDescriptorType,
    FunctionType,
    MethodDescriptorType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import Any, NamedTuple, NoReturn

from stormspark.waiting_code.declared import WaitsValueError, declared_waits
from stormspark.waiting_code.hidden_values import hidden_values
from stormspark.waiting_code.known_code import (
    LEADS_ANYWHERE,
    WAITING_CALLS,
    WAITING_NAMES,
    Verdict,
    holds_no_code,
    is_stormspark,
    module_verdict,
    runs_any_code,
    shown,
    verdict,
)
from stormspark.waiting_code.overridden import LEADS_TO_BASES, Overridden
from stormspark.waiting_code.real_attributes import (
    attributes_of,
    bases,
    ids,
    is_module,
    module_name,
    module_of,
    mro,
    name_of,
    namespace,
    text,
)
from stormspark.waiting_code.uses import (
    ANY_PARENT,
    NOT_DEFINED,
    UNKNOWN,
    NotImported,
    ParentOf,
    Use,
    module_dict,
    uses,
)

__all__ = [
    "Findings",
    "declared_by",
    "declares_that_it_computes",
    "known_to_wait",
    "look_through",
    "waiting",
    "why_it_may_wait",
]

#: One search looks through at most this many functions, and at most this many values of all kinds. A component with more counts
#: as one that may wait.
_MOST_FUNCTIONS = 5_000
_MOST_VALUES = 100_000


#: Values of these types hold no other values.
_PLAIN = ids(
    *(str, bytes, bytearray, int, float, complex, bool, range, slice, type(None), type(Ellipsis)),
    *(type(NotImplemented), type(UNKNOWN)),
)
#: The types of members of a class that is written in C.
_IN_C = ids(MethodDescriptorType, WrapperDescriptorType, ClassMethodDescriptorType)
#: Names in a class's namespace that are not followed. They belong to annotations or to ``isinstance``, which no method uses, or
#: they are called only when the topology is built, and so in no executor.
_NOT_CODE = frozenset(
    "__annotations__ __annotate__ __annotate_func__ __orig_bases__ _abc_impl declare_output_fields".split()
)
#: Methods that are not called for each tuple. A component that declares that it only computes may still wait in them.
_NOT_PER_TUPLE = frozenset(
    """
    __init__ __getstate__ __setstate__ __reduce__ activate cleanup close deactivate declare_output_fields
    get_component_configuration initialize init_state open prepare setup teardown
    """.split()
)


class Findings(NamedTuple):
    """What the search has found out about a component's code."""

    #: Why the code may wait; None if it only computes, or if the component declares that.
    reason: str | None
    #: If the component declares that its code only computes (``waits = False``), but the code uses something that is known to
    #: wait: a description of this use. Otherwise None.
    contradiction: str | None = None


def look_through(component: object) -> Findings:
    """Look through the code of a component.

    Raises `WaitsValueError` if a class or an object sets ``waits`` to anything but True, False or None.
    """
    try:
        search = _Search(component)
        reason = search.reason()
    except WaitsValueError:
        raise
    except Exception as error:
        return Findings(f"its code can't be looked through ({type(error).__name__})")
    contradiction = known_to_wait(component) if reason is None and search.believes else None
    return Findings(reason, contradiction)


def known_to_wait(component: object) -> str | None:
    """Return a use of something that is known to wait, in code that runs for each tuple, or None. What ``waits`` says does not
    matter.
    """
    with suppress(Exception):
        return _Search(component, only_known=True).reason()
    return None


def waiting(code: object) -> tuple[str, str]:
    """Return why code may wait, and what it uses that is known to wait. A string is empty if there is nothing to say.

    Raises `WaitsValueError` as `look_through` does.
    """
    return look_through(code).reason or "", known_to_wait(code) or ""


def declares_that_it_computes(component: object) -> bool:
    """Return whether a component's class or instance says ``waits = False``. Raises `WaitsValueError` as `look_through` does."""
    return declared_by(component) is False


def declared_by(component: object) -> bool | None:
    """Return what a component's class or instance says by ``waits``. Raises `WaitsValueError` as `look_through` does."""
    return declared_waits(type(component), dict.get(attributes_of(component) or {}, "waits"))


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
    return look_through(component).reason


class _MayWaitError(Exception):
    """Ends the search. The message is the reason."""


class _Place(NamedTuple):
    """The place where a value is used, or the attribute that holds the value. Messages name the place."""

    #: The method of the component that leads to the value; empty if an attribute of the component holds the value.
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
            through = self._through()
            same = not self.name or self.name.rpartition(".")[2] == what.rpartition(".")[2]
            msg = (
                f"{self.method} {through}uses {what if same else f'{self.name}, and so {what}'} ({self.line})"
            )
        else:
            msg = f"its {self.name} has {what}" if self.name else f"it has {what}"
        raise _MayWaitError(msg)

    def _through(self) -> str:
        """Return the words that lead from the method to the function. All methods of a class count, called or not."""
        cls, _, function = self.leads_to.rpartition(".")
        if cls:
            return f"leads to {cls}, whose {function} "
        return f"leads to {function}, which " if function else ""


class _Search:
    """One search. It begins at a component, and looks at everything that the component uses.

    With ``only_known``, the search ignores ``waits = False``, except in stormspark's own classes. It ends only at something that
    is known to wait, and only in methods that are called for each tuple.
    """

    def __init__(self, component: object, *, only_known: bool = False) -> None:
        self._only_known = only_known
        #: Whether the search has skipped code because of ``waits = False``.
        self.believes = False
        self._to_do: deque[tuple[object, _Place]] = deque()
        #: All values found so far, by id. A value is kept here, so that no other value gets its id.
        self._found: dict[int, object] = {}
        self._overridden: Overridden[_Place] = Overridden()
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
            self._unknown(place, f"more than {_MOST_VALUES} values, too many to look through")
            return
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
        """Follow a function. If the function is known to compute, follow only its defaults, its attributes and its closure."""
        module, name = text(function.__globals__.get("__name__")), function.__name__
        known = verdict(module, name)
        if known is Verdict.WAITS:
            place.stop(shown(module, name))
        for given in (function.__defaults__, function.__kwdefaults__, function.__dict__):
            self._add(given, place)
        if known is Verdict.COMPUTES:
            self._add(function.__closure__, place)
            return
        self._functions += 1
        if self._functions > _MOST_FUNCTIONS:
            self._unknown(place, f"more than {_MOST_FUNCTIONS} functions, too many to look through")
            return
        method = place.method or name
        leads_to = function.__qualname__.rpartition("<locals>.")[2] if place.method else ""
        file = os.path.basename(function.__code__.co_filename)
        for use in uses(function):
            written = ".".join(filter(None, (use.name, *use.attributes)))
            self._use(use, _Place(method, leads_to, written, f"{file}:{use.line}"))

    def _function_in_c(self, function: Any, place: _Place) -> None:
        """Look at a function in C. If it is a bound method, look at its object."""
        owner = function.__self__
        if owner is not None and not is_module(owner):
            self._add(owner, place)
            return
        module = text(function.__module__) or (module_name(owner) if is_module(owner) else "")
        self._check(module, function.__name__, place)

    def _unknown(self, place: _Place, what: str) -> None:
        """End the search, because the code at this place is unknown and may wait. With ``only_known``, go on."""
        if not self._only_known:
            place.stop(what)

    def _check(self, module: str, name: str, place: _Place) -> None:
        """Check a name of a module whose code can't be read. End the search unless the name is known to compute."""
        known = verdict(module, name)
        if known is Verdict.WAITS:
            place.stop(shown(module, name))
        if known is Verdict.UNKNOWN:
            why = "may run any code" if runs_any_code(module, name) else "is compiled"
            self._unknown(place, f"{shown(module, name)}, which {why}")

    def _use(self, use: Use, place: _Place) -> None:
        """Follow a value that a function uses, or the attribute of a module."""
        value, attributes = use.root, use.attributes
        if value is super or use.name in LEADS_TO_BASES or not LEADS_TO_BASES.isdisjoint(attributes):
            self._use_parent(ANY_PARENT, "")
        while attributes and is_module(value):
            module, name = module_name(value), attributes[0]
            member = module_dict(value).get(name, NOT_DEFINED)
            known = verdict(module, name)
            if not is_module(member) and known is not Verdict.UNKNOWN:
                if known is Verdict.WAITS:
                    place.stop(shown(module, name))
                return
            value, attributes = member, attributes[1:]
        if value is NOT_DEFINED:
            self._unknown(place, "what is not defined so far")
            return
        if type(value) is NotImported:
            if self._only_known and attributes and verdict(value.module, attributes[0]) is Verdict.WAITS:
                place.stop(f"{value.module}.{attributes[0]}")
            if module_verdict(value.module) is not Verdict.COMPUTES:
                self._unknown(place, "a module that is not imported so far")
            return
        for number, attribute in enumerate(attributes, 1):
            called = use.called and number == len(attributes)
            if attribute in WAITING_NAMES:
                place.stop(f".{attribute}")
            if attribute in LEADS_ANYWHERE or (called and attribute in WAITING_CALLS):
                self._unknown(place, f".{attribute}")
        if value is ANY_PARENT or type(value) is ParentOf:
            self._use_parent(value, attributes[0] if attributes else "")
            return
        if attributes and issubclass(type(value), type):
            value = self._overridden.named(value, attributes[0])
        self._add(value, place)

    def _use_parent(self, parent: object, name: str) -> None:
        """Follow what the code takes of ``super()``: the overridden members of this name."""
        for member, where in self._overridden.reached(parent, name):
            self._add(member, where)

    def _whole_module(self, module: ModuleType, place: _Place) -> None:
        """Look at a whole module, because the code uses it as a value, and any of its names may be used."""
        known = module_verdict(module_name(module))
        if known is Verdict.WAITS:
            self._unknown(place, module_name(module))
        if known is Verdict.UNKNOWN:
            for value in module_dict(module).values():
                self._add(value, place)

    # -- classes and instances -------------------------------------------------------------------------------

    def _class(self, cls: type, place: _Place) -> None:
        """Follow the members of a user's class and of its bases, as Python finds them, and its metaclass.

        Of each name, Python finds the first definition in the order of the classes. `Overridden` keeps the others.
        """
        users: set[int] = set()
        self._find_users(cls, place, users)
        if not users:
            return
        self._overridden.reads(cls)
        classes = mro(cls)
        found_at: dict[str, int] = {}
        for at, one in enumerate(classes):
            if id(one) not in users:
                continue
            for name, member in namespace(one).items():
                if id(type(member)) in _IN_C and member.__objclass__ is one:
                    self._unknown(place, f"{shown(module_of(one), name_of(one))}, which is compiled")
                is_asked_once = self._only_known and not place.name and name in _NOT_PER_TUPLE
                if name in _NOT_CODE or is_asked_once:
                    continue
                overriding = classes[found_at[name] : at] if name in found_at else ()
                found_at[name] = at
                where = place.attribute(name)
                if not overriding or self._overridden.add(name, member, where, overriding):
                    self._add(member, where)
        self._add(type(cls), place)

    def _find_users(self, cls: type, place: _Place, users: set[int]) -> None:
        """Add the ids of a class and of its bases to ``users``, but not those of known classes, nor of bases of these alone."""
        if id(cls) not in users and not self._says_that_it_computes(cls) and not _is_known(cls, place):
            users.add(id(cls))
            for base in bases(cls):
                self._find_users(base, place, users)

    def _instance(self, value: Any, place: _Place) -> None:
        """Follow the class of an object, and all that the object holds."""
        cls = type(value)
        if cls is super:
            self._use_parent(ANY_PARENT, "")
        if name_of(cls) == "cython_function_or_method" and module_of(cls).startswith("_cython"):
            self._check(text(value.__module__), value.__name__, place)
            return
        held = [one for one in gc.get_referents(value) if one is not cls]
        # Reading the __dict__ of an object that has no attributes so far would make its attributes slower.
        attributes = attributes_of(value) if held else {}
        if attributes is None:
            self._unknown(place, f"an object of {name_of(cls)}, which defines a __dict__ of its own")
            return
        if self._says_that_it_computes(cls, dict.get(attributes, "waits")):
            return
        self._add(cls, place)
        hidden = hidden_values(value)
        if hidden is None:
            self._unknown(place, f"{shown(module_of(cls), name_of(cls))}, whose value can't be looked at")
            return
        for one in hidden:
            self._add(one, place)
        if holds_no_code(module_of(cls)):
            return
        if cls is cached_property:
            self._add(attributes["func"], place)  # its lock does not count, because nobody waits long for it
            return
        for name, one in dict.items(attributes):
            self._add(one, place.attribute(name))
        for one in held:
            if one is not attributes:
                self._add(one, place)

    def _says_that_it_computes(self, cls: type, own: object = None) -> bool:
        """Return whether a component declares ``waits = False``. End the search if it declares ``waits = True``."""
        waits = declared_waits(cls, own)
        if waits is True and not self._only_known:
            msg = "its class says so (waits = True)"
            raise _MayWaitError(msg)
        self.believes |= waits is False
        # What stormspark says of its own classes is always believed, because its users can't change it.
        return waits is False and (not self._only_known or is_stormspark(module_of(cls)))


def _is_known(cls: type, place: _Place) -> bool:
    """Return whether a class is known to compute. End the search if it is known to wait."""
    known = verdict(module_of(cls), name_of(cls).partition(".")[0])
    if known is Verdict.WAITS:
        place.stop(shown(module_of(cls), name_of(cls)))
    return known is Verdict.COMPUTES
