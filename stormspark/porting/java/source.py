"""Parses Java files with tree-sitter. Finds their classes, methods and fields, and the meaning of names.

A file with syntax errors is read too. Its errors are recorded with their lines, and the rest of the file is available.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from stormspark.errors import UnsupportedEnvironmentError
from stormspark.porting.findings import Place

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

__all__ = [
    "JavaClass",
    "JavaField",
    "JavaFile",
    "JavaMethod",
    "JavaSources",
    "Parameter",
    "arguments_of",
    "descendants",
    "java_parser",
    "line_of",
    "parse_file",
    "text_of",
    "type_name",
]

_CLASSES = {
    "class_declaration",
    "interface_declaration",
    "enum_declaration",
    "record_declaration",
}


def java_parser() -> Parser:
    """Return a parser for Java. Raises `UnsupportedEnvironmentError` if tree-sitter is not installed."""
    try:
        import tree_sitter_java
        from tree_sitter import Language, Parser
    except ImportError as error:
        msg = "reading Java needs tree-sitter and tree-sitter-java: pip install 'stormspark[port]'"
        raise UnsupportedEnvironmentError(msg) from error
    return Parser(Language(tree_sitter_java.language()))


@dataclass(frozen=True)
class Parameter:
    """A parameter. ``type`` has no type arguments. If ``rest``, the parameter takes all further arguments, like ``int... n``."""

    type: str
    name: str
    rest: bool = False


@dataclass(eq=False)
class JavaMethod:
    """A method or a constructor."""

    name: str
    parameters: tuple[Parameter, ...]
    body: Node | None
    static: bool
    owner: JavaClass
    node: Node
    returns: str = ""

    @property
    def place(self) -> Place:
        """The line of the method's name. Annotations may be on lines before it."""
        name = self.node.child_by_field_name("name")
        return self.owner.file.place(name or self.node)


@dataclass(frozen=True, eq=False)
class JavaField:
    """A field with its initial value, if it has one."""

    name: str
    type: str
    value: Node | None
    static: bool
    node: Node


@dataclass(eq=False)
class JavaClass:
    """A class, interface, enum or record, or an anonymous class."""

    name: str
    file: JavaFile
    node: Node
    outer: JavaClass | None
    superclass: str
    interfaces: tuple[str, ...]
    methods: dict[str, list[JavaMethod]] = field(default_factory=dict)
    constructors: list[JavaMethod] = field(default_factory=list)
    fields: dict[str, JavaField] = field(default_factory=dict)
    inner: dict[str, JavaClass] = field(default_factory=dict)
    constants: tuple[str, ...] = ()

    @property
    def place(self) -> Place:
        """The line of the class's name."""
        return self.file.place(self.node.child_by_field_name("name") or self.node)

    @property
    def qualified(self) -> str:
        """The class's name, with its package and the names of the classes around it."""
        around = self.outer.qualified if self.outer else self.file.package
        return f"{around}.{self.name}" if around else self.name


@dataclass(eq=False)
class JavaFile:
    """A file: its package, imports and classes, and its syntax errors with their places."""

    path: str
    package: str = ""
    imports: dict[str, str] = field(default_factory=dict)
    static_imports: dict[str, str] = field(default_factory=dict)
    packages: list[str] = field(default_factory=list)
    static_classes: list[str] = field(default_factory=list)
    classes: list[JavaClass] = field(default_factory=list)
    errors: list[tuple[Place, str]] = field(default_factory=list)

    def place(self, node: Node) -> Place:
        """Return the line where a node begins."""
        return Place(self.path, line_of(node))


def text_of(node: Node | None) -> str:
    """Return the source text of a node; empty if ``node`` is None."""
    return "" if node is None or node.text is None else node.text.decode("utf-8", "replace")


def line_of(node: Node) -> int:
    """Return the line where a node begins, counted from 1."""
    return node.start_point[0] + 1


def descendants(node: Node, *types: str) -> Iterator[Node]:
    """Yield the nodes of these types in ``node``, including ``node`` itself, in the order of the text."""
    waiting = [node]
    while waiting:
        one = waiting.pop()
        if one.type in types:
            yield one
        waiting.extend(reversed(one.children))


def arguments_of(node: Node) -> list[Node]:
    """Return the arguments of a call, of ``new``, or of ``this(...)`` and ``super(...)``, without comments."""
    arguments = node.child_by_field_name("arguments")
    return [] if arguments is None else [one for one in arguments.named_children if "comment" not in one.type]


def type_name(node: Node | None) -> str:
    """Return a type as the source names it, but without type arguments: ``Map.Entry``, ``int[]``."""
    if node is None:
        return ""
    if node.type == "generic_type":
        return type_name(node.named_children[0])
    if node.type == "array_type":
        return type_name(node.child_by_field_name("element")) + "[]"
    if node.type == "scoped_type_identifier":
        return ".".join(type_name(one) for one in node.named_children if "annotation" not in one.type)
    return text_of(node)


