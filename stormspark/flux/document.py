"""Reads YAML. Each part of a document knows its line, so that errors can name the line.

Only plain YAML is accepted: values of YAML's own types, no tags that name classes, and no repeated keys. Anchors, aliases and
merge keys are allowed.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any, NoReturn, TypeVar

import yaml

from stormspark.errors import InvalidTopologyError

__all__ = ["Located", "nearest", "parsed"]

_YAML = "tag:yaml.org,2002:"
_PLAIN_TAGS = frozenset(
    f"{_YAML}{name}"
    for name in ("str", "int", "float", "bool", "null", "seq", "map", "timestamp", "binary", "merge", "value")
)
_KINDS: dict[type[yaml.Node], str] = {yaml.MappingNode: "a mapping", yaml.SequenceNode: "a list"}


def parsed(text: str, file: str) -> Located:
    """Parse a document and return its root. Raises `InvalidTopologyError` with the line if it is not plain YAML."""
    try:
        loader = yaml.SafeLoader(text)
        try:
            node = loader.get_single_node()
            if node is not None:
                _check(loader, node, file, set(), ())
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{file}:{mark.line + 1}" if mark else file
        context = f" ({error.context})" if error.context else ""
        msg = f"{where}: this is not YAML: {error.problem}{context}"
        raise InvalidTopologyError(msg) from error
    except yaml.YAMLError as error:  # a character that YAML does not allow
        msg = f"{file}: this is not YAML: {str(error).splitlines()[0]}"
        raise InvalidTopologyError(msg) from error
    except RecursionError as error:
        msg = f"{file}: this YAML is nested too deeply to be a topology"
        raise InvalidTopologyError(msg) from error
    if node is None:
        msg = f"{file}: the file is empty; a topology needs a name, spouts, bolts and streams"  # K13
        raise InvalidTopologyError(msg)
    return Located(file, node)


def _check(
    loader: yaml.SafeLoader, node: yaml.Node, file: str, done: set[int], within: tuple[yaml.Node, ...]
) -> None:
    """Reject repeated keys and everything that is not plain data, and resolve merge keys (``<<``)."""
    if node in within:
        msg = f"{_line(file, node)}: an alias is inside the value that it stands for"
        raise InvalidTopologyError(msg)
    if id(node) in done:
        return
    done.add(id(node))
    if node.tag not in _PLAIN_TAGS:
        tag = node.tag.replace(_YAML, "!!")
        msg = f"{_line(file, node)}: the tag {tag} is not allowed: a topology is plain YAML, and className names a class"
        raise InvalidTopologyError(msg)
    within = (*within, node)
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            _check(loader, item, file, done, within)
    elif isinstance(node, yaml.MappingNode):
        first: dict[str, yaml.Node] = {}
        for key, value in node.value:
            _check(loader, key, file, done, within)
            if isinstance(key, yaml.ScalarNode):
                before = first.setdefault(key.value, key)
                if before is not key:
                    msg = f"{_line(file, key)}: line {before.start_mark.line + 1} has the key {key.value!r} already"
                    raise InvalidTopologyError(msg)
            _check(loader, value, file, done, within)
        loader.flatten_mapping(node)


def _line(file: str, node: yaml.Node) -> str:
    return f"{file}:{node.start_mark.line + 1}"


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the end of an error message. It suggests known names that are like ``name``, or lists all known names.

    >>> nearest("spout", ["bolts", "spouts"]), nearest("x", ["bolts", "spouts"]), nearest("x", [])
    ("did you mean 'spouts'?", "there are 'bolts', 'spouts'", 'there are none')
    """
    names = list(known)
    if like := difflib.get_close_matches(name, names, 2):
        return f"did you mean {' or '.join(map(repr, like))}?"
    return f"there are {', '.join(map(repr, names)) or 'none'}"


_T = TypeVar("_T", int, float, bool)


