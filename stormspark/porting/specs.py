"""Reads ``inputs``, ``par`` and ``config`` of specs. A spec declares a component in streamparse or heronpy (A30-A35, A40-A42)."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from stormspark.porting.findings import InputFound, Setting, TopologyFound, Unresolved
from stormspark.porting.python_source import PythonFile, PythonProject, call_name, keywords

__all__ = ["parallelism_of", "read_inputs", "settings_of"]

_GROUPINGS = {
    "SHUFFLE": "shuffle",
    "GLOBAL": "global",
    "LOWEST": "global",
    "DIRECT": "direct",
    "ALL": "all",
    "NONE": "none",
    "LOCAL_OR_SHUFFLE": "local_or_shuffle",
}


def read_inputs(
    project: PythonProject,
    node: ast.expr | None,
    file: PythonFile,
    ids: Mapping[str, str],
    names: dict[str, ast.expr],
) -> Iterator[InputFound]:
    """Yield the subscriptions in ``inputs``, a list or dict. Its items are specs, ``spec["stream"]`` or GlobalStreamIds.

    ``ids`` has, for each name of a spec, the id of the spec's component. ``names`` has the expressions of other names.
    """
    if node is None or (isinstance(node, ast.Constant) and node.value is None):
        return
    if isinstance(node, ast.Name) and node.id in names:
        node = names[node.id]
    if isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            source, stream = _source(project, key, file, ids, names)
            yield _grouped(project, value, file, source, stream)
    elif isinstance(node, ast.List | ast.Tuple):
        for one in node.elts:
            source, stream = _source(project, one, file, ids, names)
            yield InputFound(source, stream, "shuffle", file.place(one))
    else:
        yield InputFound(None, None, "shuffle", file.place(node), None)


def _source(
    project: PythonProject,
    node: ast.expr | None,
    file: PythonFile,
    ids: Mapping[str, str],
    names: dict[str, ast.expr],
) -> tuple[str | None, str | None]:
    if isinstance(node, ast.Name):
        if node.id in ids:
            return ids[node.id], "default"
        if node.id in names:
            return _source(project, names[node.id], file, ids, {})
    if isinstance(node, ast.Subscript):
        source, _ = _source(project, node.value, file, ids, names)
        stream = project.value(node.slice, file)
        return source, stream if isinstance(stream, str) else None
    if isinstance(node, ast.Call) and call_name(node) == "GlobalStreamId":
        given = keywords(node, "componentId", "streamId")
        source_id = project.value(given.get("componentId"), file)
        stream = project.value(given["streamId"], file) if "streamId" in given else "default"
        return source_id if isinstance(source_id, str) else None, stream if isinstance(stream, str) else None
    return None, None


def _grouped(
    project: PythonProject, node: ast.expr, file: PythonFile, source: str | None, stream: str | None
) -> InputFound:
    place = file.place(node)
    if isinstance(node, ast.Attribute) and node.attr in _GROUPINGS:
        return InputFound(source, stream, _GROUPINGS[node.attr], place)
    name = call_name(node)
    if isinstance(node, ast.Call):
        values = [project.value(one, file) for one in node.args]
        if name == "fields":
            flat = [f for value in values for f in (value if isinstance(value, list) else [value])]
            known = tuple(value for value in flat if isinstance(value, str))
            return InputFound(source, stream, "fields", place, known if len(known) == len(flat) else None)
        if name in ("custom", "custom_object", "custom_serialized"):
            given = ast.unparse(node.args[0]) if node.args else ""
            return InputFound(source, stream, "custom", place, (), f"{name} {given}"[:60])
    return InputFound(source, stream, "custom", place, None, ast.unparse(node)[:40])


def parallelism_of(project: PythonProject, node: ast.expr | None, file: PythonFile) -> tuple[int | None, str]:
    """Return the number in ``par`` and a remark (A31). If the number is not known, return None in its place.

    The remark says that the number is not known, or that it depends on the environment. In all other cases the remark is empty.
    """
    if node is None:
        return 1, ""
    value = project.value(node, file)
    if isinstance(value, int) and not isinstance(value, bool):
        return value, ""
    if isinstance(value, dict) and value and all(isinstance(one, int) for one in value.values()):
        by_name = ", ".join(f"{name}: {one}" for name, one in value.items())
        return next(
            iter(value.values())
        ), f"depends on the environment ({by_name}): name one with --environment"
    return None, f"can't be made out: {value}"


def settings_of(
    topology: TopologyFound,
    project: PythonProject,
    node: ast.expr | None,
    file: PythonFile,
    component: str = "",
) -> Iterator[Setting]:
    """Yield the settings in the ``config`` of a spec or a topology."""
    if node is None or (isinstance(node, ast.Constant) and node.value is None):
        return
    value = project.value(node, file)
    if not isinstance(value, dict):
        of = f" of {component!r}" if component else ""
        topology.report(
            "unread", f"the config{of} can't be made out: {ast.unparse(node)[:60]}", file.place(node)
        )
        return
    keys = node.keys if isinstance(node, ast.Dict) else [None] * len(value)
    for (key, one), where in zip(value.items(), keys, strict=False):
        place = file.place(where if where is not None else node)
        if isinstance(one, Unresolved):
            topology.report("unread", f"the value of {key} can't be made out: {one.text}", place)
        yield Setting(str(key), one, place, component)
