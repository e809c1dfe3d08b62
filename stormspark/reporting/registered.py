"""Finds the classes that ``topology.metrics.consumer.register`` and ``topology.metrics.reporters`` name."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from stormspark.errors import InvalidTopologyError
from stormspark.likely_names import nearest

__all__ = ["class_of"]

#: Former names of Storm's packages, and today's.
_RENAMED = {"backtype.storm.": "org.apache.storm."}


def class_of(name: str, key: str, stock: Mapping[str, str], base: type) -> type | None:
    """Return the class that ``name`` names: ``module:Class``, ``module.Class`` or a name in ``stock``; None for a class of Java.

    ``key`` is the setting. Raises `InvalidTopologyError` if Python has the module but not the class, if the module's own code
    raises, or if the class is not one of ``base``.
    """
    for former, today in _RENAMED.items():
        if name.startswith(former):
            name = today + name.removeprefix(former)
    path = stock.get(name, name)
    if not set(":.") & set(path):
        msg = f"{key} names {name!r}, which is no class: name one as module:Class{nearest(name, stock)}"
        raise InvalidTopologyError(msg)
    module, _, cls = path.partition(":") if ":" in path else path.rpartition(".")
    try:
        found: Any = importlib.import_module(module)
        for part in cls.split("."):
            found = getattr(found, part)
    except ModuleNotFoundError as error:
        top = module.partition(".")[0]
        if ":" not in path and error.name is not None and error.name == top:
            return None
        msg = f"{key} names {name!r}, which can't be imported: {error}"
        raise InvalidTopologyError(msg) from error
    except (Exception, SystemExit) as error:
        msg = f"{key} names {name!r}, which can't be imported: {type(error).__name__}: {error}"
        raise InvalidTopologyError(msg) from error
    if not (isinstance(found, type) and issubclass(found, base)):
        msg = f"{key} names {name!r}, which is no class derived from {base.__module__}.{base.__name__}, but {found!r:.80}"
        raise InvalidTopologyError(msg)
    return found
