"""Reads heronpy's topologies: classes whose attributes are components, and scripts with builders (A40-A42, G24).

For a topology of streamlets, this module only lists the operations.
"""

from __future__ import annotations

import ast
import shlex
from collections.abc import Iterator

from stormspark.porting.findings import ComponentFound, Place, StreamFound, TopologyFound
from stormspark.porting.keys import about_settings
from stormspark.porting.python_components import report_behaviour, streams_of
from stormspark.porting.python_source import (
    PythonClass,
    PythonFile,
    PythonProject,
    assignment,
    call_name,
    keywords,
)
from stormspark.porting.specs import parallelism_of, read_inputs, settings_of

__all__ = ["read_heronpy"]

_HERON = {"heronpy", "heron", "pyheron", "heron_py"}


def read_heronpy(project: PythonProject, file: PythonFile) -> Iterator[TopologyFound]:
    """Yield the topologies in ``file``: first those that are classes, then those that the code makes with builders."""
    for node in file.tree.body:
        if isinstance(node, ast.ClassDef) and _extends(project, file, node, ".Topology"):
            found = TopologyFound(node.name, "heronpy", file.place(node))
            _read_class(project, file, node, found)
            found.command = f"stormspark run {shlex.quote(f'{file.shown}:{node.name}')}"
            yield found
    for body in _bodies(file.tree):
        for found in (*_built(project, file, body), *_streamlets(project, file, body)):
            found.command = " ".join(["stormspark run", shlex.quote(file.shown), *_arguments(project, file)])
            yield found


def _arguments(project: PythonProject, file: PythonFile) -> list[str]:
    """Return an option ``--arg`` for each argument that a script needs after the name of its topology, which is the first."""
    last = 1
    for node in _needed(project, file, file.tree):
        match node:
            case ast.Subscript(value=argv, slice=ast.Constant(value=int(index))):
                needed = index if _is_argv(project, file, argv) else 0
            case ast.Compare(
                left=ast.Call(args=[argv]), ops=[operator], comparators=[ast.Constant(value=int(count))]
            ) if call_name(node.left) == "len" and _is_argv(project, file, argv):
                # What the script does if it has too few of them.
                needed = count - 1 if isinstance(operator, ast.NotEq | ast.Lt) else 0
                needed = count if isinstance(operator, ast.LtE) else needed
            case _:
                needed = 0
        last = max(last, needed)
    return [f"--arg ARGUMENT_{number}" for number in range(2, last + 1)]


