"""Makes the objects that a Flux file describes (K14).

For each object, it calls the constructor or factory, then sets the properties, then calls the methods.
"""

from __future__ import annotations

import inspect
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from stormspark.errors import InvalidTopologyError, StormsparkError
from stormspark.flux.arguments import Unfit, fitted, fitted_value
from stormspark.flux.class_names import class_named
from stormspark.flux.definition import Method, ObjectDefinition, Property, Reference, References
from stormspark.flux.document import nearest
from stormspark.user_line import raised_at

__all__ = ["Objects", "Unfinished", "spellings"]


class Unfinished(ABC):
    """The base class of stand-ins for Java objects with setters.

    Java makes such an object and then calls its setters. Python makes it in one call. So the stand-in collects the arguments of
    the setters, and then `finished` makes the object.
    """

    @abstractmethod
    def finished(self) -> Any:
        """Return the finished object."""


class Objects:
    """Makes the objects of a Flux file. It keeps the file's components, because other objects may refer to them.

    ``class_names`` maps the class names that the file itself defines to the names of Python classes (K23).
    """

    def __init__(self, class_names: Mapping[str, str]) -> None:
        self._class_names = class_names
        self._components: dict[str, Any] = {}
        self._all: Mapping[str, ObjectDefinition] = {}

    def make_components(self, definitions: Mapping[str, ObjectDefinition]) -> None:
        """Make the components in the order of the file, so that a component can refer to earlier ones."""
        self._all = definitions
        for definition in definitions.values():
            self._components[definition.id] = self.made(definition, f"component {definition.id!r}")

    def made(self, definition: ObjectDefinition, what: str) -> Any:
        """Make an object. Raises `InvalidTopologyError` for a mistake in the file.

        The message has the line of the mistake, ``what`` (the object's name in messages), and the object's class.
        """
        place = f"{definition.class_where}: {what}"
        found = class_named(definition.class_name, place, self._class_names)
        factory = definition.factory
        if factory is not None:
            made = self._call_method(found, factory, f"{what} ({definition.class_name})", "factory")
        elif callable(found):
            name = f"{what}: {definition.class_name}"
            made = self._call(found, definition.constructor_args, f"{definition.where}: {name}")
        else:
            msg = f"{place}: {definition.class_name} is a module: name a class or a function in it, or a factory"
            raise InvalidTopologyError(msg)
        for one in definition.properties:
            self._set(made, one, f"{what} ({definition.class_name})")
        for method in definition.config_methods:
            self._call_method(made, method, f"{what} ({definition.class_name})", "config method")
        if not isinstance(made, Unfinished):
            return made
        return _called(f"{definition.where}: {what}: {definition.class_name}", made.finished, [])

    def _call_method(self, owner: Any, method: Method, what: str, kind: str) -> Any:
        where = f"{method.where}: {what}"
        for name in spellings(method.name):
            if callable(found := getattr(owner, name, None)):
                return self._call(found, method.args, f"{where}: {kind} {method.name}")
        others = nearest(_snake(method.name), _methods(owner))
        msg = f"{where} has no {kind} {method.name}: {others}"
        raise InvalidTopologyError(msg)

    def _call(self, function: Callable[..., Any], args: Sequence[Any], place: str) -> Any:
        values = [self._resolved(arg) for arg in args]
        try:
            values = fitted(function, values)
        except Unfit as error:
            msg = f"{place} {error}"
            raise InvalidTopologyError(msg) from error
        return _called(place, function, values)

    def _set(self, made: Any, one: Property, what: str) -> None:
        where = f"{one.where}: {what}"
        value = self._resolved(one.value)
        for name in spellings(f"set{one.name[:1].upper()}{one.name[1:]}"):
            if callable(setter := getattr(made, name, None)):
                self._call(setter, [value], f"{where}: property {one.name}")
                return
        for name in spellings(one.name):
            if (
                not name.startswith("_")
                and hasattr(made, name)
                and not inspect.isroutine(getattr(made, name))
            ):
                try:
                    setattr(made, name, fitted_value(type(made), name, value))
                except (Unfit, AttributeError, TypeError) as error:
                    msg = f"{where}: property {one.name} can't be {value!r:.80}: {error}"
                    raise InvalidTopologyError(msg) from error
                return
        settable = [name.removeprefix("set_") for name in _methods(made) if name.startswith("set_")]
        settable += [name for name in getattr(made, "__dict__", {}) if not name.startswith("_")]
        setter_name = _snake(f"set{one.name[:1].upper()}{one.name[1:]}")
        others = nearest(_snake(one.name), settable)
        msg = f"{where} has neither a method {setter_name} nor an attribute {_snake(one.name)}: {others}"
        raise InvalidTopologyError(msg)

    def _resolved(self, arg: Any) -> Any:
        match arg:
            case Reference():
                return self._component(arg)
            case References(items):
                return [self._component(one) for one in items]
        return arg

    def _component(self, reference: Reference) -> Any:
        if reference.id in self._components:
            return self._components[reference.id]
        if reference.id in self._all:
            declared = self._all[reference.id].where
            msg = (
                f"{reference.where}: ref {reference.id!r} is declared at {declared}, after the component that refers to it"
                f": move it further up; two components can't refer to each other"
            )
        else:
            others = nearest(reference.id, self._all)
            msg = f"{reference.where}: there is no component {reference.id!r} to refer to: {others}"
        raise InvalidTopologyError(msg)


def _called(place: str, function: Callable[..., Any], values: Sequence[Any]) -> Any:
    """Call users' code. If the code raises, the error names the line of the YAML and the line of the code."""
    try:
        return function(*values)
    except (Exception, SystemExit) as error:
        line = raised_at(error)
        at = f"\n  at {line}" if line and not isinstance(error, StormsparkError) else ""
        kind = "" if isinstance(error, StormsparkError) else f"{type(error).__name__}: "
        msg = f"{place} raised {kind}{error}{at}"
        raise InvalidTopologyError(msg) from error


def spellings(name: str) -> tuple[str, ...]:
    """Return the names to try for a Java name: the name itself, and the name in Python's spelling."""
    return tuple(dict.fromkeys([name, _snake(name)]))


def _snake(name: str) -> str:
    """Return a Java name in Python's spelling.

    >>> _snake("withTickTupleIntervalSeconds"), _snake("setURLPath"), _snake("word")
    ('with_tick_tuple_interval_seconds', 'set_url_path', 'word')
    """
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def _methods(owner: object) -> list[str]:
    return [
        name
        for name in dir(owner)
        if not name.startswith("_") and callable(inspect.getattr_static(owner, name, None))
    ]
