"""Reads what a file takes from elsewhere: Java classes, and names of the project's other namespaces.

``(:use [shop.spouts :only [orders] :rename {orders orders-spout}])`` and ``(:require [shop.spouts :as spouts])`` read the file
``shop/spouts.clj`` in the project's folders for Clojure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from stormspark.compat.streamparse.clojure.evaluation import Evaluation
from stormspark.compat.streamparse.clojure.forms import (
    Form,
    ListForm,
    MapForm,
    Symbol,
    VectorForm,
    read_forms,
)
from stormspark.compat.streamparse.clojure.specs import ClojureSpec
from stormspark.compat.streamparse.clojure.values import ClojureError, JavaValue, Keyword, Unknown

__all__ = ["read_namespace"]

#: Namespaces that are not the project's.
_KNOWN = ("clojure.", "streamparse.", "backtype.storm.", "org.apache.storm.")
#: Folders of a project that have Clojure code.
_FOLDERS = ("src", "src/clj", "src/main/clojure", "topologies", ".")
_MOST_PARENTS = 6
_NAME = re.compile(r"[\w-]+(\.[\w-]+)*")


def read_namespace(evaluation: Evaluation, form: Form, path: Path) -> None:
    """Note the names that ``ns`` gives to namespaces and Java classes, and the values of other namespaces of the project."""
    if not isinstance(form, ListForm) or not form.items or not isinstance(form.items[0], Symbol):
        return
    if form.items[0].name not in ("ns", "import", "require", "use"):
        return
    for part in [one for one in form.items if isinstance(one, ListForm)] or [form]:
        for one in part.items[1:]:
            items = one.items[1:2] if _is_quote(one) else (one,)
            for item in items:
                _read_item(evaluation, part.items[0], item, path)


def _is_quote(form: Form) -> bool:
    return isinstance(form, ListForm) and bool(form.items) and getattr(form.items[0], "name", "") == "quote"


def _read_item(evaluation: Evaluation, kind: Form, item: Form, path: Path) -> None:
    if isinstance(item, Symbol):
        if "." in item.name:
            evaluation.classes[item.name.rpartition(".")[2]] = item.name
        if kind == Keyword("use"):
            _take(evaluation, item.name, {}, path)
        return
    if not isinstance(item, VectorForm | ListForm) or not item.items or not isinstance(item.items[0], Symbol):
        return
    name, *rest = item.items
    if kind == Keyword("import") or getattr(kind, "name", "") == "import":
        evaluation.classes |= {one.name: f"{name.name}.{one.name}" for one in rest if isinstance(one, Symbol)}
        return
    if inner := _in_prefix(name, rest):
        for one in inner:
            _read_item(evaluation, kind, one, path)
        return
    options = dict(zip(rest[::2], rest[1::2], strict=False))
    alias = options.get(Keyword("as"))
    if isinstance(alias, Symbol):
        evaluation.aliases[alias.name] = name.name
    uses = kind == Keyword("use") or getattr(kind, "name", "") == "use" or Keyword("refer") in options
    if uses or alias is not None:
        _take(evaluation, name.name, options, path, refers=uses)


def _in_prefix(name: Symbol, rest: list[Form]) -> list[Form]:
    """Return the items of a prefix list: ``[shop parts [more :as m]]`` stands for shop.parts and ``[shop.more :as m]``."""
    found: list[Form] = []
    for at, one in enumerate(rest):
        if at and isinstance(rest[at - 1], Keyword):
            continue
        if isinstance(one, Symbol):
            found.append(Symbol(f"{name.name}.{one.name}", one.line))
        elif isinstance(one, VectorForm | ListForm) and one.items and isinstance(one.items[0], Symbol):
            first = Symbol(f"{name.name}.{one.items[0].name}", one.line)
            found.append(VectorForm((first, *one.items[1:]), one.line))
    return found


def _take(
    evaluation: Evaluation, namespace: str, options: dict[Any, Form], path: Path, *, refers: bool = True
) -> None:
    """Define the names of another namespace of the project, if its file is found."""
    if namespace.startswith(_KNOWN) or not _NAME.fullmatch(namespace):
        return
    file = _file_of(namespace, path)
    if file is None:
        return
    other = Evaluation(evaluation.dsl)
    try:
        for form in read_forms(file.read_text("utf-8-sig", errors="replace")):
            read_namespace(other, form, file)
            other.limited(form, lambda form=form: other.value(form))  # type: ignore[misc]
    except (OSError, ClojureError, RecursionError):
        return  # its names stay unknown, and the error names the one that is used
    values = {name: _Elsewhere(value, file).value() for name, value in other.names.items()}
    alias = options.get(Keyword("as"))
    if isinstance(alias, Symbol):
        evaluation.names |= {f"{alias.name}/{name}": value for name, value in values.items()}
    if not refers:
        return
    listed = options.get(Keyword("only"), options.get(Keyword("refer")))
    if isinstance(listed, VectorForm | ListForm):
        wanted = {one.name for one in listed.items if isinstance(one, Symbol)}
        values = {name: value for name, value in values.items() if name in wanted}
    renamed = options.get(Keyword("rename"))
    names = {
        one.name: other_name.name
        for one, other_name in (renamed.pairs if isinstance(renamed, MapForm) else ())
        if isinstance(one, Symbol) and isinstance(other_name, Symbol)
    }
    evaluation.names |= {names.get(name, name): value for name, value in values.items()}


def _file_of(namespace: str, path: Path) -> Path | None:
    parts = Path(*namespace.replace("-", "_").split(".")).with_suffix(".clj")
    for parent in list(path.resolve().parents)[:_MOST_PARENTS]:
        for folder in _FOLDERS:
            if (file := parent / folder / parts).is_file() and file != path.resolve():
                return file
    return None


@dataclass(frozen=True, eq=False)
class _Elsewhere:
    """A value of another file. Its lines are lines of that file, so messages must name the file."""

    content: Any
    file: Path
    is_dsl = True

    def value(self) -> Any:
        """Return the value for use in a file that takes it."""
        return self if callable(self.content) else self._named(self.content, 1)

    def __call__(self, line: int, *args: Any) -> Any:
        """Call a function of the other file."""
        function = self.content
        if getattr(function, "is_dsl", False):
            return function(line, *args)
        return self._named(function(*args), line)

    def _named(self, value: Any, line: int) -> Any:
        if isinstance(value, Unknown):
            return replace(value, line=line, why=f"{value.why}, {self.file}:{value.line}")
        if isinstance(value, ClojureSpec):
            value.problems = [(line, f"{problem} ({self.file}:{at})") for at, problem in value.problems]
            value.line = line
        if isinstance(value, JavaValue):
            value.file = value.file or str(self.file)
        return value
