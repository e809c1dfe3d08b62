"""The functions of the DSL, which make specs of components: those of ``streamparse.specs``, and those of Storm below them.

A spec keeps what is wrong with it in `problems`, with lines, so that a reader of a whole project can report everything.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal

from stormspark.compat.streamparse.clojure.values import JavaValue, Keyword, Unknown, printed

__all__ = ["DSL", "ClojureGrouping", "ClojureSpec", "ClojureStream", "TopologyValue"]

#: The groupings, by their keywords in Clojure.
GROUPINGS = ("shuffle", "local-or-shuffle", "none", "all", "global", "direct")
_RUNS_A_CLASS = ("streamparse.run", "streamparse_run", "pystorm.run")
_PYTHON = re.compile(r"python[\d.]*$")
_CLASS = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)+")
_MOST_FIELDS = 1000


@dataclass(frozen=True)
class ClojureGrouping:
    """A subscription: the kind of its grouping, such as shuffle or fields, and what belongs to the kind."""

    kind: str
    fields: tuple[str, ...] = ()
    #: A grouping that is a Java object.
    java: JavaValue | None = None


@dataclass(frozen=True)
class ClojureStream:
    """A stream that a component declares. ``fields`` is None if they are not known."""

    fields: tuple[str, ...] | None
    direct: bool = False


@dataclass(eq=False)
class ClojureSpec:
    """A component as a Clojure file declares it. Exactly one of ``class_name``, ``command`` and ``java`` is known."""

    kind: Literal["spout", "bolt"]
    line: int
    #: The Python class that streamparse runs, such as ``bolts.count.WordCounter``.
    class_name: str = ""
    #: The words of a command that runs a child process.
    command: tuple[str, ...] = ()
    java: JavaValue | None = None
    streams: dict[str, ClojureStream] | None = field(default_factory=dict)
    #: By component and stream. None if the subscriptions are not known.
    inputs: dict[tuple[str, str], ClojureGrouping] | None = field(default_factory=dict)
    #: The value of ``:p``; 1 if there is none, and None if it is not known.
    parallelism: int | None = 1
    conf: dict[str, Any] | None = field(default_factory=dict)
    #: What keeps the component from running, each with its line.
    problems: list[tuple[int, str]] = field(default_factory=list)
    #: What has no effect, each with its line.
    remarks: list[tuple[int, str]] = field(default_factory=list)

    def fail(self, problem: str, line: int | None = None) -> None:
        """Note a problem."""
        self.problems.append((line or self.line, problem))


@dataclass(frozen=True, eq=False)
class TopologyValue:
    """The value of ``(topology spouts bolts)``, or of a vector with the same two maps."""

    maps: tuple[Any, ...]
    line: int


@dataclass(frozen=True, eq=False)
class _DslFunction:
    """A function of the DSL. It gets the line of its call."""

    make: Callable[..., Any]
    is_dsl = True

    def __call__(self, line: int, *args: Any) -> Any:
        return self.make(line, *args)


def _python_spout(line: int, *args: Any) -> ClojureSpec:
    spec = ClojureSpec("spout", line)
    if len(args) < 3:
        spec.fail("python-spout-spec needs options, a class and its output fields")
        return _unread(spec)
    _class(spec, args[1])
    _outputs(spec, args[2])
    _keywords(spec, args[3:])
    return spec


def _python_bolt(line: int, *args: Any) -> ClojureSpec:
    spec = ClojureSpec("bolt", line)
    if len(args) < 4:
        spec.fail("python-bolt-spec needs options, inputs, a class and its output fields")
        return _unread(spec)
    _inputs(spec, args[1])
    _class(spec, args[2])
    _outputs(spec, args[3])
    _keywords(spec, args[4:])
    return spec


def _shell_spout(line: int, *args: Any) -> ClojureSpec:
    spec = ClojureSpec("spout", line)
    rest = _command(spec, args)
    if not rest:
        spec.fail("shell-spout-spec needs a command and its output fields")
        return _unread(spec)
    _outputs(spec, rest[0])
    _keywords(spec, rest[1:])
    return spec


def _shell_bolt(line: int, *args: Any) -> ClojureSpec:
    spec = ClojureSpec("bolt", line)
    rest = _command(spec, args[1:])
    if not rest:
        spec.fail("shell-bolt-spec needs inputs, a command and its output fields")
        return _unread(spec)
    _inputs(spec, args[0])
    _outputs(spec, rest[0])
    _keywords(spec, rest[1:])
    return spec


def _plain_spout(line: int, *args: Any) -> ClojureSpec:
    spec = ClojureSpec("spout", line, streams=None)
    _java(spec, args[0] if args else None)
    _keywords(spec, args[1:])
    return spec


def _plain_bolt(line: int, *args: Any) -> ClojureSpec:
    spec = ClojureSpec("bolt", line, streams=None)
    _inputs(spec, args[0] if args else None)
    _java(spec, args[1] if len(args) > 1 else None)
    _keywords(spec, args[2:])
    return spec


def _topology(line: int, *args: Any) -> TopologyValue:
    return TopologyValue(args, line)


def _fields_of_a_stream(direct: bool) -> Callable[..., Any]:
    def stream(line: int, fields: Any = ()) -> Any:
        known = _strings(fields)
        return ClojureStream(known, direct)

    return stream


#: The functions of the DSL by name.
DSL: Mapping[str, Callable[..., Any]] = {
    name: _DslFunction(make)
    for name, make in {
        "python-spout-spec": _python_spout,
        "python-bolt-spec": _python_bolt,
        "shell-spout-spec": _shell_spout,
        "shell-bolt-spec": _shell_bolt,
        "spout-spec": _plain_spout,
        "bolt-spec": _plain_bolt,
        "topology": _topology,
        "output-fields": _fields_of_a_stream(direct=False),
        "direct-output-fields": _fields_of_a_stream(direct=True),
        "direct-stream": _fields_of_a_stream(direct=True),
    }.items()
}


# -- parts of specs ----------------------------------------------------------------------------------------------


def _unread(spec: ClojureSpec) -> ClojureSpec:
    spec.streams = None
    return spec


def _not_known(spec: ClojureSpec, what: str, value: Unknown) -> None:
    spec.fail(f"{what} can't be made out without Clojure: {value.text} ({value.why})", value.line)


def _class(spec: ClojureSpec, value: Any) -> None:
    if isinstance(value, Unknown):
        _not_known(spec, "the class", value)
    elif not isinstance(value, str) or not _CLASS.fullmatch(value):
        spec.fail(f'the class must be a string like "bolts.count.WordCounter", got {printed(value)}')
    else:
        spec.class_name = value


def _command(spec: ClojureSpec, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Read a command, a vector or two strings. Return the arguments after it."""
    if not args:
        return ()
    words, rest = args[0], args[1:]
    if isinstance(words, str) and rest and isinstance(rest[0], str):
        words, rest = (words, rest[0]), rest[1:]
    if isinstance(words, Unknown):
        _not_known(spec, "the command", words)
        return rest
    if not isinstance(words, tuple) or not words:
        spec.fail(f'a command must be a vector like ["node" "split.js"], got {printed(words)}')
        return rest
    for one in words:
        if isinstance(one, Unknown):
            _not_known(spec, "the command", one)
            return rest
    command = tuple(map(str, words))
    if len(command) == 4 and command[1] == "-m" and command[2] in _RUNS_A_CLASS:
        spec.class_name = command[3]
    elif len(command) == 2 and command[0].endswith("streamparse_run"):
        spec.class_name = command[1]
    else:
        spec.command = command
    return rest


