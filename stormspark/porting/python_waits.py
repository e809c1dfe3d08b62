"""Finds the places at which a component's Python code waits, or does not return, and says what that costs."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Final

from stormspark.porting.findings import Place
from stormspark.porting.python_source import Method, PythonClass, PythonFile, PythonProject, call_name

__all__ = ["waits_of"]

_NEXT: Final = {"next_tuple", "nextTuple"}
_PER_TUPLE: Final = {"process", "process_tick", "execute"}
#: Names of what has no end when somebody iterates over it.
_ENDLESS: Final = re.compile(
    r"consumer|stream|listen|subscri|pubsub|messages|tail|cursor|socket|queue|poll", re.IGNORECASE
)
_COST: Final = (
    "the spout hears acks, fails and deactivate only when the call returns, max spout pending is not looked at meanwhile, and "
    "a stop waits 10 s for it"  # B3, B4
)
_INSTEAD: Final = "let next_tuple take one message, emit it and return (docs/tasks.md, A spout that waits)"


def waits_of(project: PythonProject, cls: PythonClass) -> Iterator[tuple[str, str, Place, str]]:
    """Yield a statement for each sleep, for each loop in ``next_tuple`` that does not end, and for each wait without a limit."""
    for name, (method, file) in cls.methods().items():
        for node in _of_method(method):
            if project.dotted(node.func, file) == "time.sleep" if isinstance(node, ast.Call) else False:
                yield _sleep(project, cls, name, node, file)  # type: ignore[arg-type]
            elif name in _NEXT:
                yield from _in_next_tuple(cls, name, node, file)


def _of_method(method: Method) -> Iterator[ast.AST]:
    """Yield the nodes of a method in the order of its lines, but not those of functions in it."""
    to_do: list[ast.AST] = list(method.body)
    while to_do:
        node = to_do.pop(0)
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            to_do[:0] = ast.iter_child_nodes(node)


def _in_next_tuple(
    cls: PythonClass, name: str, node: ast.AST, file: PythonFile
) -> Iterator[tuple[str, str, Place, str]]:
    where = f"{cls.name}.{name}"
    if (
        isinstance(node, ast.While)
        and isinstance(node.test, ast.Constant)
        and node.test.value
        and not _ends(node)
    ):
        yield (
            "note",
            f"{where} never returns, because of its `while {ast.unparse(node.test)}`: what it emits leaves at once, but {_COST}",
            file.place(node),
            _INSTEAD,
        )
    elif (
        isinstance(node, ast.For)
        and not _ends(node)
        and _ENDLESS.search(ast.unparse(node.iter))
        and _emits(node)
    ):
        yield (
            "note",
            f"{where} iterates over {ast.unparse(node.iter)[:60]}: if that has no end, the call never returns. "
            f"What it emits leaves at once, but {_COST}",
            file.place(node),
            "keep the iterator in initialize, and let next_tuple take next(...) of it (docs/tasks.md, A spout that waits)",
        )
    elif isinstance(node, ast.Call) and _waits_for_ever(node):
        yield (
            "note",
            f"{where} waits without a limit in {ast.unparse(node)[:60]}: it has a thread of its own, so nobody else waits, "
            f"but a stop waits 10 s for it",
            file.place(node),
            "give it a timeout of a second, and return if nothing came",
        )


def _waits_for_ever(call: ast.Call) -> bool:
    return (
        call_name(call) == "get"
        and not (call.args or call.keywords)
        and "queue" in ast.unparse(call.func).lower()
    )


def _ends(loop: ast.While | ast.For) -> bool:
    """Return whether a loop has a statement that leaves it."""

    def leaves(node: ast.AST, inside: bool) -> bool:
        if isinstance(node, ast.Return | ast.Raise) or (isinstance(node, ast.Break) and not inside):
            return True
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            return False
        inner = inside or isinstance(node, ast.While | ast.For)
        return any(leaves(child, inner) for child in ast.iter_child_nodes(node))

    return any(leaves(child, False) for child in loop.body)


def _emits(node: ast.AST) -> bool:
    return any(call_name(one).startswith("emit") for one in ast.walk(node))


def _sleep(
    project: PythonProject, cls: PythonClass, name: str, call: ast.Call, file: PythonFile
) -> tuple[str, str, Place, str]:
    value = project.value(call.args[0], file) if call.args else None
    known = value if isinstance(value, int | float) and value > 0 else None
    secs = f"{known:g} s" if known is not None else "some time"
    where = f"{cls.name}.{name} sleeps {secs}"
    alone = "each executor has a thread of its own, so nobody else waits"  # A16
    if name in _NEXT:
        text = f"{where}: {alone}, but its task hears acks and fails that much later, and has one call in {secs} at most"
        return (
            "note",
            text,
            file.place(call),
            "a spout with nothing to emit may return at once: it need not sleep",
        )
    if name in _PER_TUPLE:
        most = f"at most {1 / known:g} tuples per second" if known is not None else "few tuples per second"
        text = f"{where} in each call: {alone}, but an executor executes {most}"
        return "note", text, file.place(call), "a larger parallelism helps"
    return "note", f"{where}: {alone}", file.place(call), ""