def parse_file(parser: Parser, path: Path, shown: str) -> JavaFile:
    """Read one file. Raises OSError if the file can't be read."""
    content = path.read_bytes()
    file = JavaFile(shown)
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        content = content.decode("latin-1").encode()
    root = parser.parse(content).root_node
    if root.has_error:
        file.errors.extend(_errors(root, file))
    for node in root.named_children:
        if node.type == "package_declaration":
            file.package = text_of(node.named_children[-1]).replace(" ", "")
        elif node.type == "import_declaration":
            _add_import(file, node)
    _add_classes(file, root, None)
    return file


def _errors(root: Node, file: JavaFile) -> Iterator[tuple[Place, str]]:
    """Yield up to three syntax errors, each with its place. Errors inside of another error are left out."""
    waiting, count = [root], 0
    while waiting and count < 3:
        node = waiting.pop()
        if node.is_error or node.is_missing:
            what = (
                f"{node.type!r} is missing"
                if node.is_missing
                else f"near {text_of(node).split(chr(10))[0][:60]!r}"
            )
            yield file.place(node), what
            count += 1
        elif node.has_error:
            waiting.extend(reversed(node.children))


def _add_import(file: JavaFile, node: Node) -> None:
    words = [text_of(one) for one in node.children if one.type in ("identifier", "scoped_identifier")]
    static = any(one.type == "static" for one in node.children)
    every = any(one.type == "asterisk" for one in node.named_children)
    if not words:
        return
    name = words[0].replace(" ", "")
    if every:
        (file.static_classes if static else file.packages).append(name)
    else:
        (file.static_imports if static else file.imports)[name.rpartition(".")[2]] = name


def _add_classes(file: JavaFile, node: Node, outer: JavaClass | None) -> None:
    for one in node.named_children:
        if one.type in _CLASSES:
            java_class = read_class(file, one, outer)
            if outer is None:
                file.classes.append(java_class)
            else:
                outer.inner[java_class.name] = java_class
        elif one.type == "ERROR":
            _add_classes(file, one, outer)


def read_class(file: JavaFile, node: Node, outer: JavaClass | None) -> JavaClass:
    """Read the declaration of a class, with the classes inside of it."""
    superclass = node.child_by_field_name("superclass")
    interfaces = node.child_by_field_name("interfaces") or next(
        (one for one in node.named_children if one.type == "extends_interfaces"), None
    )
    types = (
        next((one for one in interfaces.named_children if one.type == "type_list"), None)
        if interfaces
        else None
    )
    made = JavaClass(
        name=text_of(node.child_by_field_name("name")),
        file=file,
        node=node,
        outer=outer,
        superclass=type_name(superclass.named_children[0])
        if superclass and superclass.named_children
        else "",
        interfaces=tuple(type_name(one) for one in types.named_children) if types else (),
    )
    read_body(made, node.child_by_field_name("body"))
    return made


def read_body(made: JavaClass, body: Node | None) -> None:
    """Add the methods, constructors, fields and inner classes of a class body. An anonymous class has a body, too."""
    if body is None:
        return
    waiting = list(body.named_children)
    constants = []
    while waiting:
        one = waiting.pop(0)
        if one.type in ("method_declaration", "constructor_declaration", "compact_constructor_declaration"):
            method = _method(made, one)
            if one.type == "method_declaration":
                made.methods.setdefault(method.name, []).append(method)
            else:
                made.constructors.append(method)
        elif one.type in ("field_declaration", "constant_declaration"):
            _add_fields(made, one)
        elif one.type == "enum_constant":
            constants.append(text_of(one.child_by_field_name("name")))
        elif one.type in ("enum_body_declarations", "ERROR"):
            waiting.extend(one.named_children)
    made.constants = tuple(constants)
    _add_classes(made.file, body, made)


def _method(owner: JavaClass, node: Node) -> JavaMethod:
    parameters = node.child_by_field_name("parameters")
    read = []
    for one in parameters.named_children if parameters else ():
        if one.type == "formal_parameter":
            name = text_of(one.child_by_field_name("name"))
            read.append(Parameter(type_name(one.child_by_field_name("type")), name))
        elif one.type == "spread_parameter":
            declarator = next((c for c in one.named_children if c.type == "variable_declarator"), None)
            kind = next(
                (c for c in one.named_children if c.type not in ("modifiers", "variable_declarator")), None
            )
            name = text_of(declarator.child_by_field_name("name")) if declarator else ""
            read.append(Parameter(type_name(kind), name, rest=True))
    return JavaMethod(
        name=text_of(node.child_by_field_name("name")),
        parameters=tuple(read),
        body=node.child_by_field_name("body"),
        static=_has_modifier(node, "static"),
        owner=owner,
        node=node,
        returns=type_name(node.child_by_field_name("type")),
    )


