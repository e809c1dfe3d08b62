"""Parses Python sources with ``ast``. Finds a project's classes, the meaning of names, and the values of plain expressions.

Nothing is imported. If a file imports a name from a module of the project, the name is followed to its definition. If the file
imports the name from elsewhere, only the name's dotted path is known.
"""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

from stormspark.compat.heronpy import constants
from stormspark.porting.drafts_in_python3 import decoded, in_python3, lines_before
from stormspark.porting.findings import Place, Unresolved
from stormspark.user_code import parsed

__all__ = [
    "CHILDRENS_MODULE",
    "LIBRARIES",
    "ORIGINALS",
    "Import",
    "Method",
    "PythonClass",
    "PythonFile",
    "PythonProject",
    "assignment",
    "call_name",
    "keywords",
]


#: Packages that front-ends of stormspark replace. If the project has a copy of such a package, the copy is not read.
ORIGINALS = {"streamparse", "pystorm", "heronpy", "petrel"}

#: The Python packages whose components a front-end of stormspark can run.
LIBRARIES: Final = {"streamparse", "pystorm", "heronpy", "pyheron", "heron", "petrel"}

#: Storm's library for children in Python. It is no package that can be installed.
CHILDRENS_MODULE: Final = "storm"

#: The statement that defines a method: ``def`` or ``async def``.
Method: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Import:
    """A module that a file imports, by its absolute dotted path, with the line of the statement.

    ``optional`` says that the statement is inside of a ``try``, or is never run: then the file works without the module.
    """

    module: str
    line: int
    optional: bool


@dataclass(eq=False)
class PythonFile:
    """A parsed module: its imports, its classes, and the values of its names."""

    path: Path
    shown: str
    tree: ast.Module
    #: The modules that this module imports.
    modules: list[Import] = field(default_factory=list)
    #: The same with relative imports, and with each imported name, which may be a module too: ``bolts.split`` for
    #: ``from bolts import split``.
    maybe_modules: list[Import] = field(default_factory=list)
    #: The modules whose names a star import brings, such as ``bolts`` for ``from bolts import *``.
    stars: list[str] = field(default_factory=list)
    #: For each imported name in this module, the dotted path that it stands for.
    imports: dict[str, str] = field(default_factory=dict)
    classes: dict[str, ast.ClassDef] = field(default_factory=dict)
    values: dict[str, ast.expr] = field(default_factory=dict)

    def place(self, node: ast.AST) -> Place:
        """Return the line where a node begins."""
        return Place(self.shown, getattr(node, "lineno", 1))


@dataclass(eq=False)
class PythonClass:
    """A class of the project, with the classes of the project that it extends."""

    file: PythonFile
    node: ast.ClassDef
    parents: list[PythonClass]
    #: The dotted paths of those base classes that are not in the project.
    library_bases: list[str]

    @property
    def name(self) -> str:
        """The name in the class statement."""
        return self.node.name

    @property
    def place(self) -> Place:
        """The line of the class statement."""
        return self.file.place(self.node)

    def chain(self) -> Iterator[PythonClass]:
        """Yield the class, then each class of the project that it extends."""
        yield self
        for parent in self.parents:
            yield from parent.chain()

    def bases(self) -> list[str]:
        """Return the dotted paths of the library classes that the class extends, directly or indirectly."""
        return [base for one in self.chain() for base in one.library_bases]

    def attribute(self, name: str) -> tuple[ast.expr, PythonFile] | None:
        """Return the value of a class attribute, and the file that has the value. The class may inherit it within the project."""
        for one in self.chain():
            for statement in one.node.body:
                targets, value = assignment(statement)
                if value is not None and any(isinstance(t, ast.Name) and t.id == name for t in targets):
                    return value, one.file
        return None

    def methods(self) -> dict[str, tuple[Method, PythonFile]]:
        """Return the methods of the class by name, including those inherited from the project's classes."""
        found: dict[str, tuple[Method, PythonFile]] = {}
        for one in self.chain():
            for statement in one.node.body:
                if isinstance(statement, Method):
                    found.setdefault(statement.name, (statement, one.file))
        return found


