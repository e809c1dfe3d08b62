"""Finds the Python class, function or module for a class name in a Flux file (K23). Users' own names come before Storm's."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, cast

from stormspark.errors import InvalidTopologyError, StormsparkError
from stormspark.flux.storm_classes import NOT_PROVIDED, OLD_KAFKA, RENAMED, STORM_CLASSES
from stormspark.user_line import raised_at

__all__ = ["class_named", "known_class_names", "name_of_today", "register"]

Factory = Callable[..., Any]

_registered: dict[str, Factory | str] = {}


def register(class_name: str, factory: Factory | str) -> None:
    """Let ``factory`` stand for a Java class in Flux files.

    ``factory`` is a Python class, a function, or the dotted path of a class or function. It is called with the constructor's
    arguments. Properties and config methods then apply to the object that ``factory`` returns. A later call of `register` for the
    same Java class replaces an earlier call.

    Put calls of `register` into a file ``flux_classes.py`` in the folder of the YAML file. ``flux_classes.py`` is imported before
    any class name is looked up.

    Raises `InvalidTopologyError` if ``factory`` is not a class, a function or a path (K23).

    >>> from stormspark.testing import IdentityBolt
    >>> register("com.acme.CopyBolt", IdentityBolt)
    >>> class_named("com.acme.CopyBolt", "topology.yaml:3: bolt 'copy'") is IdentityBolt
    True
    """
    if not isinstance(class_name, str) or not class_name:
        msg = f"register needs the name of a Java class, got {class_name!r}"
        raise InvalidTopologyError(msg)
    if not callable(factory) and not isinstance(factory, str):
        msg = f"register({class_name!r}, ...) needs a class, a function, or the dotted path of one, got {factory!r}"
        raise InvalidTopologyError(msg)
    _registered[class_name] = factory


def class_named(class_name: str, place: str, own: Mapping[str, str] | None = None) -> Factory | ModuleType:
    """Return the class, function or module that stands for ``class_name``.

    ``own`` are the class names that the file itself defines. They are looked up first, then registered names, then Storm's
    classes, then dotted paths of Python. Error messages begin with ``place``: the line, and the part of the file that uses the
    name.

    Raises `InvalidTopologyError` if the name is unknown.

    >>> class_named("org.apache.storm.tuple.Fields", "topology.yaml:3: component 'f'").__name__
    'fields'
    >>> class_named("collections.Counter", "topology.yaml:3: component 'c'").__name__
    'Counter'
    """
    name = name_of_today(class_name)
    mapped: Factory | str | None = (own or {}).get(class_name) or _registered.get(class_name)
    mapped = mapped or STORM_CLASSES.get(name)
    if mapped is None:
        mapped = class_name
    elif callable(mapped):
        return mapped
    found = _imported(mapped, place, class_name)
    if found is not None:
        return found
    if mapped is not class_name:
        msg = f"{place}: {mapped} stands for {class_name}, but can't be found"
    else:
        msg = f"{place}: no Python is known for the class {class_name}. {_advice(class_name, name)}"
    raise InvalidTopologyError(msg)


def known_class_names() -> list[str]:
    """Return the names of all Java classes that have a stand-in."""
    return sorted({*STORM_CLASSES, *_registered})


def _imported(path: str, place: str, class_name: str) -> Factory | ModuleType | None:
    """Return the class, function or module at a dotted path, such as ``package.module.Class``; None if nothing has this path.

    Raises `InvalidTopologyError` for any other object, and for a name that an existing module does not have.
    """
    parts = path.replace(":", ".").replace("$", ".").split(".")
    if not all(part.isidentifier() for part in parts):
        return None
    for count in range(len(parts), 0, -1):
        module = _module(".".join(parts[:count]), place, class_name)
        if module is None:
            continue
        found: Any = module
        for part in parts[count:]:
            found = getattr(found, part, None)
        if isinstance(found, ModuleType):
            return found
        if callable(found):
            return cast(Factory, found)
        if found is not None:
            msg = f"{place}: {path} must be a class or a function, got {found!r:.80} of type {type(found).__name__}"
            raise InvalidTopologyError(msg)
        if path != class_name or count == len(parts) - 1:
            _refuse_missing(module, parts, count, place, path)
        return None
    return None


def _refuse_missing(module: ModuleType, parts: list[str], count: int, place: str, path: str) -> None:
    """Raise an error that says which name ``module`` lacks. The name in the file is most likely misspelled."""
    names = [name for name, value in vars(module).items() if isinstance(value, type)]
    like = difflib.get_close_matches(parts[count], names, 1)
    asked = f": did you mean {like[0]}?" if like else ""
    msg = f"{place}: {path}: the module {module.__name__} has no {parts[count]}{asked}"
    raise InvalidTopologyError(msg)


def _module(name: str, place: str, class_name: str) -> ModuleType | None:
    """Import a module. Returns None if no module has this name. If the module's own code raises, the error says so."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            return None
        problem: BaseException = error
    except StormsparkError:
        raise
    except (Exception, SystemExit) as error:
        problem = error
    line = raised_at(problem)
    at = f"\n  at {line}" if line else ""
    msg = f"{place}: importing {name} for {class_name} raised {type(problem).__name__}: {problem}{at}"
    raise InvalidTopologyError(msg) from problem


