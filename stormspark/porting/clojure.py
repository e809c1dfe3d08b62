"""Reads topologies in Clojure, of streamparse 1 and 2, and drafts each in Python (A30, A37)."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from stormspark.compat.streamparse.clojure import ClojureSpec, ClojureTopology, read_clojure
from stormspark.compat.streamparse.clojure.scripts import component_in
from stormspark.compat.streamparse.clojure.specs import is_python
from stormspark.compat.streamparse.clojure.values import ClojureError
from stormspark.compat.streamparse.project import OPTIONS_OF_SPARSE
from stormspark.compat.streamparse.project_config import find_config
from stormspark.errors import StormsparkError, UnsupportedEnvironmentError
from stormspark.flux.class_names import known_class_names
from stormspark.porting.clojure_draft import draft, draft_name
from stormspark.porting.findings import (
    ComponentFound,
    Findings,
    InputFound,
    Place,
    Setting,
    StreamFound,
    TopologyFound,
)
from stormspark.porting.keys import about_settings
from stormspark.porting.python_components import report_behaviour
from stormspark.porting.python_source import PythonClass, PythonFile, PythonProject

__all__ = ["read_clojure_files", "report_those_that_run"]

#: A file without one of these words has no topology.
_OF_STORM: Final = re.compile(r"streamparse\.specs|storm\.clojure|(?:shell|python)-(?:bolt|spout)-spec")
_FRONT_END: Final = "streamparse-clojure"
_UNREAD: Final = ("can't be made out", "only Clojure can make")


class _Options(dict[str, Any]):
    """The options of an environment. Notes which of them the Clojure code reads."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.read: dict[str, None] = {}
        self.environment: str | None = None
        try:
            config = find_config(path)
            environments = config.content.get("envs") or {}
            environment = config.environment(next(iter(environments), None))
            self.environment = environment.name
            self.update({**OPTIONS_OF_SPARSE, **environment.options({})})
        except StormsparkError:  # `read_config` reports what is wrong
            self.update(OPTIONS_OF_SPARSE)

    def get(self, key: Any, default: Any = None) -> Any:
        """Look up an option."""
        self.read[str(key)] = None
        return super().get(key, default)


def read_clojure_files(
    project: PythonProject, paths: list[Path], findings: Findings
) -> list[tuple[str, str]]:
    """Read the topologies in Clojure files. Returns a draft of each: the name of its file, and the file's content.

    If no reader for Clojure is installed, this is reported for each file, and the rest of the project is read all the same.
    """
    drafts: dict[str, str] = {}
    read = 0
    for path in paths:
        try:
            text = path.read_text("utf-8-sig", errors="replace")
        except OSError as error:
            findings.report("unread", f"can't be read: {error.strerror}", Place(project.shown(path), 1))
            continue
        if (path.name == "project.clj" and "(defproject" in text) or not _OF_STORM.search(text):
            continue
        read += 1
        for topology, found in _topologies(project, path, findings):
            name = draft_name(topology, set(drafts))
            drafts[name] = draft(topology, project.shown(path), _classes(topology, path, project))
            found.skeleton = name
            findings.topologies.append(found)
    if read:
        findings.files["clojure"] = read
    return list(drafts.items())


def _topologies(
    project: PythonProject, path: Path, findings: Findings
) -> Iterator[tuple[ClojureTopology, TopologyFound]]:
    shown = project.shown(path)
    try:
        options = _Options(path)
        file = read_clojure(path, options)
    except UnsupportedEnvironmentError as error:
        reason, _, todo = str(error).partition(": ")
        findings.report("unread", reason, Place(shown, 1), todo)
        return
    except ClojureError as error:
        findings.report(
            "unread",
            f"this is not valid Clojure: {error.problem}",
            Place(shown, error.line),
            "correct the file",
        )
        return
    if not file.topologies:
        name, line, why = file.last or ("the file", 1, "it defines nothing")
        findings.report("unread", f"no topology was found: {name}: {why}", Place(shown, line))
    for topology in file.topologies:
        found = _found(project, path, topology)
        if options.read:
            of = f" of environment {options.environment!r}" if options.environment else ""
            found.report(
                "note",
                f"the Clojure code reads the options {', '.join(options.read)}; here and in the draft are the values{of}",
                found.place,
                "for several environments write par={...} in the draft",
            )
        yield topology, found