class PythonProject:
    """The modules of a project, each parsed once. ``errors`` has the files that could not be parsed."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.errors: dict[Path, tuple[Place, str]] = {}
        #: The files that Python 3 can't parse, but Python 2 can: the line of the first error, and the error.
        self.old: dict[Path, tuple[Place, str]] = {}
        #: Drafts of files in Python 3. What is read of such a file is read from its draft, whose lines are those of the file.
        self.drafts: dict[Path, str] = {}
        self._files: dict[Path, PythonFile | None] = {}

    def shown(self, path: Path) -> str:
        """Return the path in the form in which the report names it."""
        return path.relative_to(self.root).as_posix() if path.is_relative_to(self.root) else str(path)

    def file(self, path: Path) -> PythonFile | None:
        """Return the parsed file. If the file can't be parsed, add the error to ``errors``, and return None."""
        path = path.absolute()
        if path not in self._files:
            self._files[path] = self._read(path)
        return self._files[path]

    def _read(self, path: Path) -> PythonFile | None:
        shown = self.shown(path)
        try:
            source = path.read_bytes()
            tree = parsed(source)
        except SyntaxError as error:
            place = Place(shown, error.lineno or 1)
            draft = in_python3(source, str(path), in_package=self.is_in_package(path))
            if draft is None or (again := _parsed(draft)) is None:
                self.errors[path] = (place, f"Python can't parse this file: {error.msg}")
                return None
            self.drafts[path] = draft
            self.old[path] = place, error.msg
            _renumber(again, lines_before(decoded(source) or "", draft))
            tree = again
        except (OSError, ValueError, RecursionError) as error:
            self.errors[path] = Place(shown, 1), f"can't be read: {error}"
            return None
        file = PythonFile(path, shown, tree)
        self._read_imports(file, tree, self._package(path), optional=False)
        for statement in tree.body:
            if isinstance(statement, ast.ClassDef):
                file.classes[statement.name] = statement
            else:
                targets, value = assignment(statement)
                for target in targets:
                    if value is not None and isinstance(target, ast.Name):
                        file.values[target.id] = value
        return file

    def _read_imports(self, file: PythonFile, node: ast.AST, package: list[str], *, optional: bool) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                for alias in child.names:
                    file.modules.append(Import(alias.name, child.lineno, optional))
                    file.maybe_modules.append(file.modules[-1])
                    top = alias.name.partition(".")[0]
                    file.imports[alias.asname or top] = alias.name if alias.asname else top
            elif isinstance(child, ast.ImportFrom):
                module = child.module or ""
                if child.level:
                    around = package[: len(package) - child.level + 1]
                    module = ".".join([*around, *([module] if module else [])])
                else:
                    file.modules.append(Import(module, child.lineno, optional))
                names = [alias.name for alias in child.names if alias.name != "*"]
                file.maybe_modules += [
                    Import(".".join(filter(None, (module, *name))), child.lineno, optional)
                    for name in [(), *((one,) for one in names)]
                ]
                for alias in child.names:
                    if alias.name == "*":
                        file.stars.append(module)
                    else:
                        name = f"{module}.{alias.name}" if module else alias.name
                        file.imports[alias.asname or alias.name] = name
            else:
                if isinstance(child, ast.FunctionDef) and child.name.startswith("test"):
                    continue  # a test beside the code that it tests, as Petrel's projects have them
                tried = isinstance(child, ast.Try) or (isinstance(child, ast.If) and _never_runs(child.test))
                self._read_imports(file, child, package, optional=optional or tried)

    def _package(self, path: Path) -> list[str]:
        """Return the names of the packages around a module, outermost first. A package is a folder with an ``__init__.py``."""
        parts: list[str] = []
        folder = path.parent
        while (folder / "__init__.py").is_file() and folder != folder.parent:
            parts.insert(0, folder.name)
            folder = folder.parent
        return parts

    # -- names -----------------------------------------------------------------------------------------------

    def dotted(self, node: ast.AST, file: PythonFile) -> str:
        """Return the dotted path that a name stands for, such as ``streamparse.Bolt``; empty if the expression is not a name."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.insert(0, node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return ""
        return ".".join([self.meaning(node.id, file), *parts])

    def meaning(self, name: str, file: PythonFile) -> str:
        """Return the dotted path that a name of a module stands for. It may come from a star import, even through others."""
        if name in file.imports or name in file.classes or name in file.values or hasattr(builtins, name):
            return file.imports.get(name, name)
        return self._from_star(name, file, {file.path}) or name

    def _from_star(self, name: str, file: PythonFile, seen: set[Path]) -> str | None:
        if name.startswith("_"):
            return None
        for module in reversed(file.stars):
            top = module.partition(".")[0]
            if top in ORIGINALS:
                if name in _LIBRARY_NAMES:
                    return f"{module}.{name}"
                continue
            for found in self._modules(module, file):
                if name in found.imports:
                    return found.imports[name]
                if name in found.classes or name in found.values:
                    return f"{module}.{name}"
                if found.path not in seen:
                    seen.add(found.path)
                    if (further := self._from_star(name, found, seen)) is not None:
                        return further
        return None

    def find_class(self, node: ast.AST, file: PythonFile, depth: int = 0) -> PythonClass | None:
        """Return the project's class that a name stands for; None if there is no such class."""
        if isinstance(node, ast.Name) and node.id in file.classes:
            return self._class(file.classes[node.id], file, depth)
        return self._class_at(self.dotted(node, file), file, depth)

    def _class_at(self, dotted: str, file: PythonFile, depth: int) -> PythonClass | None:
        module, _, name = dotted.rpartition(".")
        if not module or depth > 10 or module.partition(".")[0] in ORIGINALS:
            return None
        for found in self._modules(module, file):
            if name in found.classes:
                return self._class(found.classes[name], found, depth + 1)
            meant = self.meaning(name, found)
            if meant not in (name, dotted):
                return self._class_at(meant, found, depth + 1)
        return None

    def _class(self, node: ast.ClassDef, file: PythonFile, depth: int) -> PythonClass:
        parents, bases = [], []
        for base in node.bases:
            inner = base.value if isinstance(base, ast.Subscript) else base
            parent = (
                self.find_class(inner, file, depth + 1) if depth < 10 and not _is(inner, node.name) else None
            )
            if parent is not None:
                parents.append(parent)
            elif dotted := self.dotted(inner, file):
                bases.append(dotted)
        return PythonClass(file, node, parents, bases)

    def has_module(self, name: str, file: PythonFile) -> bool:
        """Return whether the project has a module or a package of this name in a folder from which ``file`` may import."""
        return any(_has(folder, name) for folder in self._folders(file))

    def imports_implicitly(self, name: str, file: PythonFile) -> bool:
        """Return whether only Python 2 finds a module: it is beside ``file`` in a package, and nowhere on the module path."""
        folder = file.path.parent
        if not self.is_in_package(file.path) or not _has(folder, name):
            return False
        return not any(_has(one, name) for one in self._folders(file) if self._is_root(one))

    def is_in_package(self, path: Path) -> bool:
        """Return whether a module belongs to a package, and is not imported as a module of its own."""
        return (path.parent / "__init__.py").is_file() and not self._is_root(path.parent)

    def _is_root(self, folder: Path) -> bool:
        """Return whether a folder may be on the module path: it is no package, or has the name of such a folder."""
        is_package = (folder / "__init__.py").is_file()
        return not is_package or folder == self.root or folder.name in ("src", "topologies", "resources")

    def reached(self, paths: Iterable[Path]) -> Iterator[PythonFile]:
        """Yield the files of the project at ``paths``, and those that they import, directly or indirectly."""
        to_do, seen = list(paths), set[Path]()
        while to_do:
            file = self.file(to_do.pop(0))
            if file is None or file.path in seen:
                continue
            seen.add(file.path)
            yield file
            for one in file.modules:
                if one.module.partition(".")[0] not in ORIGINALS:
                    to_do += [found.path for found in self._modules(one.module, file)]
            for module in {dotted.rpartition(".")[0] for dotted in file.imports.values()} - {""}:
                if module.partition(".")[0] not in ORIGINALS:
                    to_do += [found.path for found in self._modules(module, file)]

    def imported(self, file: PythonFile) -> Iterator[Path]:
        """Yield the files of the project that ``file`` can't do without: its imports, and the packages around them."""
        for one in file.maybe_modules:
            parts = one.module.split(".")
            if one.optional or parts[0] in {*ORIGINALS, *sys.stdlib_module_names}:
                continue
            for end in range(1, len(parts) + 1):
                yield from self._exactly(parts[:end], file)

    def _exactly(self, parts: Sequence[str], file: PythonFile) -> Iterator[Path]:
        for folder in self._folders(file):
            path = folder.joinpath(*parts)
            for candidate in (path / "__init__.py", path.with_name(f"{path.name}.py")):
                if candidate.is_file():
                    yield candidate
                    return

    def _modules(self, dotted: str, file: PythonFile) -> Iterator[PythonFile]:
        parts = dotted.split(".")
        # An import may begin with folders that the project lacks. For example, examples.src.python.spout may be spout.py in the
        # file's own folder.
        for begin in range(len(parts)):
            for folder in self._folders(file):
                path = folder.joinpath(*parts[begin:])
                for candidate in (path.with_name(f"{path.name}.py"), path / "__init__.py"):
                    if candidate.is_file() and (found := self.file(candidate)) is not None:
                        yield found

    def _folders(self, file: PythonFile) -> list[Path]:
        """Return the folders that may contain imported modules.

        These are all folders around the file, up to the project's root, and the folder ``src`` in each of them.
        """
        folders = []
        for folder in file.path.parents:
            folders += [folder, folder / "src"]
            if folder == self.root:
                break
        return folders

    # -- values ----------------------------------------------------------------------------------------------

    def value(self, node: ast.expr | None, file: PythonFile, names: dict[str, ast.expr] | None = None) -> Any:
        """Return the value of an expression of literals, and of names that stand for literals; otherwise an `Unresolved`."""
        if node is None:
            return None
        try:
            return self._value(node, file, names or {}, 0)
        except _NotPlainError:
            return Unresolved(ast.unparse(node)[:80])

    def _value(self, node: ast.expr, file: PythonFile, names: dict[str, ast.expr], depth: int) -> Any:
        if depth > 20:
            raise _NotPlainError
        match node:
            case ast.Constant():
                return node.value
            case ast.List() | ast.Tuple():
                return [self._value(one, file, names, depth + 1) for one in node.elts]
            case ast.Dict():
                pairs = zip(node.keys, node.values, strict=True)
                return {
                    self._key(key, file, names, depth): self._inner(value, file, names, depth)
                    for key, value in pairs
                }
            case ast.UnaryOp(op=ast.USub()):
                inner = self._value(node.operand, file, names, depth + 1)
                if isinstance(inner, int | float):
                    return -inner
            case ast.BinOp(op=ast.Add()):
                left, right = (self._value(one, file, names, depth + 1) for one in (node.left, node.right))
                if isinstance(left, str) and isinstance(right, str):
                    return left + right
            case ast.Name():
                if node.id in names:
                    return self._value(names[node.id], file, {}, depth + 1)
                if node.id in file.values:
                    return self._value(file.values[node.id], file, {}, depth + 1)
                return self._constant(self.meaning(node.id, file), file, depth)
            case ast.Attribute():
                return self._constant(self.dotted(node, file), file, depth)
        raise _NotPlainError

    def _key(self, node: ast.expr | None, file: PythonFile, names: dict[str, ast.expr], depth: int) -> Any:
        if node is None:
            raise _NotPlainError
        key = self._value(node, file, names, depth + 1)
        if not isinstance(key, str | int):
            raise _NotPlainError
        return key

    def _inner(self, node: ast.expr, file: PythonFile, names: dict[str, ast.expr], depth: int) -> Any:
        """Return a value inside of a dict. If it is not known, return an `Unresolved`, so that the dict's other values count."""
        try:
            return self._value(node, file, names, depth + 1)
        except _NotPlainError:
            return Unresolved(ast.unparse(node)[:80])

    def _constant(self, dotted: str, file: PythonFile, depth: int) -> Any:
        module, _, name = dotted.rpartition(".")
        # Most names of heronpy's constants are like Heron's keys: TOPOLOGY_DEBUG is the key topology.debug.
        if module.endswith(("constants", "api_constants")) and name.startswith("TOPOLOGY_"):
            return getattr(constants, name, name.lower().replace("_", "."))
        if module.endswith("TopologyReliabilityMode"):
            return name
        if module.endswith(("SlidingWindowBolt", "TumblingWindowBolt")) and name in _WINDOW_KEYS:
            return f"{module.rpartition('.')[2].lower()}_{_WINDOW_KEYS[name]}"
        for found in self._modules(module, file) if module else ():
            if name in found.values:
                return self._value(found.values[name], found, {}, depth + 1)
        raise _NotPlainError


