"""Writes ``docs/reference/messages.md`` from the code: ``make messages``."""

from __future__ import annotations

import ast
import inspect
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from stormspark import errors

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "reference" / "messages.md"
_PACKAGE = ROOT / "stormspark"

_HEAD = """# Messages

<!-- Written by `make messages` from the code. -->

What stormspark says when something is wrong, from the code.
`<...>` stands for what a message fills in: the name of a component, a task, a file with its line, a value.
A message names what was expected, what came, and what to do next, so this page only adds what each kind of error means.
Look for a few words of your message, without its names and numbers.

The exit code of `stormspark run` is 2 if the topology could not be started, 1 if it stopped with an error, and 3 if it ended but
gave up rows or did nothing.
"""
_BUILTIN = {
    "TypeError": "An argument has a wrong type.",
    "ValueError": "An argument has a wrong value.",
}
_WARNINGS = "Warnings"
_ADVICE = "Advice at the start"
_FOUND = "Findings of `stormspark doctor`"
_MEANT = {
    _WARNINGS: "After most of them the topology goes on. They are in the logs; those of the driver are on the terminal, too.",
    _ADVICE: "The topology runs. `stormspark explain` and the start of a run give this advice.",
    _FOUND: "What keeps topologies from running here, or may. Some of it is also an error at the start of a run.",
}
_LOGGED = ("warning", "error", "exception", "critical")
#: Words without which a text is no message of its own, but a part of one.
_SHORTEST = 3


class Message(NamedTuple):
    """A text with ``<...>`` in the place of values, and the class of the error or the kind of the message."""

    kind: str
    text: str


def page() -> str:
    """The text of the page."""
    by_kind = defaultdict(set)
    for message in messages():
        by_kind[message.kind].add(message.text)
    lines = [_HEAD]
    for kind, meaning in _kinds():
        if texts := by_kind.get(kind):
            lines += [
                f"## {kind}\n\n{meaning}\n",
                *(f"- {_as_code(text)}" for text in sorted(texts, key=_order)),
                "",
            ]
    return "\n".join(lines)


def messages() -> Iterator[Message]:
    """All messages of the package, in no order."""
    known = {kind: kind for kind, _ in _kinds()}
    trees = {
        file: ast.parse(file.read_text(encoding="utf-8"))
        for file in sorted(_PACKAGE.rglob("*.py"))
        if "libraries" not in file.parts  # Storm's own, for children
    }
    for tree in trees.values():
        known |= {function: known[kind] for function, kind in _makers(tree) if kind in known}
    for file, tree in trees.items():
        for said in _found_by_checks(tree):
            yield Message(_FOUND, said)
        found = _yielded(tree) if file == _PACKAGE / "plan" / "advice.py" else _raised_or_logged(tree)
        for kind, node in found:
            text = _template(node)
            if kind in known and len(text.split()) >= _SHORTEST:
                yield Message(known[kind], text)


def _kinds() -> Iterator[tuple[str, str]]:
    """The kinds of messages with their meanings, in the order of the page."""
    for name in errors.__all__:
        described = inspect.getdoc(getattr(errors, name)) or ""
        yield name, re.sub(r" \([A-Z]\d+(, [A-Z]\d+)*\)", "", described.replace("``", "`"))
    yield from _BUILTIN.items()
    yield from _MEANT.items()


def _raised_or_logged(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    for block in _blocks(tree):
        texts: dict[str, ast.expr] = {}
        for statement in block:
            if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
                texts[statement.targets[0].id] = statement.value
            if isinstance(statement, ast.Raise) and isinstance(statement.exc, ast.Call):
                for said in statement.exc.args:
                    yield (
                        _name(statement.exc.func),
                        texts.get(said.id, said) if isinstance(said, ast.Name) else said,
                    )
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.args and _is_log(node.func):
            yield _WARNINGS, _filled_in(node.args)


def _found_by_checks(tree: ast.Module) -> Iterator[str]:
    """What checks have found, with their advice. What is fine is no message."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _name(node.func) == "Result" and len(node.args) > 3:
            status, *said = node.args[1:]
            text = ": ".join(map(_template, said)).strip(": ")
            if (
                not (isinstance(status, ast.Attribute) and status.attr == "OK")
                and len(text.split()) >= _SHORTEST
            ):
                yield text


def _makers(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """The functions that return an error, for others to raise, and the error's class."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and isinstance(node.returns, ast.Name):
            yield _name(ast.Name(node.name)), node.returns.id


def _yielded(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Yield | ast.Return) and isinstance(
            node.value, ast.JoinedStr | ast.Constant | ast.BinOp
        ):
            yield _ADVICE, node.value


def _blocks(tree: ast.Module) -> Iterator[list[ast.stmt]]:
    for node in ast.walk(tree):
        for part in ("body", "orelse", "finalbody"):
            if isinstance(block := getattr(node, part, None), list):
                yield block


def _is_log(called: ast.expr) -> bool:
    return (
        isinstance(called, ast.Attribute)
        and called.attr in _LOGGED
        and _name(called.value) in ("_log", "log")
    )


def _filled_in(arguments: list[ast.expr]) -> ast.expr:
    """The text of a log call as an f-string, so that its ``%s`` have the names of what they stand for."""
    text = arguments[0]
    if not (isinstance(text, ast.Constant) and isinstance(text.value, str)):
        return text
    first, *others = re.split(r"%[-.\d]*[srdgf]", text.value)
    parts: list[ast.expr] = [ast.Constant(first)]
    several = any(isinstance(value, ast.Starred) for value in arguments)
    values = [ast.Constant("...")] * len(others) if several else arguments[1:]
    for value, constant in zip(values, others, strict=False):
        parts += [ast.FormattedValue(value, conversion=-1), ast.Constant(constant)]
    return ast.JoinedStr(parts)


def _template(node: ast.expr) -> str:
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(map(_template, parts))
        case ast.BinOp(left=left, right=right):
            return _template(left) + _template(right)
        case ast.IfExp(body=body):
            return _template(body)
        case ast.FormattedValue(value=value):
            return f"<{_name(value) or '...'}>"
    return ""


def _name(node: ast.expr) -> str:
    """The word for a value: the last name in its expression."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name.strip("_").replace("_", " ") if name != "_log" else name
        case ast.Subscript(value=value) | ast.Await(value=value):
            return _name(value)
        case ast.Call(func=ast.Attribute(attr="join"), args=[joined, *_]):
            return _name(joined)
        case ast.Call(func=called, args=[argument, *_]):
            return _name(argument) or _name(called)
        case ast.Call(func=called):
            return _name(called)
    return ""


def _as_code(text: str) -> str:
    ticks = "``" if "`" in text else "`"
    space = " " if "`" in text else ""
    return f"{ticks}{space}{' '.join(text.split())}{space}{ticks}"


def _order(text: str) -> tuple[str, str]:
    """By the first words that are not filled in."""
    return re.sub(r"<[^>]*>", "", text).strip(" :,'\"").casefold(), text


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)}")