def _found(project: PythonProject, path: Path, topology: ClojureTopology) -> TopologyFound:
    shown = project.shown(path)
    found = TopologyFound(topology.name, _FRONT_END, Place(shown, topology.line))
    for line, problem in topology.all_problems:
        unread = any(part in problem for part in _UNREAD)
        found.report(
            "unread" if unread else "change",
            problem,
            Place(shown, line),
            "no Clojure runs here: write a value in its place, or complete the Python draft"
            if unread
            else "correct the file",
        )
    for line, remark in [
        *topology.remarks,
        *(one for spec in topology.specs.values() for one in spec.remarks),
    ]:
        found.report("note", remark, Place(shown, line))
    for id, spec in topology.specs.items():
        component = _component(id, spec, shown)
        if not _of_script(spec.command, path):  # the class of such a script runs in the worker
            component.command = spec.command
        found.components.append(component)
        found.settings += [
            Setting(key, value, Place(shown, spec.line), id) for key, value in (spec.conf or {}).items()
        ]
        _report_class(project, path, found, id, spec)
    found.statements += list(about_settings(found.settings))
    _report_graph(found)
    return found


def report_those_that_run(findings: Findings) -> None:
    """Report which topologies in Clojure run as they are: those of which nothing else says that they do not."""
    of_files = Counter(one.place.file for one in findings.topologies if one.front_end == _FRONT_END)
    for found in findings.topologies:
        if found.front_end != _FRONT_END or any(one.kind in ("change", "unread") for one in found.statements):
            continue
        file = found.place.file
        of_file = f"{file}:{found.name}" if of_files[file] > 1 else file
        found.report("runs", f"it runs as it is: stormspark run {of_file}", found.place)


def _report_graph(found: TopologyFound) -> None:
    """Report ids and subscriptions with which a topology can't be built."""
    streams = {one.id: one.streams for one in found.components}
    if not any(one.kind == "spout" for one in found.components):
        found.report("change", "it has no spout", found.place, "give it one")
    for component in found.components:
        if component.id is not None and component.id.startswith("__"):
            todo = "choose another one"
            found.report(
                "change",
                f"{component.label}: ids that begin with __ are reserved",  # A13
                component.place,
                todo,
            )
        for one in component.inputs:
            if one.source is None or one.stream is None:
                continue
            problem = _problem(one, streams)
            if problem is not None:
                found.report("change", f"{component.label} {problem}", one.place, "correct the file")


def _problem(one: InputFound, streams: Mapping[str | None, tuple[StreamFound, ...] | None]) -> str | None:
    if one.source not in streams:
        return f"subscribes to {one.source!r}, which is no component of this topology"  # A35
    if one.custom:
        return f"takes stream {one.stream!r} of {one.source!r} by {one.custom}, a grouping in Java, which can't run"  # A34
    declared = streams[one.source]
    if declared is None:
        return None
    stream = next((known for known in declared if known.id == one.stream), None)
    if stream is None:
        return f"subscribes to stream {one.stream!r} of {one.source!r}, which does not declare it"
    missing = [name for name in one.fields or () if stream.fields is not None and name not in stream.fields]
    if one.grouping == "fields" and missing:
        return f"groups by {', '.join(map(repr, missing))}, which is no field of stream {one.stream!r} of {one.source!r}"  # A36
    return None


def _component(id: str, spec: ClojureSpec, shown: str) -> ComponentFound:
    place = Place(shown, spec.line)
    streams = None
    if spec.streams is not None:
        streams = tuple(
            StreamFound(name, stream.fields, place, stream.direct) for name, stream in spec.streams.items()
        )
    component = ComponentFound(
        id=id,
        kind=spec.kind,
        type_name=spec.class_name.rpartition(".")[2]
        or " ".join(spec.command)
        or (spec.java.class_name if spec.java else "?"),
        place=place,
        parallelism=spec.parallelism,
        streams=streams,
    )
    if spec.inputs is None:
        component.inputs = [InputFound(None, None, "?", place, None)]
    else:
        component.inputs = [
            InputFound(
                source,
                stream,
                grouping.kind,
                place,
                grouping.fields,
                grouping.java.class_name if grouping.java else "",
            )
            for (source, stream), grouping in spec.inputs.items()
        ]
    return component