def name_of_today(class_name: str) -> str:
    """Return the current name of a class of Storm or Heron.

    >>> name_of_today("backtype.storm.testing.TestWordSpout")
    'org.apache.storm.testing.TestWordSpout'
    """
    for old, new in RENAMED.items():
        if class_name.startswith(old):
            return new + class_name.removeprefix(old)
    return class_name


def _advice(class_name: str, name: str) -> str:
    if name in OLD_KAFKA:
        return (
            "This is the spout that finds the brokers by ZooKeeper, which Kafka has no more: put "
            "org.apache.storm.kafka.spout.KafkaSpout in its place, whose constructor argument is a "
            "org.apache.storm.kafka.spout.KafkaSpoutConfig of a KafkaSpoutConfig$Builder with constructorArgs: [BROKERS, TOPIC] "
            "(docs/kafka.md)"
        )
    for package, what in NOT_PROVIDED.items():
        if name.startswith(package):  # K12
            return (
                f"{what} is not provided: write a bolt that does what {class_name.rpartition('.')[2]} did with a client of "
                f"your choice, and {_how_to_register(class_name)}"
            )
    known = known_class_names()
    simple = {one.rpartition(".")[2]: one for one in known}
    like = difflib.get_close_matches(name, known, 2, 0.85) or [
        simple[one] for one in difflib.get_close_matches(name.rpartition(".")[2], simple, 1, 0.85)
    ]
    asked = f"Did you mean {' or '.join(like)}? " if like else ""
    how = _how_to_register(class_name)
    if (module := _own_module(class_name)) is not None:
        return (
            f"{asked}If it is a class in Python, there is no module {module}, neither beside the YAML nor in this Python: put "
            f"{module}.py beside the YAML. If not, {how}"
        )
    return f"{asked}Name a Python class by its dotted path, or {how}"


def _own_module(class_name: str) -> str | None:
    """Return the module in which a user would look for this class; None if the name looks like one of Java's.

    >>> _own_module("my_bolts.ShoutBolt"), _own_module("com.acme.ShoutBolt")
    ('my_bolts', None)
    """
    module, dot, name = class_name.partition(".")
    return module if dot and name.isidentifier() and module.isidentifier() else None


def _how_to_register(class_name: str) -> str:
    return (
        f"map the name to one: with stormspark.flux.register({class_name!r}, YourClass) in a file flux_classes.py beside the "
        f"YAML, or with a line {class_name}: your_module.YourClass under classNames: in it"
    )
