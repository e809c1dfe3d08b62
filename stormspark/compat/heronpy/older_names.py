"""Finds heronpy's modules under the names that they had in older releases."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

__all__ = ["OlderNames", "older_export"]

#: The older names of packages, each with its present name. Release 0.14 had ``heron.pyheron``, 0.15 had ``heron.api``, and
#: others had ``src.python`` inside ``heronpy``.
#: The dict has ``heron.examples`` because one of Heron's examples imports another example by its older name.
_MOVED = {
    "heron.pyheron.src.python": "heronpy.api",
    "heron.api.src.python": "heronpy.api",
    "heron.streamlet.src.python": "heronpy.streamlet",
    "heronpy.api.src.python": "heronpy.api",
    "heronpy.streamlet.src.python": "heronpy.streamlet",
    "heronpy.connectors.textfiles.src.python": "heronpy.connectors.textfiles",
    "heronpy.connectors.pulsar.src.python": "heronpy.connectors.pulsar",
    "heronpy.connectors.mock.src.python": "heronpy.connectors.mock",
    "pyheron": "heronpy.api",
    "heron.examples": "examples",
}
_RENAMED = {"heronpy.api.constants": "heronpy.api.api_constants"}
#: Modules that are in ``heronpy.api`` now, and once were in ``heronpy`` itself.
_WITHOUT_API = frozenset(
    """bolt component constants custom_grouping global_metrics metrics serializer spout state stream task_hook topology
    topology_context tuple""".split()
)
#: Classes that once were in ``heronpy.api`` itself. The keys are the modules that they are in now.
_EXPORTS = {
    "bolt.bolt": ("Bolt",),
    "bolt.window_bolt": ("SlidingWindowBolt", "TumblingWindowBolt"),
    "spout.spout": ("Spout",),
    "stream": ("Grouping", "Stream"),
    "topology": ("Topology", "TopologyBuilder"),
    "custom_grouping": ("ICustomGrouping",),
    "task_hook": ("ITaskHook",),
    "serializer": ("IHeronSerializer", "PythonSerializer"),
    "state.state": ("HashMapState", "State"),
    "state.stateful_component": ("StatefulComponent",),
    "component.component_spec": ("GlobalStreamId", "HeronComponentSpec"),
    "topology_context": ("TopologyContext",),
}


def older_export(name: str) -> Any:
    """Return a class, or the module ``constants``, that ``heronpy.api`` had in older releases.

    Raises AttributeError if it had nothing of this name.
    """
    for module, names in _EXPORTS.items():
        if name in names:
            return getattr(importlib.import_module(f"heronpy.api.{module}"), name)
    if name == "constants":
        return importlib.import_module("heronpy.api.api_constants")
    msg = f"module 'heronpy.api' has no attribute {name!r}"
    raise AttributeError(msg)


def _now(name: str) -> str | None:
    """Return the present name of a module that has an older name.

    Returns an empty string for a package that existed only to contain such modules, and None for all other names.

    >>> _now("heron.api.src.python.bolt.bolt"), _now("heronpy.topology"), _now("heron.api"), _now("heronpy.api.topology")
    ('heronpy.api.bolt.bolt', 'heronpy.api.topology', '', None)
    """
    for old, new in _MOVED.items():
        if name == old or name.startswith(f"{old}."):
            moved = new + name.removeprefix(old)
            return _RENAMED.get(moved, moved)
        if old.startswith(f"{name}.") and not name.startswith("heronpy.api.bolt"):
            return "" if name not in ("heronpy", "heronpy.api", "heronpy.streamlet") else None
    package, _, rest = name.partition(".")
    if package == "heronpy" and rest.partition(".")[0] in _WITHOUT_API:
        return _RENAMED.get(f"heronpy.api.{rest}", f"heronpy.api.{rest}")
    return _RENAMED.get(name)


class OlderNames(MetaPathFinder, Loader):
    """Finds modules by their older names. A class is the same object under both names of its module."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """See `importlib.abc.MetaPathFinder`. Python asks this finder after all others."""
        return None if _now(name) is None else ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Make a stand-in module, which passes on the attributes of the module that has the present name.

        For a package, return None, so that Python makes an empty package.
        """
        now = _now(spec.name)
        if not now:
            return None
        # If this method returned the real module, the import system would overwrite that module's ``__spec__``.
        module = importlib.import_module(now)
        stand_in = ModuleType(spec.name)
        stand_in.__dict__["__getattr__"] = lambda name: getattr(module, name)
        stand_in.__dict__["__all__"] = [name for name in vars(module) if not name.startswith("_")]
        stand_in.__path__ = []
        return stand_in

    def exec_module(self, module: ModuleType) -> None:
        """Register the stand-in. It has no code to run."""
        sys.modules[module.__name__] = module