def _report_class(
    project: PythonProject, path: Path, found: TopologyFound, id: str, spec: ClojureSpec
) -> None:
    place = Place(project.shown(path), spec.line)
    label = f"{spec.kind} {id!r}"
    if dotted := spec.class_name or _of_script(spec.command, path):
        cls = _class(dotted, path, project)
        if cls is None:
            module = _module(dotted, path)
            if module is None:
                text, todo = f"the module of the class {dotted} is not in the project", "look for its file"
            elif module.absolute() in project.errors:
                text = f"Python can't parse {project.shown(module)}, with the class {dotted}"
                todo = "correct that file"
            else:
                text = f"{project.shown(module)} defines no class {dotted.rpartition('.')[2]}"
                todo = "correct the name"
            found.report("change", f"{label}: {text}", place, todo)
            return
        other = "Bolt" if spec.kind == "spout" else "Spout"
        if any(base.rpartition(".")[2].endswith(other) for base in cls.bases()):
            todo = f"move it among the {other.lower()}s"
            found.report(
                "change",
                f"{label}: {dotted} is a {other.lower()}, and stands among the {spec.kind}s",
                place,
                todo,
            )
        report_behaviour(found, project, label, cls)
        _report_batches(found, label, cls)
    elif spec.java is not None and spec.java.class_name not in known_class_names():
        found.report(
            "change",
            f"{label} is the Java class {spec.java.class_name}, and no Python is known for it",  # A32
            place,
            f"write it in Python, and call stormspark.flux.register({spec.java.class_name!r}, YourClass) in src/flux_classes.py",
        )


def _report_batches(found: TopologyFound, label: str, cls: PythonClass) -> None:
    bases = {base.rpartition(".")[2] for base in cls.bases()}
    if "BatchingBolt" in bases:
        found.report(
            "note",
            f"{label}: the batches of {cls.name} end by time as in streamparse 1, unless topology.tick.tuple.freq.secs is set",
            cls.place,
            "for a topology in Python let it extend TicklessBatchingBolt, or set that key",
        )


def _module(dotted: str, path: Path) -> Path | None:
    """Return the file of the module in which a class should be; None if there is no such file."""
    parts = dotted.split(".")[:-1]
    for folder in _folders(path):
        for candidate in (folder.joinpath(*parts).with_suffix(".py"), folder.joinpath(*parts, "__init__.py")):
            if parts and candidate.is_file():
                return candidate
    return None


def _folders(path: Path) -> tuple[Path, ...]:
    return path.parent.parent / "src", path.parent.parent, path.parent


def _of_script(command: tuple[str, ...], path: Path) -> str:
    if not is_python(command):
        return ""
    for folder in _folders(path):
        script = folder / command[1]
        if script.is_file() and (name := component_in(script)):
            return f"{'.'.join(Path(command[1]).with_suffix('').parts)}.{name}"
    return ""


def _class(dotted: str, path: Path, project: PythonProject) -> PythonClass | None:
    beside = PythonFile(path, project.shown(path), ast.Module([], []))
    try:
        name = ast.parse(dotted, mode="eval").body
    except SyntaxError:
        return None
    return project.find_class(name, beside)


def _classes(topology: ClojureTopology, path: Path, project: PythonProject) -> dict[str, str]:
    """Return the class of each component that has one in the project, as ``module.Class``."""
    named = {id: spec.class_name or _of_script(spec.command, path) for id, spec in topology.specs.items()}
    return {
        id: dotted
        for id, dotted in named.items()
        if dotted and (_class(dotted, path, project) is not None or _fails(dotted, path, project))
    }


def _fails(dotted: str, path: Path, project: PythonProject) -> bool:
    """Return whether there is a file for a class, but Python can't parse it. The class may be in it."""
    module = _module(dotted, path)
    return module is not None and module.absolute() in project.errors
