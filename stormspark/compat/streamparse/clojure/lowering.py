"""Makes a class of the Python DSL from a topology in Clojure, whose components are classes of the project."""

from __future__ import annotations

import difflib
import importlib
import inspect
import logging
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from stormspark.compat.streamparse.bolt import Bolt
from stormspark.compat.streamparse.clojure.scripts import component_in
from stormspark.compat.streamparse.clojure.specs import ClojureGrouping, ClojureSpec, as_json, is_python
from stormspark.compat.streamparse.clojure.topologies import ClojureFile, ClojureTopology
from stormspark.compat.streamparse.clojure.values import JavaValue, Unknown
from stormspark.compat.streamparse.groupings import ChosenGrouping, Grouping
from stormspark.compat.streamparse.native import native
from stormspark.compat.streamparse.other_languages import NATIVE, java_object
from stormspark.compat.streamparse.specs import ComponentSpec, ShellBoltSpec, ShellSpoutSpec
from stormspark.compat.streamparse.spout import Spout
from stormspark.compat.streamparse.storm import ShellBolt, ShellSpout
from stormspark.compat.streamparse.streams import GlobalStreamId, Stream
from stormspark.compat.streamparse.topology import Topology, TopologyType
from stormspark.errors import InvalidTopologyError, StormsparkError, TopologyNotFoundError
from stormspark.user_code import add_line, older_python, other_module, raised
from stormspark.user_line import declared_at
from stormspark.working_folder import working_in

__all__ = ["ClassLoader", "chosen_topology", "topology_class"]

_log = logging.getLogger(__name__)

#: The command in the specs of Python classes. stormspark never runs it.
_COMMAND = "streamparse_run"
_GROUPINGS: Mapping[str, ChosenGrouping] = {
    "shuffle": Grouping.SHUFFLE,
    "all": Grouping.ALL,
    "none": Grouping.NONE,
    "direct": Grouping.DIRECT,
    "global": Grouping.GLOBAL,
    "local_or_shuffle": Grouping.LOCAL_OR_SHUFFLE,
}


def chosen_topology(file: ClojureFile, name: str | None) -> ClojureTopology:
    """Return the topology called ``name``, or the last one in the file, as streamparse 1 and 2 do (A37)."""
    found = {topology.name: topology for topology in file.topologies}
    if name is not None:
        if name not in found:
            there = f"there are {', '.join(map(repr, found))}" if found else "there is none in it"
            msg = f"{file.path} has no topology {name!r}; {there}"
            raise TopologyNotFoundError(msg)
        return found[name]
    if not found:
        msg = f"{file.path} has no topology: its last definition must be like (defn word-count [options] [{{spouts}} {{bolts}}])"
        if file.last is not None:
            called, line, why = file.last
            msg += f"\n  {file.path}:{line}: {called}: {why}"
        raise TopologyNotFoundError(msg)
    *others, last = found.values()
    if others:
        _log.warning(
            "%s has several topologies, the last one, %s, runs; for another one say %s:%s",
            file.path,
            last.name,
            file.path,
            others[-1].name,
        )
    return last


@dataclass(frozen=True)
class ClassLoader:
    """Imports the classes of a project. ``folder`` is the project's ``src``, which is on the module path.

    In streamparse 1 and 2 only the tasks import these modules, in the folder ``resources`` with the files of ``src``. So they may
    open such a file while they are imported.
    """

    folder: Path
    #: The working directory of the imports; None for the present one.
    working_folder: Path | None
    #: Returns a sentence on how to get a module that is missing.
    how_to_install: Callable[[str], str]

    def load(self, dotted: str, place: str) -> type:
        """Return the class ``module.Class``. Raises `TopologyNotFoundError`, which names ``place``."""
        module_name, _, name = dotted.rpartition(".")
        with working_in(self.working_folder):
            module = self._module(module_name, place)
        if (taken := other_module(module_name)) is not None:
            msg = f"{place}: {taken}"
            raise TopologyNotFoundError(msg)
        found = getattr(module, name, None)
        if isinstance(found, type) and issubclass(found, Spout | Bolt):
            return found
        if found is not None:
            msg = f"{place}: {dotted} is not a class of a streamparse spout or bolt"
            raise TopologyNotFoundError(msg)
        classes = [one for one, value in vars(module).items() if inspect.isclass(value)]
        close = difflib.get_close_matches(name, classes, 1)
        meant = f"; did you mean {module_name}.{close[0]}?" if close else ""
        msg = f"{place}: {module.__file__} has no class {name!r}{meant}"
        raise TopologyNotFoundError(msg)

    def _module(self, name: str, place: str) -> ModuleType:
        try:
            return importlib.import_module(name)
        except SyntaxError as error:
            msg = f"{place}: {error.filename}:{error.lineno}: {type(error).__name__}: {error.msg}"
            problem = TopologyNotFoundError(msg)
            if (hint := older_python(error)) is not None:
                problem.add_note(f"  {hint}")
            raise problem from error
        except StormsparkError as error:
            add_line(error, self.folder)
            raise
        except (Exception, SystemExit) as error:
            missing = error.name if isinstance(error, ModuleNotFoundError) else None
            if missing is not None and (name == missing or name.startswith(f"{missing}.")):
                msg = f"{place}: there is no module {name!r} in {self.folder}"
                raise TopologyNotFoundError(msg) from error
            msg = f"{place}: importing {name} raised {raised(error, self.folder)}"
            problem = TopologyNotFoundError(msg)
            if missing is not None:
                problem.add_note(f"  {older_python(error) or self.how_to_install(missing)}")
            raise problem from error


