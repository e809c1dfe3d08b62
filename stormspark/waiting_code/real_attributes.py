"""Reads what an object and its class really have, even if the class or its metaclass shows something else. No user code runs."""

from __future__ import annotations

from collections.abc import Mapping
from types import GetSetDescriptorType, MemberDescriptorType, ModuleType
from typing import Any, TypeGuard, cast

from stormspark.waiting_code.uses import module_dict

__all__ = [
    "attributes_of",
    "bases",
    "ids",
    "is_module",
    "module_name",
    "module_of",
    "mro",
    "name_of",
    "namespace",
    "text",
]


def ids(*types: type) -> frozenset[int]:
    """Return the ids of types. A type is compared by its id, because a user's metaclass may define how its types compare."""
    return frozenset(map(id, types))


#: A descriptor of one of these types reads an object's real attribute, without user code.
_READS = ids(GetSetDescriptorType, MemberDescriptorType)


def mro(cls: type) -> tuple[type, ...]:
    """Return the classes in which Python looks up the attributes of a class, in order."""
    return cast("tuple[type, ...]", type.__dict__["__mro__"].__get__(cls))


def bases(cls: type) -> tuple[type, ...]:
    """Return the bases of a class."""
    return cast("tuple[type, ...]", type.__dict__["__bases__"].__get__(cls))


def namespace(cls: type) -> Mapping[str, Any]:
    """Return what a class itself defines."""
    return cast("Mapping[str, Any]", type.__dict__["__dict__"].__get__(cls))


def module_of(cls: type) -> str:
    """Return the name of the module in which a class was defined."""
    return text(type.__dict__["__module__"].__get__(cls))


def name_of(cls: type) -> str:
    """Return the qualified name of a class."""
    return text(type.__dict__["__qualname__"].__get__(cls))


def is_module(value: object) -> TypeGuard[ModuleType]:
    """Return whether a value is a module."""
    return issubclass(type(value), ModuleType)


def module_name(module: ModuleType) -> str:
    """Return the name of a module."""
    return text(module_dict(module).get("__name__"))


def text(value: object) -> str:
    """Return a string as it is, and an empty one for any other value."""
    return value if type(value) is str else ""


def attributes_of(value: object) -> dict[str, Any] | None:
    """Return the attributes of an object that are in its ``__dict__``; None if reading them would run code of its class."""
    for cls in mro(type(value)):
        reader = namespace(cls).get("__dict__")
        if reader is not None:
            if id(type(reader)) not in _READS:
                return None
            return cast("dict[str, Any]", reader.__get__(value))
    return {}
