"""Reads Petrel's topologies: functions that get a builder, and ``topology.yaml`` beside them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml

from stormspark.compat.petrel import storm
from stormspark.compat.petrel.project import CONFIG_FILE, DEFAULT_FUNCTION
from stormspark.porting.findings import ComponentFound, InputFound, Place, Setting, StreamFound, TopologyFound
from stormspark.porting.keys import about_settings
from stormspark.porting.python_components import report_behaviour
from stormspark.porting.python_source import PythonClass, PythonFile, PythonProject, assignment, keywords

__all__ = ["read_petrel"]

_GROUPINGS: Final = {
    "shuffleGrouping": "shuffle",
    "fieldsGrouping": "fields",
    "globalGrouping": "global",
    "allGrouping": "all",
    "noneGrouping": "none",
    "directGrouping": "direct",
    "localOrShuffleGrouping": "local_or_shuffle",
}
_MODULES: Final = {"", "storm", "emitter", "topologybuilder", "mock"}


def read_petrel(project: PythonProject, file: PythonFile) -> Iterator[TopologyFound]:
    """Yield the topologies in ``file``. That of ``create`` has the name of the folder, and others that of their function."""
    for node in file.tree.body:
        if isinstance(node, ast.FunctionDef) and len(node.args.args) == 1 and _builds(node):
            name = file.path.parent.name if node.name == DEFAULT_FUNCTION else node.name
            found = TopologyFound(name, "petrel", file.place(node))
            _Reader(project, file, node, found).read()
            yield found


def _builds(node: ast.FunctionDef) -> bool:
    builder = node.args.args[0].arg
    return any(
        isinstance(one, ast.Call)
        and isinstance(one.func, ast.Attribute)
        and one.func.attr in ("setSpout", "setBolt")
        and isinstance(one.func.value, ast.Name)
        and one.func.value.id == builder
        for one in ast.walk(node)
    )


class _Reader:
    def __init__(
        self, project: PythonProject, file: PythonFile, node: ast.FunctionDef, topology: TopologyFound
    ) -> None:
        self._project, self._file, self._node, self._topology = project, file, node, topology
        self._builder = node.args.args[0].arg
        self._names: dict[str, ast.expr] = {}
        #: The component that each call of setBolt declares, and the variables that stand for such a call.
        self._made: dict[ast.AST, ComponentFound] = {}
        self._variables: dict[str, ComponentFound] = {}

    def read(self) -> None:
        for statement in ast.walk(self._node):
            if isinstance(statement, ast.For | ast.While | ast.If) and any(
                map(self._is_declaring, ast.walk(statement))
            ):
                self._topology.report(
                    "unread",
                    "components that are added in a loop or under a condition are read as if the code ran once",
                    self._file.place(statement),
                    "run port with --import, and see its plan",
                )
            if isinstance(statement, ast.stmt):
                targets, value = assignment(statement)
                for target in targets:
                    if value is not None and isinstance(target, ast.Name):
                        self._names[target.id] = value
        calls = sorted(
            (one for one in ast.walk(self._node) if isinstance(one, ast.Call)),
            key=lambda one: (one.end_lineno or 0, one.end_col_offset or 0),
        )
        for call in calls:
            self._call(call)
        self._read_configuration(self._file.path.parent / CONFIG_FILE)
        for _, one in self._topology.inputs:
            if not one.resolved:
                self._topology.report("unread", f"a subscription can't be made out: {one}", one.place)
        for text, place, todo in self._imports():
            self._topology.report("change", text, place, todo)
        self._topology.statements += list(about_settings(self._topology.settings))

    def _is_declaring(self, node: ast.AST) -> bool:
        return (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
            and node.func.value.id == self._builder
        )

    def _value(self, node: ast.expr | None) -> Any:
        return self._project.value(node, self._file, self._names)

    def _call(self, call: ast.Call) -> None:
        if not isinstance(call.func, ast.Attribute):
            return
        name, place = call.func.attr, self._file.place(call)
        if self._is_declaring(call):
            if name in ("setSpout", "setBolt"):
                self._declare(call, name == "setSpout", place)
            elif name == "addOutputStream":
                self._add_stream(call, place)
            elif name not in ("write", "createTopology"):
                self._topology.report(
                    "change",
                    f"{self._builder}.{name} is not offered: it is not in Petrel's own TopologyBuilder",
                    place,
                    "write the component in Python, and declare it with setSpout or setBolt",
                )
        elif name in _GROUPINGS and (component := self._of(call.func.value)) is not None:
            self._made[call] = component
            positions = (
                ("componentId", "fields", "streamId")
                if name == "fieldsGrouping"
                else ("componentId", "streamId")
            )
            given = keywords(call, *positions)
            source, fields = self._value(given.get("componentId")), self._value(given.get("fields"))
            stream = self._value(given["streamId"]) if "streamId" in given else "default"
            known: tuple[str, ...] | None = ()
            if name == "fieldsGrouping":
                known = tuple(map(str, fields)) if isinstance(fields, list) else None
            component.inputs.append(
                InputFound(
                    source if isinstance(source, str) else None,
                    stream if isinstance(stream, str) else None,
                    _GROUPINGS[name] if known or name != "fieldsGrouping" or known is None else "global",
                    place,
                    known,
                )
            )

    def _of(self, node: ast.expr) -> ComponentFound | None:
        """Return the bolt whose declarer an expression stands for."""
        if isinstance(node, ast.Name):
            value = self._names.get(node.id)
            return self._made.get(value) if value is not None else None
        return self._made.get(node)

    def _declare(self, call: ast.Call, is_spout: bool, place: Place) -> None:
        given = keywords(call, "id", "spout" if is_spout else "bolt", "parallelism_hint")
        id_ = self._value(given.get("id"))
        made = given.get("spout" if is_spout else "bolt")
        if isinstance(made, ast.Name) and made.id in self._names:
            made = self._names[made.id]
        named = made.func if isinstance(made, ast.Call) else made
        cls = self._project.find_class(named, self._file) if named is not None else None
        parallelism = self._value(given.get("parallelism_hint"))
        component = ComponentFound(
            id_ if isinstance(id_, str) else None,
            "spout" if is_spout else "bolt",
            cls.name if cls is not None else ast.unparse(named) if named is not None else "?",
            place,
            1 if parallelism is None else parallelism if isinstance(parallelism, int) else None,
        )
        self._topology.components.append(component)
        self._made[call] = component
        if not component.resolved:
            self._topology.report(
                "unread", f"the id or the parallelism of {component.label} can't be made out", place
            )
        if cls is None:
            self._topology.report(
                "unread", f"{component.label}: no class {component.type_name} was found in the project", place
            )
            component.streams = None
            return
        component.streams = self._streams(cls)
        report_behaviour(self._topology, self._project, component.label, cls)
        self._report_api(component, cls)

    def _streams(self, cls: PythonClass) -> tuple[StreamFound, ...] | None:
        method = cls.methods().get("declareOutputFields")
        if method is None:
            return ()
        node, file = method
        for one in ast.walk(node):
            if isinstance(one, ast.Return):
                fields = self._project.value(one.value, file) if one.value is not None else []
                if isinstance(fields, list) and all(isinstance(name, str) for name in fields):
                    return (StreamFound("default", tuple(fields), file.place(one)),) if fields else ()
                return None if fields is not None else ()
        return ()

    def _add_stream(self, call: ast.Call, place: Place) -> None:
        given = keywords(call, "id", "streamId", "output_fields", "direct")
        id_, stream, fields = (self._value(given.get(name)) for name in ("id", "streamId", "output_fields"))
        for component in self._topology.components:
            if component.id == id_ and isinstance(stream, str):
                known = tuple(map(str, fields)) if isinstance(fields, list) else None
                direct = self._value(given.get("direct")) is True
                component.streams = (*(component.streams or ()), StreamFound(stream, known, place, direct))

    def _report_api(self, component: ComponentFound, cls: PythonClass) -> None:
        """Report what the code takes from ``petrel.storm`` that the front-end lacks."""
        for one in cls.chain():
            for node in ast.walk(one.node):
                if not isinstance(node, ast.Attribute) or not isinstance(node.value, ast.Name):
                    continue
                if one.file.imports.get(node.value.id) == "petrel.storm" and node.attr not in storm.__all__:
                    self._topology.report(
                        "change",
                        f"{component.label}: petrel.storm has no {node.attr} here, because there are no pipes",
                        one.file.place(node),
                        "use emit, emitMany, emitDirect, ack, ackId, fail, log and reportError",
                    )
        if "run" not in {one.name for one in cls.file.tree.body if isinstance(one, ast.FunctionDef)}:
            self._topology.report(
                "note",
                f"{component.label}: {cls.file.shown} has no run(), so the task makes a {cls.name} without arguments",
                cls.place,
            )

    def _imports(self) -> Iterator[tuple[str, Place, str]]:
        for file in self._project.reached([self._file.path]):
            for one in file.modules:
                top, _, rest = one.module.partition(".")
                if top == "petrel" and rest.partition(".")[0] not in _MODULES:
                    yield (
                        f"{one.module} is not offered: the front-end has petrel.storm, .emitter, .topologybuilder and .mock",
                        Place(file.shown, one.line),
                        "import from petrel.emitter",
                    )

    # -- topology.yaml ---------------------------------------------------------------------------------------

    def _read_configuration(self, path: Path) -> None:
        if not path.is_file():
            self._topology.report(
                "note",
                f"there is no {CONFIG_FILE} beside the file: settings come from -c key=value",
                self._topology.place,
            )
            return
        shown = self._project.shown(path)
        try:
            text = path.read_text("utf-8-sig")
            content = yaml.safe_load(text)
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
            self._topology.report("unread", f"{shown} can't be read: {error}", Place(shown, 1))
            return
        lines = text.splitlines()
        for key, value in content.items() if isinstance(content, dict) else ():
            place = Place(shown, next((n for n, line in enumerate(lines, 1) if line.startswith(str(key))), 1))
            if str(key).startswith("petrel.parallelism."):
                id_ = str(key).removeprefix("petrel.parallelism.")
                named = [one for one in self._topology.components if one.id == id_]
                for one in named:
                    one.parallelism = value if isinstance(value, int) else None
                if not named:
                    self._topology.report("change", f"{key} names no component", place, "correct the id")
            elif str(key).startswith("petrel."):
                self._topology.report("note", f"{key} changes nothing: no virtualenv is made here", place)
            else:
                self._topology.settings.append(Setting(str(key), value, place))