def is_python(command: tuple[str, ...]) -> bool:
    """Return whether a command runs one file by Python, and nothing else.

    >>> is_python(("/usr/bin/python2.7", "words.py")), is_python(("node", "split.js"))
    (True, False)
    """
    return len(command) == 2 and bool(_PYTHON.search(command[0])) and command[1].endswith(".py")


def _java(spec: ClojureSpec, value: Any) -> None:
    if isinstance(value, Unknown):
        spec.fail(f"it is an object that only Clojure can make: {value.text} ({value.why})", value.line)
    elif isinstance(value, JavaValue):
        spec.java = value
    else:
        spec.fail(f"{spec.kind}-spec needs a Java object, got {printed(value)}")


def _outputs(spec: ClojureSpec, value: Any) -> None:
    if isinstance(value, Unknown):
        _not_known(spec, "the output fields", value)
        spec.streams = None
        return
    streams = value if isinstance(value, dict) else {"default": value}
    spec.streams = {}
    for name, one in streams.items():
        stream = one if isinstance(one, ClojureStream) else ClojureStream(_strings(one))
        if isinstance(name, Unknown) or stream.fields is None:
            spec.fail(
                f'the output fields must be a vector like ["word" "count"], or a map of streams with such vectors; got '
                f"{printed(one)}"
            )
            continue
        spec.streams[_plain(name)] = stream


def _strings(value: Any) -> tuple[str, ...] | None:
    if value is None:
        return ()
    if isinstance(value, tuple) and all(isinstance(one, str | Keyword) for one in value):
        return tuple(map(_plain, value[:_MOST_FIELDS]))
    return None


