"""Reads streamparse projects (A30-A37): ``config.json``, and topologies, which are classes whose attributes are specs."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path

from stormspark.flux.class_names import known_class_names
from stormspark.porting.findings import ComponentFound, Findings, Place, Setting, TopologyFound
from stormspark.porting.keys import about_settings
from stormspark.porting.python_components import report_behaviour, report_emits, streams_of
from stormspark.porting.python_source import PythonFile, PythonProject, assignment, call_name, keywords
from stormspark.porting.specs import parallelism_of, read_inputs, settings_of

__all__ = ["read_config", "read_streamparse"]

_NO_CLASS = {"JavaBolt", "JavaSpout", "ShellBolt", "ShellSpout"}


def read_streamparse(project: PythonProject, file: PythonFile) -> Iterator[TopologyFound]:
    """Yield the topologies in ``file``. The first topology has the file's name. The others have their classes' names (A37)."""
    first = True
    for node in file.tree.body:
        if not isinstance(node, ast.ClassDef):
            continue
        cls = project.find_class(ast.Name(node.name, ast.Load()), file)
        if cls is None or not any(_is_topology(base) for base in cls.bases()):
            continue
        found = TopologyFound(file.path.stem if first else node.name, "streamparse", file.place(node))
        first = False
        _read_class(project, file, node, found)
        yield found


def _is_topology(base: str) -> bool:
    return base.partition(".")[0] == "streamparse" and base.endswith(".Topology")


def _read_class(
    project: PythonProject, file: PythonFile, node: ast.ClassDef, topology: TopologyFound
) -> None:
    ids: dict[str, str] = {}
    names: dict[str, ast.expr] = dict(file.values)
    for statement in node.body:
        targets, value = assignment(statement)
        if value is None or len(targets) != 1:
            if isinstance(statement, ast.For | ast.While | ast.If | ast.With):
                topology.report(
                    "unread", "components that a statement adds can't be made out", file.place(statement)
                )
            continue
        target = targets[0]
        if not isinstance(target, ast.Name):
            continue
        if target.id == "config":
            topology.settings += settings_of(topology, project, value, file)
        elif call_name(value) == "spec" and isinstance(value, ast.Call):
            component = _component(project, file, target.id, value, topology, ids, names)
            topology.components.append(component)
            if component.id is not None:
                ids[target.id] = component.id
        else:
            names[target.id] = value
            if project.find_class(value, file) is not None:
                topology.report(
                    "change",
                    f"{target.id} is a class and not a spec: streamparse raises a TypeError",
                    file.place(value),
                    "add .spec()",
                )
    if not topology.components:
        topology.report("unread", "no component was found in this class", topology.place)
    _report_undeclared(topology)
    topology.statements += list(about_settings(topology.settings))


def _report_undeclared(topology: TopologyFound) -> None:
    """Report each subscription to a stream that its source does not declare (A33, A35)."""
    sources = {one.id: one for one in topology.components if one.id is not None}
    for component, one in topology.inputs:
        source = sources.get(one.source or "")
        if source is None or source.streams is None or one.stream is None:
            continue
        if one.stream in {stream.id for stream in source.streams}:
            continue
        add = (
            "outputs = [...]"
            if one.stream == "default"
            else f"Stream(fields=[...], name={one.stream!r}) to its `outputs`"
        )
        topology.report(
            "change",
            f"{component.label} takes stream {one.stream!r} of {source.label}, whose `outputs` don't declare it",
            one.place,
            f"{'give' if one.stream == 'default' else 'add'} {source.type_name} {add}"
            if one.stream == "default"
            else f"add {add}, in {source.type_name}",
        )


def _component(
    project: PythonProject,
    file: PythonFile,
    attribute: str,
    call: ast.Call,
    topology: TopologyFound,
    ids: dict[str, str],
    names: dict[str, ast.expr],
) -> ComponentFound:
    owner = call.func.value if isinstance(call.func, ast.Attribute) else call.func
    library = project.dotted(owner, file).rpartition(".")[2]
    cls = None if library in _NO_CLASS else project.find_class(owner, file)
    spout = (
        library.endswith("Spout")
        if library in _NO_CLASS
        else bool(cls and any(b.endswith("Spout") for b in cls.bases()))
    )
    if library not in _NO_CLASS and cls is None:
        spout = "inputs" not in keywords(call)
    positions = ("name", "par", "config") if spout else ("name", "inputs", "par", "config")
    given = keywords(call, *positions) if library not in _NO_CLASS else keywords(call, "name")
    place = file.place(call)
    id_ = project.value(given["name"], file, names) if "name" in given else attribute
    component = ComponentFound(
        id=id_ if isinstance(id_, str) else None,
        kind="spout" if spout else "bolt",
        type_name=library if cls is None else cls.name,
        place=place,
    )
    if component.id is None:
        topology.report("unread", f"the id of {attribute} can't be made out", place)
    par, par_file = given.get("par"), file
    if par is None and cls is not None and (declared := cls.attribute("par")) is not None:
        par, par_file = declared
    component.parallelism, remark = parallelism_of(project, par, par_file)
    if remark:
        kind = "note" if component.parallelism else "unread"
        topology.report(kind, f"the parallelism of {component.label} {remark}", place)  # type: ignore[arg-type]
    component.inputs = list(read_inputs(project, given.get("inputs"), file, ids, names))
    for one in component.inputs:
        if not one.resolved:
            topology.report(
                "unread", f"a subscription of {component.label} can't be made out: {one}", one.place
            )
        if one.custom:
            topology.report(
                "change",
                f"{component.label} has a grouping that is a Java object, {one.custom}",  # A34
                one.place,
                "choose another one, or write a stormspark.CustomStreamGrouping and build the topology with TopologyBuilder",
            )
    if "outputs" in given:
        component.streams = streams_of(project, given["outputs"], file, place, names)
    elif cls is not None and (declared := cls.attribute("outputs")) is not None:
        component.streams = streams_of(project, declared[0], declared[1], declared[1].place(declared[0]))
    if component.streams is None:
        topology.report("unread", f"the outputs of {component.label} can't be made out", place)
    topology.settings += settings_of(topology, project, given.get("config"), file, component.id or "")
    if cls is not None:
        undeclared = report_emits(topology, project, component, cls)
        report_behaviour(topology, project, component.label, cls, different=undeclared)
    elif library in _NO_CLASS:
        _report_other_language(project, file, topology, component, library, given)
    else:
        topology.report(
            "unread",
            f"{component.label}: the class {ast.unparse(owner)} is not in the project",
            place,
            "see where that class is, and whether it needs a change",
        )
    return component


def _report_other_language(
    project: PythonProject,
    file: PythonFile,
    topology: TopologyFound,
    component: ComponentFound,
    library: str,
    given: dict[str, ast.expr],
) -> None:
    if library.startswith("Shell"):
        words = [project.value(given[name], file) for name in ("command", "script") if name in given]
        if words and all(isinstance(word, str) for word in words):
            component.command = tuple(word for words_ in words for word in words_.split())
        else:
            topology.report("unread", f"the command of {component.label} can't be made out", component.place)
        return
    if "serialized_java" in given:
        topology.report(
            "change",
            f"{component.label} is a pickled Java object",  # A32
            component.place,
            "write it in Python: there is no Java here",
        )
        return
    name = project.value(given.get("full_class_name"), file)
    if isinstance(name, str) and name in known_class_names():
        topology.report(
            "runs", f"{component.label}: stormspark has a class that stands for {name}", component.place
        )
    else:
        topology.report(
            "change",
            f"{component.label} is the Java class {name}, and no Python is known for it",
            component.place,
            f"write it in Python, and call stormspark.flux.register({str(name)!r}, YourClass) in a file flux_classes.py",
        )


def read_config(path: Path, shown: str, findings: Findings) -> list[str]:
    """Report the settings in a project's ``config.json``, and return the names of its environments."""
    try:
        text = path.read_text(encoding="utf-8")
        content = json.loads(text)
    except json.JSONDecodeError as error:
        findings.report("unread", f"this is not valid JSON: {error.msg}", Place(shown, error.lineno))
        return []
    except (OSError, ValueError) as error:
        findings.report("unread", f"can't be read: {error}", Place(shown, 1))
        return []
    environments = content.get("envs") if isinstance(content, dict) else None
    if not isinstance(environments, dict):
        return []
    lines = text.splitlines()
    for name, environment in environments.items():
        options = environment.get("options") if isinstance(environment, dict) else None
        settings = (
            [Setting(key, value, Place(shown, _line(lines, key)), "") for key, value in options.items()]
            if isinstance(options, dict)
            else []
        )
        findings.statements += [one for one in about_settings(settings) if one not in findings.statements]
        findings.report(
            "note",
            f"environment {name!r}: its options are used ({len(settings)}); hosts, ssh and virtualenv have no effect here",
            Place(shown, _line(lines, name)),
            f"run with --environment {name}" if len(environments) > 1 else "",
        )
    return list(environments)


def _line(lines: list[str], key: str) -> int:
    return next((number for number, line in enumerate(lines, 1) if f'"{key}"' in line), 1)