#: heronpy's window bolts have these constants. The value of a constant is a configuration key, which ends as given here (C22).
_WINDOW_KEYS = {"WINDOW_DURATION_SECS": "duration_secs", "WINDOW_SLIDEINTERVAL_SECS": "slideinterval_secs"}


#: The names that a star import of a library may bring.
_LIBRARY_NAMES = {
    *(
        "Topology",
        "TopologyBuilder",
        "Grouping",
        "Stream",
        "Spout",
        "ReliableSpout",
        "Bolt",
        "BasicBolt",
        "BatchingBolt",
    ),
    *(
        "TicklessBatchingBolt",
        "JavaBolt",
        "JavaSpout",
        "ShellBolt",
        "ShellSpout",
        "Tuple",
        "SlidingWindowBolt",
    ),
    *("TumblingWindowBolt", "StatefulComponent", "storm", "constants"),
}


def _parsed(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None


def _renumber(tree: ast.Module, numbers: Sequence[int]) -> None:
    """Give the nodes of a draft the numbers of the lines from which they were made."""
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0)
        if 0 < line <= len(numbers):
            node.lineno = numbers[line - 1]  # type: ignore[attr-defined]


def _has(folder: Path, name: str) -> bool:
    return (folder / f"{name}.py").is_file() or any((folder / name).glob("*.py"))


