"""Reads Flux and ECO files with the reader of `stormspark.flux`. Finds their classes without importing them (K13-K23)."""

from __future__ import annotations

import ast
import difflib
import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from stormspark.errors import StormsparkError
from stormspark.flux import CLASSES_FILE
from stormspark.flux.class_names import known_class_names, name_of_today
from stormspark.flux.definition import ObjectDefinition, Stream, TopologyDefinition, Vertex
from stormspark.flux.definition import Setting as FluxSetting
from stormspark.flux.includes import read_file
from stormspark.porting.findings import (
    ComponentFound,
    Findings,
    InputFound,
    Place,
    Setting,
    TopologyFound,
    Unresolved,
)
from stormspark.porting.keys import about_settings
from stormspark.porting.python_source import PythonProject, call_name

__all__ = ["is_flux", "read_flux"]


def is_flux(text: str) -> bool:
    r"""Return whether a YAML text looks like a topology, with a top-level key ``spouts``, ``bolts`` or ``topologySource``.

    >>> is_flux("name: a\nspouts:\n- id: s\n"), is_flux("services:\n  db: {}\n")
    (True, False)
    """
    keys = {line.partition(":")[0] for line in text.splitlines()}
    return bool(keys & {"spouts", "bolts", "topologySource"})


def read_flux(project: PythonProject, path: Path, findings: Findings) -> None:
    """Add the topology that the file defines. If the file has an error, report the error for the project, and add no topology."""
    shown = project.shown(path)
    logger = logging.getLogger("stormspark.flux")
    level = logger.level
    logger.setLevel(logging.ERROR)  # the report has the warnings, with their lines, so don't log them
    try:
        definition = read_file(path, {}, None)
    except StormsparkError as error:
        findings.report(
            "unread", _relative(str(error), path, shown), Place(shown, _line_in(str(error), path))
        )
        return
    finally:
        logger.setLevel(level)
    findings.topologies.append(_Reader(project, path, shown, definition).read())


