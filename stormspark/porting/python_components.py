"""Reads a component's Python class (streamparse, pystorm, heronpy). Finds its streams, and code that may need a change."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from stormspark.compat.heronpy.lowering import CALLED as CALLED_BY_HERON
from stormspark.compat.petrel.builder import CALLED as CALLED_BY_PETREL
from stormspark.compat.streamparse.lowering import CALLED as CALLED_BY_PYSTORM
from stormspark.porting.findings import ComponentFound, Place, StreamFound, TopologyFound, Unresolved
from stormspark.porting.hindrances import hindrance
from stormspark.porting.python_source import (
    LIBRARIES,
    PythonClass,
    PythonFile,
    PythonProject,
    call_name,
    keywords,
)
from stormspark.porting.python_waits import waits_of

__all__ = ["report_behaviour", "report_emits", "streams_of"]

_PIPES: Final = {
    "read_command",
    "read_tuple",
    "read_handshake",
    "send_message",
    "read_message",
    "_setup_component",
    "_run",
}

#: Decorators that leave a coroutine function one.
_STILL_ASYNC: Final = {
    "staticmethod",
    "classmethod",
    "override",
    "typing.override",
    "typing_extensions.override",
}


def streams_of(
    project: PythonProject,
    node: ast.expr | None,
    file: PythonFile,
    place: Place,
    names: dict[str, ast.expr] | None = None,
) -> tuple[StreamFound, ...] | None:
    """Return the streams that a component's ``outputs`` declare; None if they can't be made out without running code.

    Each item of ``outputs`` is the name of a field of the default stream, or a call of ``Stream``.
    """
    if node is None or (isinstance(node, ast.Constant) and node.value is None):
        return ()
    if isinstance(node, ast.Name):
        node = (names or {}).get(node.id) or file.values.get(node.id) or node
    if not isinstance(node, ast.List | ast.Tuple):
        return None
    fields: list[str] = []
    streams: list[StreamFound] = []
    for one in node.elts:
        if call_name(one) == "Stream" and isinstance(one, ast.Call):
            given = keywords(one, "fields", "name", "direct")
            id_ = project.value(given["name"], file) if "name" in given else "default"
            declared = project.value(given.get("fields"), file)
            if not isinstance(id_, str):
                return None
            known = (
                tuple(declared)
                if isinstance(declared, list)
                else None
                if isinstance(declared, Unresolved)
                else ()
            )
            direct = project.value(given.get("direct"), file) is True
            streams.append(StreamFound(id_, known, file.place(one), direct))
            continue
        value = project.value(one, file)
        if not isinstance(value, str):
            return None
        fields.append(value)
    if fields:
        streams.insert(0, StreamFound("default", tuple(fields), place))
    return tuple(streams)


def report_behaviour(
    topology: TopologyFound, project: PythonProject, label: str, cls: PythonClass, *, different: bool = False
) -> None:
    """Report the code in a component's class that behaves differently in stormspark, or looks as if it did, with its place.

    If no change is known to be needed, report that. ``different`` says that a change was reported before. Also report a class
    that extends no class of the `LIBRARIES`, and one that can't be imported.
    """
    for kind, text, place, todo in _differences(project, cls):
        topology.report(kind, text, place, todo)  # type: ignore[arg-type]
        different = different or kind in ("change", "unread")
    strange = [base for base in cls.bases() if base.partition(".")[0] not in LIBRARIES and base != "object"]
    if not [base for base in cls.bases() if base.partition(".")[0] in LIBRARIES]:
        extended = f"{', '.join(strange)}, which was not found in the project" if strange else "no class"
        topology.report(
            "unread",
            f"{label}: {cls.name} extends {extended}",
            cls.place,
            "check whether it is a component",
        )
        return
    hindered = next(filter(None, (hindrance(project, one.file) for one in cls.chain())), None)
    if hindered is not None:
        topology.report(
            "change",
            f"{label}: {cls.name} can't be imported as it is: {hindered.text}",
            hindered.place,
            "see what the project needs",
        )
    elif not different:
        topology.report("runs", f"{label}: no change to {cls.name} is known to be needed", cls.place)


def report_emits(
    topology: TopologyFound, project: PythonProject, component: ComponentFound, cls: PythonClass
) -> bool:
    """Report each emit on a stream that the component's ``outputs`` don't declare (B9). Return whether there is one."""
    if component.streams is None:
        return False
    reported = False
    declared = {stream.id for stream in component.streams}
    positions = ("tup", "tup_id", "stream") if component.kind == "spout" else ("tup", "stream")
    for method, file in cls.methods().values():
        for node in ast.walk(method):
            if not isinstance(node, ast.Call) or ast.unparse(node.func) not in (
                "self.emit",
                "self.emit_many",
            ):
                continue
            given = keywords(node, *positions)
            stream = project.value(given["stream"], file) if "stream" in given else "default"
            stream = "default" if stream is None else stream
            if not isinstance(stream, str) or stream in declared:
                continue
            reported = True
            values = given.get("tup")
            known = isinstance(values, ast.List | ast.Tuple) and call_name(node) == "emit"
            fields = ", ".join('"..."' for _ in values.elts) if known else "..."  # type: ignore[union-attr]
            topology.report(
                "change",
                f"{component.label} emits on stream {stream!r}, which the `outputs` of {cls.name} don't declare",
                file.place(node),
                f"declare it: outputs = [{fields}]"
                if stream == "default"
                else f"add Stream(fields=[{fields}], name={stream!r}) to `outputs`",
            )
    return reported


def _differences(project: PythonProject, cls: PythonClass) -> Iterator[tuple[str, str, Place, str]]:
    heron = any(base.startswith("heron") for base in cls.bases())
    methods = cls.methods()
    explicit = cls.attribute("exit_on_exception")
    if explicit is not None:
        value = project.value(explicit[0], explicit[1])
        what = (
            "an exception restarts this task alone, and not its process"
            if value
            else "an exception is logged, and the task goes on"
        )
        yield (
            "note",
            f"{cls.name} sets exit_on_exception to {value}: {what}",  # C14
            explicit[1].place(explicit[0]),
            "",
        )
    for name in ("auto_ack", "auto_anchor", "auto_fail"):
        if (given := cls.attribute(name)) is not None:
            yield (
                "note",
                f"{cls.name} sets {name}: it means the same here",  # C13
                given[1].place(given[0]),
                "",
            )
    for name in sorted(_PIPES & methods.keys()):
        method, file = methods[name]
        yield (
            "change",
            f"{cls.name} overrides {name}(), and there are no pipes to a parent process here",
            file.place(method),
            "do it in initialize(), or in the component's own methods",
        )
    if heron and "__init__" in methods:
        method, file = methods["__init__"]
        yield (
            "note",
            f"{cls.name} overrides __init__, and heronpy asks its users not to",  # B21
            file.place(method),
            "",
        )
    yield from _coroutines(project, cls)
    yield from waits_of(project, cls)
    for one in cls.chain():
        yield from _in_text(one)


def _coroutines(project: PythonProject, cls: PythonClass) -> Iterator[tuple[str, str, Place, str]]:
    """Yield each method that is written with ``async def``, but that the front-end calls as an ordinary function."""
    libraries = {base.partition(".")[0] for base in cls.bases()} & LIBRARIES
    kind = "spout" if any(base.endswith("Spout") for base in cls.bases()) else "bolt"
    called: tuple[str, ...] = (
        CALLED_BY_PYSTORM[kind] if libraries & {"streamparse", "pystorm"} else CALLED_BY_HERON
    )
    if "petrel" in libraries:
        called = CALLED_BY_PETREL
    for name, (method, file) in cls.methods().items() if libraries else ():
        if name not in called or not isinstance(method, ast.AsyncFunctionDef):
            continue
        around = [ast.unparse(one) for one in method.decorator_list]
        if all(project.dotted(one, file) in _STILL_ASYNC for one in method.decorator_list):
            yield (
                "change",
                f"{cls.name} has `async def {name}`, which nobody would await, so the topology is refused",  # B20
                file.place(method),
                f"write a plain `def {name}`, or put a stormspark.Async{kind.capitalize()} in its place",
            )
        else:
            yield (
                "unread",
                f"{cls.name} has `async def {name}`, and it can't be made out what @{', @'.join(around)} does with it",
                file.place(method),
                "run port with --import: a topology with a method that nobody would await is refused",
            )


def _in_text(cls: PythonClass) -> Iterator[tuple[str, str, Place, str]]:
    file, name = cls.file, cls.name
    prints = 0
    for node in ast.walk(cls.node):
        called = call_name(node)
        dotted = _dotted(node, file)
        place = file.place(node)
        if called == "print" and dotted == "print":
            prints += 1
            if prints == 1:
                yield (
                    "note",
                    f"{name} prints, which is harmless here: it goes to the task's log",  # W8
                    place,
                    "",
                )
        elif called == "emit" and isinstance(node, ast.Call):
            if (flag := keywords(node).get("need_task_ids")) is not None and getattr(
                flag, "value", None
            ) is True:
                yield "note", f"{name} emits with need_task_ids, and emit returns them", place, ""  # B16
        elif dotted in ("threading.Thread", "threading.Timer") or dotted.startswith(
            ("concurrent.futures.", "multiprocessing.")
        ):
            yield (
                "note",
                f"{name} uses {dotted}: a thread may call emit, ack and fail, but emit returns no task ids there",  # A28
                place,
                "",
            )
        elif dotted.startswith("signal.") or "remote_pdb" in dotted:
            yield (
                "change",
                f"{name} uses {dotted}: a signal opens no debugger in a worker",  # C19
                place,
                "debug a batch with `stormspark replay --pdb`",
            )
        elif dotted in ("sys.stdin", "sys.stdout") and isinstance(node, ast.Attribute):
            yield (
                "change",
                f"{name} uses {dotted}, which is no pipe to Storm here",
                place,
                "log, or remove it",
            )
        elif dotted in ("os._exit", "os.kill", "os.abort"):
            yield (
                "change",
                f"{name} calls {dotted}, but its process hosts tasks of other components too",
                place,
                "raise an exception: it restarts this task alone",  # B14
            )


def _dotted(node: ast.AST, file: PythonFile) -> str:
    if isinstance(node, ast.Call):
        node = node.func
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.insert(0, node.attr)
        node = node.value
    return ".".join([file.imports.get(node.id, node.id), *parts]) if isinstance(node, ast.Name) else ""
