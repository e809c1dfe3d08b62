"""Drafts a topology in Clojure as a class of streamparse's Python DSL."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from typing import Any

from stormspark.compat.streamparse.clojure.specs import ClojureGrouping, ClojureSpec, ClojureStream
from stormspark.compat.streamparse.clojure.topologies import ClojureTopology
from stormspark.compat.streamparse.project import OPTIONS_OF_SPARSE
from stormspark.porting.java.python_text import class_name, in_docstring, one_line, python_name, quoted, shown

__all__ = ["draft", "draft_name"]

_WIDTH = 108
#: Stands between two inputs until it is known whether they fit on one line.
_BETWEEN = ",\n"


def _wrapped(argument: str) -> Iterator[str]:
    """Yield the lines of an argument of a call that is too long for one line."""
    line = f"    {argument.replace(_BETWEEN, ', ')},"
    if len(line) <= _WIDTH - 4:
        yield line
        return
    name, dict_, inputs = argument.partition("={")
    if not dict_ or _BETWEEN not in argument:
        yield line
        return
    yield f"    {name}={{"
    yield from (f"        {one}," for one in inputs.removesuffix("}").split(_BETWEEN))
    yield "    },"


def draft_name(topology: ClojureTopology, taken: set[str]) -> str:
    """Return the name of the draft's file. It is no name of a module that the draft imports."""
    name = python_name(topology.name)
    modules = {spec.class_name.partition(".")[0] for spec in topology.specs.values()}
    modules |= {one.partition(".")[0] for spec in topology.specs.values() for one in spec.command[1:2]}
    if name in modules or name in sys.stdlib_module_names or name in ("streamparse", "stormspark"):
        name = f"{name}_topology"
    free, number = name, 2
    while f"{free}.py" in taken:
        free, number = f"{name}_{number}", number + 1
    return f"{free}.py"


def draft(topology: ClojureTopology, file: str, classes: dict[str, str]) -> str:
    """Return the source of the draft. ``classes`` has the Python class of each component that has one, as ``module.Class``."""
    return _Draft(topology, file, classes).text()