def _needed(project: PythonProject, file: PythonFile, node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes below ``node``, but not what a script only does if it has more arguments."""
    yield node
    children = list(ast.iter_child_nodes(node))
    if isinstance(node, ast.If | ast.IfExp) and isinstance(node.test, ast.Compare):
        more = isinstance(node.test.ops[0], ast.Gt | ast.GtE | ast.Eq)
        if more and any(_is_argv(project, file, one) for one in ast.walk(node.test)):
            children = node.orelse if isinstance(node, ast.If) else [node.orelse]  # type: ignore[assignment]
    for child in children:
        yield from _needed(project, file, child)


def _is_argv(project: PythonProject, file: PythonFile, node: ast.AST) -> bool:
    return project.dotted(node, file) == "sys.argv"


def _extends(project: PythonProject, file: PythonFile, node: ast.ClassDef, name: str) -> bool:
    cls = project.find_class(ast.Name(node.name, ast.Load()), file)
    return cls is not None and any(_is(base, name) for base in cls.bases())


def _is(dotted: str, name: str) -> bool:
    return dotted.partition(".")[0] in _HERON and dotted.endswith(name)


def _read_class(
    project: PythonProject, file: PythonFile, node: ast.ClassDef, topology: TopologyFound
) -> None:
    ids: dict[str, str] = {}
    for statement in node.body:
        targets, value = assignment(statement)
        if value is None or not isinstance(targets[0], ast.Name):
            continue
        attribute = targets[0].id
        if attribute == "config":
            topology.settings += settings_of(topology, project, value, file)
        elif (
            call_name(value) == "spec"
            and isinstance(value, ast.Call)
            and isinstance(value.func, ast.Attribute)
        ):
            cls = project.find_class(value.func.value, file)
            spout = _is_spout(cls, value)
            positions = ("name", "par", "config") if spout else ("name", "inputs", "par", "config")
            given = keywords(value, *positions)
            id_ = project.value(given["name"], file) if "name" in given else attribute
            component = _component(
                project,
                file,
                topology,
                file.place(value),
                id_ if isinstance(id_, str) else None,
                cls,
                ast.unparse(value.func.value),
                spout,
                given,
                ids,
                dict(file.values),
            )
            ids[attribute] = component.id or attribute
    _end(topology)


def _is_spout(cls: PythonClass | None, call: ast.Call) -> bool:
    if cls is not None and any(base.endswith(("Bolt", "Spout")) for base in cls.bases()):
        return any(base.endswith("Spout") for base in cls.bases())
    return "inputs" not in keywords(call)


def _component(
    project: PythonProject,
    file: PythonFile,
    topology: TopologyFound,
    place: Place,
    id_: str | None,
    cls: PythonClass | None,
    named: str,
    spout: bool,
    given: dict[str, ast.expr],
    ids: dict[str, str],
    names: dict[str, ast.expr],
) -> ComponentFound:
    component = ComponentFound(id_, "spout" if spout else "bolt", cls.name if cls else named, place)
    topology.components.append(component)
    if id_ is None:
        topology.report("unread", f"the id of this {component.kind} can't be made out", place)
    component.parallelism, remark = parallelism_of(project, given.get("par"), file)
    if remark:
        topology.report("unread", f"the parallelism of {component.label} {remark}", place)
    component.inputs = list(read_inputs(project, given.get("inputs"), file, ids, names))
    for one in component.inputs:
        if not one.resolved:
            topology.report(
                "unread", f"a subscription of {component.label} can't be made out: {one}", one.place
            )
        elif one.grouping == "custom" and one.custom.startswith("custom_serialized"):
            topology.report(
                "change",
                f"{component.label} has a serialised grouping",
                one.place,
                "name the class of a grouping in Python: Grouping.custom(...)",
            )
        elif one.grouping == "custom":
            topology.report("runs", f"{component.label} has a custom grouping in Python", one.place)
        elif one.grouping == "direct":
            topology.report(
                "note",
                f"{component.label} has a direct grouping: it works here, unlike in Heron",
                one.place,
            )
        elif one.grouping == "fields":
            topology.report(
                "note",
                f"{component.label} is grouped by fields: equal values meet in one task, which differs from Heron's",  # D4
                one.place,
            )
    component.streams = _streams(project, file, component, cls, given, names)
    if component.streams is None:
        topology.report("unread", f"the outputs of {component.label} can't be made out", place)
    if cls is None:
        topology.report(
            "unread",
            f"{component.label}: the class {named} is not in the project",
            place,
            "see where that class is, and whether it needs a change",
        )
    else:
        report_behaviour(topology, project, component.label, cls)
    topology.settings += settings_of(topology, project, given.get("config"), file, id_ or "")
    return component


def _streams(
    project: PythonProject,
    file: PythonFile,
    component: ComponentFound,
    cls: PythonClass | None,
    given: dict[str, ast.expr],
    names: dict[str, ast.expr],
) -> tuple[StreamFound, ...] | None:
    own: tuple[StreamFound, ...] | None = () if cls is not None else None
    if cls is not None and (declared := cls.attribute("outputs")) is not None:
        own = streams_of(project, declared[0], declared[1], declared[1].place(declared[0]))
    more = streams_of(project, given.get("optional_outputs"), file, component.place, names)
    return None if own is None or more is None else own + more


# -- by a builder ------------------------------------------------------------------------------------------------


def _bodies(tree: ast.Module) -> Iterator[list[ast.stmt]]:
    """Yield the statements of the module, then those of each function. A builder is followed only within one such list."""
    yield tree.body
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.body


def _statements(
    body: list[ast.stmt], conditions: tuple[str, ...] = ()
) -> Iterator[tuple[ast.stmt, tuple[str, ...]]]:
    """Yield the statements in order, each with the conditions and loops around it.

    The bodies of functions and classes are skipped.
    """
    for one in body:
        yield one, conditions
        if isinstance(one, ast.If):
            condition = ast.unparse(one.test)
            inner = conditions if "__name__" in condition else (*conditions, f"only if {condition}")
            yield from _statements(one.body, inner)
            yield from _statements(one.orelse, (*conditions, f"only if not ({condition})"))
        elif isinstance(one, ast.For | ast.AsyncFor | ast.While):
            yield from _statements(one.body, (*conditions, "in a loop"))
            yield from _statements(one.orelse, (*conditions, "only if a loop ends without break"))
        elif isinstance(one, ast.With | ast.AsyncWith):
            yield from _statements(one.body, conditions)
        elif isinstance(one, ast.Try | ast.TryStar):
            yield from _statements(one.body, conditions)
            for handler in one.handlers:
                error = ast.unparse(handler.type) if handler.type is not None else "an error"
                yield from _statements(handler.body, (*conditions, f"only if {error} is raised"))
            yield from _statements(one.orelse, (*conditions, "only if nothing is raised"))
            yield from _statements(one.finalbody, conditions)
        elif isinstance(one, ast.Match):
            for case in one.cases:
                condition = f"only if {ast.unparse(one.subject)} matches {ast.unparse(case.pattern)}"
                if case.guard is not None:
                    condition += f" if {ast.unparse(case.guard)}"
                yield from _statements(case.body, (*conditions, condition))


def _built(project: PythonProject, file: PythonFile, body: list[ast.stmt]) -> Iterator[TopologyFound]:
    builders: dict[str, TopologyFound] = {}
    ids: dict[str, str] = {}
    names: dict[str, ast.expr] = dict(file.values)
    for statement, conditions in _statements(body):
        target, call = _assigned_call(statement)
        value = assignment(statement)[1]
        if target is not None and value is not None:
            names[target] = value
        if call is None:
            continue
        if target is not None and _is(project.dotted(call.func, file), ".TopologyBuilder"):
            name = project.value(keywords(call, "name").get("name"), file, names)
            topology = TopologyFound(
                name if isinstance(name, str) else file.path.stem, "heronpy", file.place(call)
            )
            if not isinstance(name, str):
                topology.report(
                    "note",
                    f"its name is an argument of the script; {file.path.stem!r} is the name of the file",
                    file.place(call),
                )
            builders[target] = topology
            continue
        if not isinstance(call.func, ast.Attribute) or not isinstance(call.func.value, ast.Name):
            continue
        topology_ = builders.get(call.func.value.id)
        if topology_ is not None:
            added = _on_builder(project, file, topology_, call, ids, names)
            for condition in conditions if added else ():
                kind = "unread" if condition == "in a loop" else "note"
                topology_.report(kind, f"{added} is added {condition}", file.place(call))  # type: ignore[arg-type]
            if added and target is not None:
                ids[target] = topology_.components[-1].id or target
    for topology in builders.values():
        _end(topology)
        yield topology


def _assigned_call(statement: ast.stmt) -> tuple[str | None, ast.Call | None]:
    targets, value = assignment(statement)
    if len(targets) == 1:
        name = targets[0].id if isinstance(targets[0], ast.Name) else None
        return name, value if isinstance(value, ast.Call) else None
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        return None, statement.value
    return None, None


def _on_builder(
    project: PythonProject,
    file: PythonFile,
    topology: TopologyFound,
    call: ast.Call,
    ids: dict[str, str],
    names: dict[str, ast.expr],
) -> str:
    """Read a call of a builder's method. Return the label of the component that it adds; empty if it adds none."""
    method = call_name(call)
    if method == "set_config":
        topology.settings += settings_of(
            topology, project, _followed(call.args[0], names) if call.args else None, file
        )
    if method not in ("add_spout", "add_bolt"):
        if method == "add_spec":
            topology.report("unread", "components that add_spec adds can't be made out", file.place(call))
        return ""
    spout = method == "add_spout"
    order = (
        ("name", "spout_cls", "par", "config", "optional_outputs")
        if spout
        else (
            "name",
            "bolt_cls",
            "par",
            "inputs",
            "config",
            "optional_outputs",
        )
    )
    given = keywords(call, *order)
    id_ = project.value(given.get("name"), file, names)
    class_node = given.get("spout_cls" if spout else "bolt_cls")
    cls = project.find_class(class_node, file) if class_node is not None else None
    if "config" in given:
        given["config"] = _followed(given["config"], names)
    component = _component(
        project,
        file,
        topology,
        file.place(call),
        id_ if isinstance(id_, str) else None,
        cls,
        ast.unparse(class_node) if class_node is not None else "?",
        spout,
        given,
        ids,
        names,
    )
    return component.label


def _followed(node: ast.expr, names: dict[str, ast.expr]) -> ast.expr:
    return names.get(node.id, node) if isinstance(node, ast.Name) else node


def _end(topology: TopologyFound) -> None:
    topology.statements += list(about_settings(topology.settings, strings=True, of_heron=True))
    modes = [one.value for one in topology.settings if one.key == "topology.reliability.mode"]
    if not modes:
        topology.report(
            "note",
            "no reliability mode is set, and Heron's default is ATMOST_ONCE: nothing is tracked, as in Heron",  # A43
            topology.place,
        )
    if not topology.components:
        topology.report("unread", "no component was found", topology.place)


# -- streamlets --------------------------------------------------------------------------------------------------


def _streamlets(project: PythonProject, file: PythonFile, body: list[ast.stmt]) -> Iterator[TopologyFound]:
    """Yield one topology for each Builder of streamlets. The topology has a note for each operation, in order."""
    for statement, _ in _statements(body):
        target, call = _assigned_call(statement)
        dotted = project.dotted(call.func, file) if call is not None and target is not None else ""
        if call is None or not (_is(dotted, "streamlet.builder.Builder") or _is(dotted, "streamlet.Builder")):
            continue
        found = TopologyFound(file.path.stem, "heronpy-streamlet", file.place(call))
        for one, _ in _statements(body):
            _, last = _assigned_call(one)
            for operation in reversed(list(_chain(last))):
                if call_name(operation) not in ("run", "append", "exit"):
                    found.report("note", f"{call_name(operation)}(...)", file.place(operation))
        found.report(
            "unread",
            "the script makes the components of streamlets when it runs",
            found.place,
            "run port with --import, and see its plan",
        )
        yield found


def _chain(call: ast.Call | None) -> Iterator[ast.Call]:
    """Yield the calls in a chain of method calls, the last call first."""
    while call is not None and isinstance(call.func, ast.Attribute):
        yield call
        call = call.func.value if isinstance(call.func.value, ast.Call) else None