class _Reader:
    def __init__(
        self, project: PythonProject, path: Path, shown: str, definition: TopologyDefinition
    ) -> None:
        self._project = project
        self._path = path
        self._shown = shown
        self._definition = definition
        self._registered = _registered_beside(project, path)

    def read(self) -> TopologyFound:
        definition = self._definition
        found = TopologyFound(definition.name or self._path.stem, "flux", Place(self._shown, 1))
        found.settings = self._settings(definition.config, "")
        for kind, vertices in (("spout", definition.spouts), ("bolt", definition.bolts)):
            for vertex in vertices.values():
                found.components.append(self._component(found, kind, vertex))
        by_id = {component.id: component for component in found.components}
        for stream in definition.streams:
            if stream.target in by_id:
                by_id[stream.target].inputs.append(self._input(found, stream))
            else:
                found.report(
                    "change",
                    f"a stream leads to {stream.target!r}, and the file has no such component",
                    self._place(stream.target_where),
                )
            if stream.source not in by_id:
                found.report(
                    "change",
                    f"a stream comes from {stream.source!r}, and the file has no such component",
                    self._place(stream.source_where),
                )
        for component in found.components:
            if component.kind == "bolt" and not component.inputs:
                found.report("note", f"{component.label} subscribes to nothing", component.place)
        for one in (*definition.components.values(), *definition.worker_hooks.values()):
            self._report_class(found, f"component {one.id!r}", one)
        if definition.source is not None:
            self._report_class(found, "the topologySource", definition.source)
            found.report(
                "unread",
                f"{definition.source_method}() makes the components, which takes running it",
                self._place(definition.source.where),
                "run port with --import, and see its plan",
            )
        self._report_substitutions(found)
        found.statements += list(about_settings(found.settings))
        return found

    def _component(self, found: TopologyFound, kind: str, vertex: Vertex) -> ComponentFound:
        made = vertex.object
        component = ComponentFound(
            made.id,
            "spout" if kind == "spout" else "bolt",
            made.class_name.rpartition(".")[2],
            self._place(made.where),
            vertex.parallelism,
            vertex.num_tasks,
            streams=None,
        )
        component.command = _command_of(made)
        if not component.command:  # otherwise what the report says depends on the command's script
            self._report_class(found, component.label, made)
        found.settings += self._settings(vertex.config, made.id)
        return component

    def _input(self, found: TopologyFound, stream: Stream) -> InputFound:
        grouping = stream.grouping
        kind = grouping.type.lower()
        custom = ""
        if grouping.custom_class is not None:
            custom = grouping.custom_class.class_name.rpartition(".")[2]
            self._report_class(found, f"the custom grouping of {stream.target!r}", grouping.custom_class)
        fields = grouping.args if kind in ("fields", "partial_key") else ()
        return InputFound(
            stream.source,
            stream.grouping.stream or "default",
            kind,
            self._place(stream.where),
            fields,
            custom,
        )

    def _settings(self, config: Mapping[str, FluxSetting], component: str) -> list[Setting]:
        return [
            Setting(key, _known(one.value), self._place(one.where), component) for key, one in config.items()
        ]

    def _report_class(self, found: TopologyFound, label: str, made: ObjectDefinition) -> None:
        name, place = made.class_name, self._place(made.class_where)
        if name in self._definition.class_names or name in self._registered:
            found.report("runs", f"{label}: the project names the Python that stands for {name}", place)
        elif name_of_today(name) in known_class_names():
            found.report("runs", f"{label}: stormspark has a class that stands for {name}", place)
        elif self._is_python(name):
            found.report("runs", f"{label}: {name} is in the project's Python code", place)
        else:
            near = difflib.get_close_matches(name_of_today(name), known_class_names(), 1, 0.85)
            asked = f"did you mean {near[0]}? If not, " if near else ""
            found.report(
                "change",
                f"{label}: no Python is known for the class {name}",
                place,
                f"{asked}write it in Python, and name that under classNames: or with stormspark.flux.register in {CLASSES_FILE}",
            )

    def _is_python(self, name: str) -> bool:
        module, _, attribute = name.replace(":", ".").rpartition(".")
        path = self._path.parent.joinpath(*module.split("."))
        for candidate in (path.with_suffix(".py"), path / "__init__.py"):
            if module and candidate.is_file() and (file := self._project.file(candidate)) is not None:
                functions = {one.name for one in file.tree.body if isinstance(one, ast.FunctionDef)}
                return attribute in file.classes or attribute in functions or attribute in file.imports
        return False

    def _report_substitutions(self, found: TopologyFound) -> None:
        for number, line in enumerate(self._path.read_text("utf-8-sig").splitlines(), 1):
            if "${" in line and not line.lstrip().startswith("#"):
                option = "--env-filter" if "${ENV-" in line else "--filter"
                found.report(
                    "note",
                    f"a value is substituted in this line: {line.strip()[:60]}",
                    Place(self._shown, number),
                    f"run with {option}",
                )

    def _place(self, where: str) -> Place:
        file, _, line = where.rpartition(":")
        shown = self._project.shown(Path(file)) if file else self._shown
        return Place(shown, int(line) if line.isdigit() else 1)


def _command_of(made: ObjectDefinition) -> tuple[str, ...]:
    """Return the command of a component of Storm's multilang, if it is an argument of the constructor."""
    if made.class_name.rpartition(".")[2] not in (
        "FluxShellBolt",
        "FluxShellSpout",
        "ShellBolt",
        "ShellSpout",
    ):
        return ()
    words = made.constructor_args[0] if made.constructor_args else ()
    words = [words, *made.constructor_args[1:]] if isinstance(words, str) else words
    known = isinstance(words, list | tuple) and words and all(isinstance(word, str) for word in words)
    return tuple(words) if known else ()


def _registered_beside(project: PythonProject, path: Path) -> set[str]:
    """Return the class names that ``flux_classes.py`` in the file's folder registers. Only names that are literals are found."""
    beside = path.parent / CLASSES_FILE
    file = project.file(beside) if beside.is_file() else None
    return set(_registrations(file.tree)) if file is not None else set()


def _registrations(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and call_name(node) == "register" and node.args:
            first = node.args[0]
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                yield first.value


def _line_in(message: str, path: Path) -> int:
    _, _, rest = message.partition(f"{path}:")
    number = rest.partition(":")[0]
    return int(number) if number.isdigit() else 1


def _relative(message: str, path: Path, shown: str) -> str:
    return message.replace(str(path), shown)


def _known(value: Any) -> Any:
    """Return the value of a setting. What ``--filter`` replaces is not known while the file is only read."""
    return Unresolved(value) if isinstance(value, str) and "${" in value else value