def _add_fields(owner: JavaClass, node: Node) -> None:
    kind = type_name(node.child_by_field_name("type"))
    # Constants of an interface are always static.
    static = _has_modifier(node, "static") or node.type == "constant_declaration"
    for one in node.children_by_field_name("declarator"):
        name = text_of(one.child_by_field_name("name"))
        owner.fields[name] = JavaField(name, kind, one.child_by_field_name("value"), static, one)


def _has_modifier(node: Node, word: str) -> bool:
    modifiers = next((one for one in node.children if one.type == "modifiers"), None)
    return modifiers is not None and any(one.type == word for one in modifiers.children)


class JavaSources:
    """The Java files of a project. This class finds the class that a name stands for."""

    def __init__(self, files: list[JavaFile]) -> None:
        self.files = files
        self._by_name: dict[str, list[JavaClass]] = {}
        self._by_full_name: dict[str, JavaClass] = {}
        for java_class in self.classes():
            self._by_name.setdefault(java_class.name, []).append(java_class)
            self._by_full_name.setdefault(java_class.qualified, java_class)

    def classes(self) -> Iterator[JavaClass]:
        """Yield all named classes, outer classes first."""
        waiting = [one for file in self.files for one in file.classes]
        while waiting:
            one = waiting.pop(0)
            yield one
            waiting.extend(one.inner.values())

    def find(self, name: str, where: JavaClass | JavaFile) -> JavaClass | None:
        """Return the project's class that the name means inside of ``where``. Returns None if the project has no such class."""
        if not name:
            return None
        head, _, rest = name.partition(".")
        found = self._find_simple(head, where)
        if found is None:
            return self._by_full_name.get(name)
        for part in rest.split(".") if rest else ():
            found = self._inner(found, part)
            if found is None:
                return None
        return found

    def full_name(self, name: str, where: JavaClass | JavaFile) -> str:
        """Return the class's name, with its package if the class is in the project or is imported by name."""
        if found := self.find(name, where):
            return found.qualified
        file = where.file if isinstance(where, JavaClass) else where
        head, dot, rest = name.partition(".")
        return file.imports[head] + dot + rest if head in file.imports else name

    def ancestors(self, java_class: JavaClass) -> Iterator[JavaClass]:
        """Yield the class, then the classes of the project that it extends, nearest first."""
        seen: set[JavaClass] = set()
        one: JavaClass | None = java_class
        while one is not None and one not in seen:
            seen.add(one)
            yield one
            one = self.find(one.superclass, one)

    def library_types(self, java_class: JavaClass) -> list[str]:
        """Return simple names of types from outside of the project: first those that a class extends, then its interfaces."""
        classes: list[str] = []
        interfaces: list[str] = []
        for one in self.ancestors(java_class):
            if one.superclass and self.find(one.superclass, one) is None:
                classes.append(one.superclass.rpartition(".")[2])
            interfaces.extend(self._library_interfaces(one.interfaces, one, set()))
        return [*classes, *interfaces]

    def _library_interfaces(
        self, names: tuple[str, ...], where: JavaClass, seen: set[JavaClass]
    ) -> Iterator[str]:
        for name in names:
            own = self.find(name, where)
            if own is None:
                yield name.rpartition(".")[2]
            elif own not in seen:
                seen.add(own)
                yield from self._library_interfaces(own.interfaces, own, seen)

    def _find_simple(self, name: str, where: JavaClass | JavaFile) -> JavaClass | None:
        file = where
        if isinstance(where, JavaClass):
            around: JavaClass | None = where
            while around is not None:
                if around.name == name:
                    return around
                if found := self._inner(around, name):
                    return found
                around = around.outer
            file = where.file
        assert isinstance(file, JavaFile)
        if found := next((one for one in file.classes if one.name == name), None):
            return found
        if name in file.imports:
            return self._by_full_name.get(file.imports[name])
        for package in (file.package, *file.packages):
            if found := self._by_full_name.get(f"{package}.{name}" if package else name):
                return found
        return None

    def _inner(self, java_class: JavaClass, name: str) -> JavaClass | None:
        """Return the inner class with this name, of ``java_class`` or of a class that it extends."""
        seen: set[JavaClass] = set()
        one: JavaClass | None = java_class
        while one is not None and one not in seen:
            if name in one.inner:
                return one.inner[name]
            seen.add(one)
            # Don't use `find` for the base class. If the base class has the name of an inner class of `one`, `find` would not
            # end.
            head = one.superclass.partition(".")[0]
            one = (
                next((c for c in one.file.classes if c.name == head), None)
                or self._by_full_name.get(one.file.imports.get(head, f"{one.file.package}.{head}"))
                if head
                else None
            )
        return None