def _inputs(spec: ClojureSpec, value: Any) -> None:
    if isinstance(value, Unknown):
        _not_known(spec, "the inputs", value)
        spec.inputs = None
        return
    if not isinstance(value, dict):
        spec.fail(f'the inputs must be a map like {{"words" :shuffle}}, got {printed(value)}')
        spec.inputs = None
        return
    spec.inputs = {}
    for source, grouping in value.items():
        for one in (source, *(source if isinstance(source, tuple) else ())):
            if isinstance(one, Unknown):
                _not_known(spec, "the component that it subscribes to", one)
                break
        else:
            key = _source(spec, source)
            if key is not None and (made := _grouping(spec, key, grouping)) is not None:
                spec.inputs[key] = made


def _source(spec: ClojureSpec, source: Any) -> tuple[str, str] | None:
    if isinstance(source, str | Keyword):
        return _plain(source), "default"
    if isinstance(source, tuple) and len(source) == 2 and all(isinstance(one, str) for one in source):
        return source
    spec.fail(
        f'an input is "component" or ["component" "stream"], got {printed(source)}',
    )
    return None


def _grouping(spec: ClojureSpec, source: tuple[str, str], value: Any) -> ClojureGrouping | None:
    if value is None:
        return ClojureGrouping("none")
    if isinstance(value, JavaValue):
        return ClojureGrouping("custom", java=value)
    if isinstance(value, Unknown):
        _not_known(spec, f"the grouping of {source[0]!r}", value)
        return None
    if isinstance(value, Keyword) and value.name in GROUPINGS:
        return ClojureGrouping(value.name.replace("-", "_"))
    if (fields := _strings(value)) is not None:
        return ClojureGrouping("fields", fields) if fields else ClojureGrouping("global")
    close = difflib.get_close_matches(str(value).removeprefix(":"), GROUPINGS, 1)
    meant = (
        f"did you mean :{close[0]}?" if close else f"there are {', '.join(':' + one for one in GROUPINGS)}"
    )
    spec.fail(
        f'{printed(value)} is not a valid grouping of {source[0]!r}: {meant} or a vector of fields, ["word"]'
    )
    return None


def _keywords(spec: ClojureSpec, args: tuple[Any, ...]) -> None:
    if len(args) % 2:
        spec.fail(f"options come in pairs such as :p 2 and :conf {{...}}, got {' '.join(map(printed, args))}")
        return
    for key, value in zip(args[::2], args[1::2], strict=True):
        match key:
            case Keyword("p" | "parallelism-hint"):
                _parallelism(spec, value)
            case Keyword("conf"):
                _conf(spec, value)
            case _:
                spec.remarks.append(
                    (spec.line, f"{printed(key)} has no effect, as in Storm: the options are :p and :conf")
                )


def _parallelism(spec: ClojureSpec, value: Any) -> None:
    if value is None:
        return
    if isinstance(value, Unknown):
        spec.parallelism = None
        _not_known(spec, "the parallelism", value)
    elif isinstance(value, int | float) and not isinstance(value, bool) and value >= 1:
        spec.parallelism = int(value)
    else:
        spec.parallelism = None
        spec.fail(f":p must be a number of at least 1, got {printed(value)}")


def _conf(spec: ClojureSpec, value: Any) -> None:
    if isinstance(value, Unknown):
        spec.conf = None
        _not_known(spec, "the configuration", value)
        return
    if value is not None and not isinstance(value, dict):
        spec.conf = None
        spec.fail(f":conf must be a map, got {printed(value)}")
        return
    conf: dict[str, Any] = {}
    for key, one in (value or {}).items():
        unknown = next((part for part in (key, one) if isinstance(part, Unknown | JavaValue)), None)
        if unknown is None:
            conf[_plain(key)] = as_json(one)
        elif isinstance(unknown, Unknown):
            _not_known(spec, f"the setting {_plain(key)}", unknown)
        else:
            spec.fail(f"the setting {_plain(key)} is a Java object: {unknown}", unknown.line)
    spec.conf = conf


def _plain(value: Any) -> str:
    return value.name if isinstance(value, Keyword) else str(value)


def as_json(value: Any) -> Any:
    """Return a value as its reader gets it from JSON: lists, and keywords as strings.

    >>> as_json({Keyword("a"): (1, Keyword("b"))})
    {'a': [1, 'b']}
    >>> as_json((Fraction(1, 4), Decimal("2.5")))
    [0.25, 2.5]
    """
    match value:
        case Keyword():
            return value.name
        case dict():
            return {_plain(key): as_json(one) for key, one in value.items()}
        case tuple():
            return [as_json(one) for one in value]
        case frozenset():
            return sorted(map(as_json, value), key=str)
        case None | bool() | int() | float() | str():
            return value
        case Decimal() | Fraction():
            return float(value)
    return str(value)
