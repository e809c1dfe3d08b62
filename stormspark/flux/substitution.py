"""Replaces ``${...}`` in a Flux file with properties and environment variables, before the file is parsed (K18)."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from pathlib import Path

from stormspark.errors import InvalidTopologyError

__all__ = ["read_properties", "substituted"]

_log = logging.getLogger("stormspark.flux")

_VARIABLE = re.compile(r"\$\{([^{}]+)\}")
_ELEMENT = re.compile(r"(.+)\[(\d+)\]")
_FROM_ENVIRONMENT = "ENV-"


def substituted(
    text: str, file: str, properties: Mapping[str, str], environment: Mapping[str, str] | None = None
) -> str:
    """Return ``text`` with its variables replaced. A variable that has no value stays as it is. Unless its line is a comment, a
    warning is logged.

    ``${key}`` is a property. ``${key[1]}`` is the second element of a property that is a list. ``${ENV-NAME}`` is a variable of
    ``environment``, unless ``environment`` is None. Storm replaces only the last variable of each line. stormspark replaces all.

    >>> substituted("name: ${who}-${ENV-STAGE}", "topology.yaml", {"who": "words"}, {"STAGE": "test"})
    'name: words-test'
    >>> substituted("hosts: ${hosts}, first: ${hosts[0]}", "topology.yaml", {"hosts": '["a:1", "b:2"]'})
    'hosts: ["a:1", "b:2"], first: a:1'
    """
    lines = text.splitlines(keepends=True)
    for number, line in enumerate(lines, 1):

        def value(found: re.Match[str], number: int = number, line: str = line) -> str:
            replacement = _value(found[1], properties, environment)
            if replacement is not None:
                return replacement
            if not line.lstrip().startswith("#"):
                _log.warning("%s:%d: nothing to replace %s with%s", file, number, found[0], _advice(found[1]))
            return found[0]

        lines[number - 1] = _VARIABLE.sub(value, line)
    return "".join(lines)


def _value(name: str, properties: Mapping[str, str], environment: Mapping[str, str] | None) -> str | None:
    if environment is not None and name.startswith(_FROM_ENVIRONMENT):
        return environment.get(name.removeprefix(_FROM_ENVIRONMENT))
    if name in properties:
        return properties[name]
    if (element := _ELEMENT.fullmatch(name)) and element[1] in properties:
        values = properties[element[1]].strip().removeprefix("[").removesuffix("]").split(",")
        position = int(element[2])
        return values[position].strip().strip("\"'") if position < len(values) else None
    return None


def _advice(name: str) -> str:
    if name.startswith(_FROM_ENVIRONMENT):
        return f": set the environment variable {name.removeprefix(_FROM_ENVIRONMENT)}, and give --env-filter"
    element = _ELEMENT.fullmatch(name)
    return f": give --filter FILE with a line {f'{element[1]}=[...]' if element else f'{name}=...'}"


def read_properties(file: Path) -> dict[str, str]:
    """Read a file of Java properties. Raises `InvalidTopologyError` if it can't be read."""
    try:
        data = file.read_bytes()
    except OSError as error:
        msg = f"the properties file {file} can't be read: {error.strerror or error}"
        raise InvalidTopologyError(msg) from error
    try:
        return parsed_properties(data.decode())
    except UnicodeDecodeError:
        return parsed_properties(data.decode("latin-1"))  # the encoding in which Java reads such files


def parsed_properties(text: str) -> dict[str, str]:
    r"""Parse keys and values in the format of Java's ``Properties.load``. If a key is repeated, its last value counts.

    >>> parsed_properties("# hosts\nkafka.hosts = a:1,\\\n    b:2\nname: words\nempty\npath C:\\\\tmp\\u0021")
    {'kafka.hosts': 'a:1,b:2', 'name': 'words', 'empty': '', 'path': 'C:\\tmp!'}
    """
    properties: dict[str, str] = {}
    for line in _logical_lines(text):
        key, value = _KEY_AND_VALUE.match(line).groups()  # type: ignore[union-attr] # the pattern matches any line
        properties[_unescaped(key)] = _unescaped(value)
    return properties


_KEY_AND_VALUE = re.compile(r"((?:[^\\\s:=]|\\.)*)\s*[:=]?\s*(.*)", re.DOTALL)
_ESCAPED = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_MEANINGS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def _logical_lines(text: str) -> list[str]:
    """Return the lines that are neither empty nor comments. A line that ends with a backslash is joined with the next one."""
    logical: list[str] = []
    goes_on = False
    for line in re.split(r"\r\n|\r|\n", text):
        stripped = line.lstrip(" \t\f")
        if not goes_on and (not stripped or stripped[0] in "#!"):
            continue
        begun = logical.pop() if goes_on else ""
        goes_on = (len(stripped) - len(stripped.rstrip("\\"))) % 2 == 1
        logical.append(begun + (stripped[:-1] if goes_on else stripped))
    return logical


def _unescaped(text: str) -> str:
    def meaning(found: re.Match[str]) -> str:
        what = found[1]
        return chr(int(what[1:], 16)) if len(what) > 1 else _MEANINGS.get(what, what)

    # Java writes a character beyond the first 65,536 as two characters. The following expression joins them.
    return _ESCAPED.sub(meaning, text).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