def _never_runs(test: ast.expr) -> bool:
    """Return whether a condition only holds in Python 2 or while types are checked."""
    text = ast.unparse(test)
    return "TYPE_CHECKING" in text or "PY2" in text or "version_info" in text


class _NotPlainError(Exception):
    """Raised if the value of an expression is only known when the code runs."""


def _is(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def assignment(statement: ast.stmt) -> tuple[list[ast.expr], ast.expr | None]:
    """Return the targets and the value of an assignment, with or without an annotation. Without a value, return no targets.

    >>> targets, value = assignment(ast.parse("x: int = 7").body[0])
    >>> ast.unparse(targets[0]), ast.unparse(value)
    ('x', '7')
    """
    if isinstance(statement, ast.Assign):
        return statement.targets, statement.value
    if isinstance(statement, ast.AnnAssign) and statement.value is not None:
        return [statement.target], statement.value
    return [], None


def call_name(node: ast.AST) -> str:
    """Return the last part of a called function's name: ``spec`` for ``Split.spec(...)``. Return "" for any other node."""
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute):
            return node.func.attr
        if isinstance(node.func, ast.Name):
            return node.func.id
    return ""


def keywords(node: ast.Call, *positions: str) -> dict[str, ast.expr]:
    """Return a call's arguments by name. ``positions`` are the names of the positional arguments, in order."""
    given = dict(zip(positions, node.args, strict=False))
    given.update({one.arg: one.value for one in node.keywords if one.arg is not None})
    return given