class Located:
    r"""A part of a document. Each method returns the part in one form, or raises `InvalidTopologyError` with the part's line.

    >>> topology = parsed("name: words\nspouts:\n- id: 7\n", "topology.yaml")
    >>> [spout] = topology.mapping("the topology", ["name", "spouts"])["spouts"].items("spouts")
    >>> spout.where, spout.mapping("a spout", ["id"])["id"].text("id")
    ('topology.yaml:3', '7')
    """

    def __init__(self, file: str, node: yaml.Node) -> None:
        self._file, self._node = file, node

    @property
    def where(self) -> str:
        """The place of the part, as FILE:LINE."""
        return _line(self._file, self._node)

    @property
    def is_null(self) -> bool:
        """Whether the part has no value."""
        return self._node.tag == f"{_YAML}null"

    def refuse(self, problem: str) -> NoReturn:
        """Raise an error that begins with the line of the part."""
        msg = f"{self.where}: {problem}"
        raise InvalidTopologyError(msg)

    def text(self, what: str) -> str:
        """Return a scalar as it is written in the file. As in Storm, 7 becomes the string "7"."""
        if not isinstance(self._node, yaml.ScalarNode) or self.is_null or not self._node.value:
            self.refuse(f"{what} must be a string, got {self._described()}")
        return str(self._node.value)

    def whole(self, what: str) -> int:
        """Return an integer. As in Storm, it may be written in quotes."""
        return self._as(int, what, "a whole number")

    def number(self, what: str) -> float:
        """Return a number, whole or not."""
        value = self._scalar()
        return value if type(value) is int else self._as(float, what, "a number")

    def flag(self, what: str) -> bool:
        """Return ``true`` or ``false``."""
        return self._as(bool, what, "true or false")

    def value(self) -> Any:
        """Return the part as the plain data that YAML makes of it."""
        loader = yaml.SafeLoader("")
        try:
            return loader.construct_object(self._node, deep=True)
        except yaml.MarkedYAMLError as error:
            line = error.problem_mark.line + 1 if error.problem_mark else self._node.start_mark.line + 1
            msg = f"{self._file}:{line}: {error.problem}"
            raise InvalidTopologyError(msg) from error
        except ValueError as error:  # such as a date that does not exist
            self.refuse(f"{self._described()} is no value: {error}")
        finally:
            loader.dispose()

    def items(self, what: str) -> list[Located]:
        """Return the parts of a list. A part without a value counts as an empty list."""
        if self.is_null:
            return []
        if not isinstance(self._node, yaml.SequenceNode):
            self.refuse(f"{what} must be a list, got {self._described()}")
        return [Located(self._file, item) for item in self._node.value]

    def mapping(self, what: str, known: Iterable[str]) -> dict[str, Located]:
        """Return the entries of a mapping that have a value. Raises an error for a key that is not in ``known``."""
        names = tuple(known)
        entries = self.entries(what)
        for key, (_, place) in entries.items():
            if key not in names:
                msg = f"{place}: {what} has no key {key!r}: {nearest(key, names)}"
                raise InvalidTopologyError(msg)
        return {key: part for key, (part, _) in entries.items() if not part.is_null}

    def entries(self, what: str) -> dict[str, tuple[Located, str]]:
        """Return all entries of a mapping: each value, and the line of its key. A part without a value has no entries."""
        if self.is_null:
            return {}
        if not isinstance(self._node, yaml.MappingNode):
            self.refuse(f"{what} must be a mapping, got {self._described()}")
        entries = {}
        for key, value in self._node.value:
            if not isinstance(key, yaml.ScalarNode):
                msg = f"{_line(self._file, key)}: a key of {what} must be a string"
                raise InvalidTopologyError(msg)
            entries[str(key.value)] = Located(self._file, value), _line(self._file, key)
        return entries

    def sole_entry(self) -> tuple[str, Located] | None:
        """Return the key and value of a mapping that has one entry, such as a reference. Returns None for anything else."""
        if not isinstance(self._node, yaml.MappingNode) or len(self._node.value) != 1:
            return None
        (key, value) = self._node.value[0]
        return (str(key.value), Located(self._file, value)) if isinstance(key, yaml.ScalarNode) else None

    def _as(self, kind: type[_T], what: str, wanted: str) -> _T:
        value = self._scalar()
        if type(value) is not kind:
            self.refuse(f"{what} must be {wanted}, got {self._described()}")
        return value

    def _scalar(self) -> Any:
        """Return the value that the scalar would have in YAML if it were not in quotes."""
        node = self._node
        if not isinstance(node, yaml.ScalarNode):
            return None
        tag = yaml.SafeLoader("").resolve(yaml.ScalarNode, node.value, (True, False))  # type: ignore[no-untyped-call]
        return Located(self._file, yaml.ScalarNode(tag, node.value, node.start_mark, node.end_mark)).value()

    def _described(self) -> str:
        if self.is_null:
            return "nothing"
        return _KINDS.get(type(self._node)) or repr(self._node.value)