class _Draft:
    """Collects the imports that the parts of a draft need, while it writes them."""

    def __init__(self, topology: ClojureTopology, file: str, classes: dict[str, str]) -> None:
        self._topology, self._file, self._classes = topology, file, classes
        self._of_streamparse = {"Topology"}
        self._of_thrift: set[str] = set()
        self._imported: dict[str, str] = {}
        self._outputs: dict[str, str] = {}
        self._attributes: dict[str, str] = {}
        self._assignments: list[str] = []
        self._classes_before: list[str] = []

    def text(self) -> str:
        """Return the whole source."""
        body = list(self._body())
        name = class_name(self._topology.name, "Topology")
        lines = [
            f'"""{in_docstring(self._topology.name)}, drafted from {in_docstring(self._file)}:{self._topology.line}.',
            "",
            "Put this file into the folder topologies. The output fields stand before the topology here: move each line into the",
            "class that it is about, as `outputs = [...]`.",
            '"""',
            "",
            *self._imports(),
            *([""] if self._assignments else []),
            *self._assignments,
            *self._classes_before,
            "",
            "",
            f"class {name if name not in self._imported.values() else name + 'Topology'}(Topology):",
            *(f"    {line}" if line else "" for line in body),
        ]
        return "\n".join(lines) + "\n"

    def _imports(self) -> Iterator[str]:
        yield f"from streamparse import {', '.join(sorted(self._of_streamparse))}"
        if self._of_thrift:
            yield f"from streamparse.thrift import {', '.join(sorted(self._of_thrift))}"
        if self._imported:
            yield ""
        for dotted, name in sorted(self._imported.items()):
            module, _, own = dotted.rpartition(".")
            yield f"from {module} import {own}" + (f" as {name}" if name != own else "")

    def _body(self) -> Iterator[str]:
        yield "# What `sparse run` of streamparse 1 and 2 sets. Delete what config.json sets, because this overrides it."
        yield f"config = {shown(OPTIONS_OF_SPARSE)}"
        yield ""
        for line, problem in self._topology.problems:
            yield f"# TODO {self._file}:{line}: {one_line(problem)}"
        for id, spec in self._topology.specs.items():
            yield from self._spec(id, spec)

    def _spec(self, id: str, spec: ClojureSpec) -> Iterator[str]:
        attribute = self._attribute(id)
        for line, problem in spec.problems:
            yield f"# TODO {self._file}:{line}: {one_line(problem)}"
        arguments = [f"name={quoted(id)}"] if id != attribute else []
        owner = self._owner(id, spec, arguments)
        if spec.kind == "bolt":
            arguments.append(f"inputs={self._inputs(spec)}")
        if spec.parallelism not in (None, 1):
            arguments.append(f"par={spec.parallelism}")
        if spec.conf:
            arguments.append(f"config={shown(spec.conf)}")
        call = f"{attribute} = {owner}.spec({', '.join(arguments)})".replace(_BETWEEN, ", ")
        if len(call) <= _WIDTH - 4:
            yield call
        else:
            yield f"{attribute} = {owner}.spec("
            for one in arguments:
                yield from _wrapped(one)
            yield ")"
        self._attributes[id] = attribute

    def _attribute(self, id: str) -> str:
        name = python_name(id)
        taken = {*self._attributes.values(), "config", "specs", "Topology"}
        free, number = name, 2
        while free in taken:
            free, number = f"{name}_{number}", number + 1
        return free

    def _owner(self, id: str, spec: ClojureSpec, arguments: list[str]) -> str:
        """Return the class whose ``spec`` the component calls, and add the arguments that say what runs."""
        kind = spec.kind.capitalize()
        if (dotted := self._classes.get(id)) is not None:
            return self._with_outputs(self._import(dotted), id, spec)
        if spec.command:
            self._of_streamparse.add(f"Shell{kind}")
            command, *script = spec.command
            arguments += [f"command={quoted(command)}", f"script={quoted(shlex.join(script))}"]
            arguments.append(f"outputs={self._streams(spec)}")
            return f"Shell{kind}"
        if spec.java is not None and all(isinstance(one, str | int | float) for one in spec.java.arguments):
            self._of_streamparse.add(f"Java{kind}")
            arguments.append(f"full_class_name={quoted(spec.java.class_name)}")
            arguments.append(f"args_list={shown(list(spec.java.arguments))}")
            arguments.append(f"outputs={self._streams(spec, self._guessed(id))}")
            return f"Java{kind}"
        return self._missing(id, spec)

    def _import(self, dotted: str) -> str:
        if dotted not in self._imported:
            own = dotted.rpartition(".")[2]
            free, number = own, 2
            while free in self._imported.values() or free in ("Topology", "Grouping", "Stream"):
                free, number = f"{own}{number}", number + 1
            self._imported[dotted] = free
        return self._imported[dotted]

    def _with_outputs(self, name: str, id: str, spec: ClojureSpec) -> str:
        """Give a class its outputs. If it has others in another component, return the name of a subclass."""
        outputs = self._streams(spec)
        if self._outputs.setdefault(name, outputs) != outputs:
            inner = f"{name}Of{class_name(id, 'Component')}"
            self._classes_before += ["", "", f"class {inner}({name}):", f"    outputs = {outputs}"]
            return inner
        line = f"{name}.outputs = {outputs}"
        if line not in self._assignments:
            self._assignments.append(line)
        return name

    def _missing(self, id: str, spec: ClojureSpec) -> str:
        """Write a class that says, when it runs, that it is to be written."""
        kind = spec.kind.capitalize()
        self._of_streamparse.add(kind)
        name = class_name(id, kind)
        method = "next_tuple(self)" if spec.kind == "spout" else "process(self, tup)"
        what = spec.class_name or (spec.java.class_name if spec.java else "")
        todo = f"write {id}{f', for {what}' if what else ''}: {self._file}:{spec.line}"
        self._classes_before += [
            "",
            "",
            f"class {name}({kind}):",
            f"    outputs = {self._streams(spec, self._guessed(id))}",
            "",
            f"    def {method}:",
            f"        raise NotImplementedError({quoted(in_docstring(todo))})",
        ]
        return name

    def _guessed(self, id: str) -> dict[str, ClojureStream]:
        """Return the streams and fields that the bolts take of a component, whose own declaration is not known."""
        guessed: dict[str, list[str]] = {}
        for spec in self._topology.specs.values():
            for (source, stream), grouping in (spec.inputs or {}).items():
                if source == id:
                    fields = guessed.setdefault(stream, [])
                    fields += [field for field in grouping.fields if field not in fields]
        return {name: ClojureStream(tuple(fields) or ("value",)) for name, fields in guessed.items()}

    def _streams(self, spec: ClojureSpec, guessed: dict[str, ClojureStream] | None = None) -> str:
        streams = spec.streams if spec.streams is not None else guessed or {}
        if guessed is not None and not streams and spec.kind == "spout":
            streams = {"default": ClojureStream(("value",))}
        plain = streams.get("default")
        if set(streams) <= {"default"} and not (plain and plain.direct):
            return shown(list(plain.fields or ())) if plain else "[]"
        self._of_streamparse.add("Stream")
        made = [
            f"Stream({shown(list(stream.fields or ()))}, name={quoted(name)}{', direct=True' if stream.direct else ''})"
            for name, stream in streams.items()
        ]
        return f"[{', '.join(made)}]"

    def _inputs(self, spec: ClojureSpec) -> str:
        pairs = (
            f"{self._source(source, stream)}: {self._grouping(grouping)}"
            for (source, stream), grouping in (spec.inputs or {}).items()
        )
        return "{" + _BETWEEN.join(pairs) + "}"

    def _source(self, source: str, stream: str) -> str:
        attribute = self._attributes.get(source)
        if attribute is None:  # a component below, or the bolt itself
            self._of_thrift.add("GlobalStreamId")
            return f"GlobalStreamId({quoted(source)}, {quoted(stream)})"
        return attribute if stream == "default" else f"{attribute}[{quoted(stream)}]"

    def _grouping(self, grouping: ClojureGrouping) -> str:
        self._of_streamparse.add("Grouping")
        if grouping.java is not None:
            arguments: list[Any] = list(grouping.java.arguments)
            return f"Grouping.custom_object({quoted(grouping.java.class_name)}, {shown(arguments)})"
        if grouping.kind == "fields":
            return f"Grouping.fields({', '.join(map(quoted, grouping.fields))})"
        return f"Grouping.{grouping.kind.upper()}"