def topology_class(topology: ClojureTopology, path: Path, loader: ClassLoader) -> TopologyType:
    """Return a class of the Python DSL for a topology in the file ``path``.

    Raises `InvalidTopologyError` with everything that can't run, and the lines in the file.
    """
    for line, remark in topology.remarks + [one for spec in topology.specs.values() for one in spec.remarks]:
        _log.warning("%s:%s: %s", path, line, remark)
    if problems := topology.all_problems:
        msg = "\n".join(f"{path}:{line}: {problem}" for line, problem in problems)
        raise InvalidTopologyError(msg)
    body: dict[str, Any] = {}
    for id, spec in topology.specs.items():
        place = f"{path}:{spec.line}"
        with declared_at(place):
            body[f"component {id}"] = made = _spec(id, spec, loader, f"{place}: {spec.kind} {id!r}")
        made.early = True
    with declared_at(f"{path}:{topology.line}"):
        return TopologyType(topology.name, (Topology,), body)


def _spec(id: str, spec: ClojureSpec, loader: ClassLoader, place: str) -> ComponentSpec:
    shared: dict[str, Any] = {"name": id, "par": spec.parallelism or 1, "config": spec.conf or {}}
    if spec.streams is not None:
        shared["outputs"] = [
            Stream(list(stream.fields or ()), name=name, direct=stream.direct)
            for name, stream in spec.streams.items()
        ]
    if spec.kind == "bolt":
        shared["inputs"] = {
            GlobalStreamId(source, stream): _grouping(grouping)
            for (source, stream), grouping in (spec.inputs or {}).items()
        }
    spout = spec.kind == "spout"
    if spec.java is not None:
        made = _java_object(spec.java, place)
        shared.pop("outputs", None)
        return native(made, **shared)
    shell = ShellSpoutSpec if spout else ShellBoltSpec
    dotted = spec.class_name or _class_of_script(spec.command, loader.folder)
    if dotted:
        cls = loader.load(dotted, place)
        if not issubclass(cls, Spout if spout else Bolt):
            msg = f"{place}: {dotted} is a {'bolt' if spout else 'spout'}, and stands among the {spec.kind}s"
            raise InvalidTopologyError(msg)
        return shell(cls, command=_COMMAND, script=dotted, **shared)
    command, *arguments = spec.command
    return shell(ShellSpout if spout else ShellBolt, command=command, script=shlex.join(arguments), **shared)


def _java_object(java: JavaValue, place: str) -> Any:
    """Return the Python object that stands for a Java object."""
    file, _, component = place.partition(": ")
    at = f"{java.file or file.rpartition(':')[0]}:{java.line}: {component}"
    if java.fields_set:
        names = ", ".join(java.fields_set)
        msg = f"{at}: Clojure sets the fields {names} of the Java object {java.class_name}, which stormspark can't do: {NATIVE}"
        raise InvalidTopologyError(msg)
    unknown = next((one for one in java.arguments if isinstance(one, Unknown)), None)
    if unknown is not None:
        msg = f"{at}: an argument of {java.class_name} can't be made out without Clojure: {unknown.text} ({unknown.why})"
        raise InvalidTopologyError(msg)
    arguments = [
        _java_object(one, place) if isinstance(one, JavaValue) else as_json(one) for one in java.arguments
    ]
    return java_object(java.class_name, arguments, at)


def _class_of_script(command: tuple[str, ...], folder: Path) -> str:
    if not is_python(command):
        return ""
    script = folder / command[1]
    name = component_in(script) if script.is_file() else None
    return f"{'.'.join(Path(command[1]).with_suffix('').parts)}.{name}" if name else ""


def _grouping(grouping: ClojureGrouping) -> ChosenGrouping:
    if grouping.java is not None:
        return Grouping.custom_object(grouping.java.class_name, list(grouping.java.arguments))
    if grouping.kind == "fields":
        return Grouping.fields(list(grouping.fields))
    return _GROUPINGS[grouping.kind]
