"""Finds the topologies in a Clojure file.

streamparse 1 and 2 load the file, and its last definition is the topology: a function of the options, or a value. Its value is a
vector with a map of spouts and a map of bolts. The topology is called like the definition, not like the file.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stormspark.compat.streamparse.clojure.evaluation import Evaluation, Function
from stormspark.compat.streamparse.clojure.forms import ListForm, Symbol, read_forms
from stormspark.compat.streamparse.clojure.namespaces import read_namespace
from stormspark.compat.streamparse.clojure.specs import DSL, ClojureSpec, TopologyValue
from stormspark.compat.streamparse.clojure.values import ClojureError, Keyword, Unknown, printed

__all__ = ["ClojureFile", "ClojureTopology", "read_clojure"]

_DEFINES = ("def", "defn", "defn-", "defonce")


@dataclass(eq=False)
class ClojureTopology:
    """A topology in a Clojure file. ``line`` is the line of its definition."""

    name: str
    line: int
    specs: dict[str, ClojureSpec] = field(default_factory=dict)
    #: What keeps the topology from running, apart from its components' problems, each with its line.
    problems: list[tuple[int, str]] = field(default_factory=list)
    #: What has no effect, each with its line.
    remarks: list[tuple[int, str]] = field(default_factory=list)

    @property
    def all_problems(self) -> list[tuple[int, str]]:
        """The problems of the topology and of its components, in the order of their lines."""
        of_specs = [
            (line, f"{spec.kind} {id!r}: {problem}")
            for id, spec in self.specs.items()
            for line, problem in spec.problems
        ]
        return sorted([*self.problems, *of_specs])


@dataclass(eq=False)
class ClojureFile:
    """The topologies in a file, in the order of their definitions. streamparse runs the last one."""

    path: Path
    topologies: list[ClojureTopology]
    #: The last definition, which is no topology if something is wrong: its name, its line, and the reason.
    last: tuple[str, int, str] | None = None


def read_clojure(path: Path, options: dict[str, Any] | None = None) -> ClojureFile:
    """Read the topologies of a Clojure file. ``options`` is the argument of the functions that make them.

    Raises `ClojureError` if the file can't be read, and `UnsupportedEnvironmentError` if the reader is not installed.
    """
    try:
        text = path.read_text(
            "utf-8-sig", errors="replace"
        )  # as Clojure does, for comments in other encodings
    except OSError as error:
        raise ClojureError(1, f"can't be read: {error}") from error
    evaluation = Evaluation(DSL)
    given = options if options is not None else {}
    file = ClojureFile(path, [])
    defined: list[tuple[str, ListForm]] = []
    for form in read_forms(text):
        evaluation.limited(form, lambda form=form: read_namespace(evaluation, form, path))  # type: ignore[misc]
        evaluation.limited(form, lambda form=form: evaluation.value(form))  # type: ignore[misc]
        if isinstance(form, ListForm) and len(form.items) > 1 and isinstance(form.items[0], Symbol):
            name = form.items[1]
            if form.items[0].name in _DEFINES and isinstance(name, Symbol):
                defined.append((name.name, form))
    for name, form in defined:
        value = _value(evaluation, name, form, given)
        maps = value.maps if isinstance(value, TopologyValue) else value
        if isinstance(maps, tuple) and any(
            isinstance(one, dict) and any(isinstance(spec, ClojureSpec) for spec in one.values())
            for one in maps
        ):
            file.topologies = [one for one in file.topologies if one.name != name]
            file.topologies.append(_topology(name, form.line, maps))
            file.last = None
        else:
            why = value.why if isinstance(value, Unknown) else f"its value is {printed(value)[:80]}"
            line = value.line if isinstance(value, Unknown) else form.line
            file.last = name, line, why
    return file


def _value(evaluation: Evaluation, name: str, form: ListForm, options: dict[str, Any]) -> Any:
    value = evaluation.names.get(name)
    if not isinstance(value, Function):
        return value
    args = (options,) if value.takes(1) else ()
    if not value.takes(len(args)):
        return Unknown(form.line, name, f"the function {name} can't be called with the options alone")
    return evaluation.limited(form, lambda: value(*args))


def _topology(name: str, line: int, maps: tuple[Any, ...]) -> ClojureTopology:
    made = ClojureTopology(name, line)
    if len(maps) not in (2, 3):
        made.problems.append(
            (
                line,
                f"a topology is a map of spouts and a map of bolts, [{{...}} {{...}}]; got {len(maps)} of them",
            )
        )
    for one, kind in zip(maps, ("spout", "bolt"), strict=False):
        if isinstance(one, Unknown):
            made.problems.append((one.line, f"the {kind}s can't be made out: {one.text} ({one.why})"))
            continue
        for id, spec in _components(made, one, kind):
            if id in made.specs:
                made.problems.append((spec.line, f"there are two components {id!r}"))
            made.specs[id] = spec
    for one in maps[2:]:
        ignored = [(id, spec) for id, spec in _components(made, one, "bolt")]
        if ignored:
            ids = ", ".join(repr(id) for id, _ in ignored)
            made.remarks.append(
                (
                    ignored[0][1].line,
                    f"{ids} not part of the topology: a third map holds state spouts, which Storm ignores; put all bolts into "
                    f"the second map",
                )
            )
    return made


def _components(topology: ClojureTopology, value: Any, kind: str) -> list[tuple[str, ClojureSpec]]:
    if not isinstance(value, dict):
        if value is not None:
            topology.problems.append(
                (topology.line, f"the {kind}s must be a map of names and specs, got {printed(value)[:80]}")
            )
        return []
    found = []
    for key, spec in value.items():
        id = key.name if isinstance(key, Keyword) else str(key)
        if isinstance(key, Unknown):
            topology.problems.append(
                (key.line, f"the name of a {kind} can't be made out: {key.text} ({key.why})")
            )
        elif isinstance(spec, Unknown):
            topology.problems.append(
                (spec.line, f"{kind} {id!r} can't be made out without Clojure: {spec.text} ({spec.why})")
            )
        elif not isinstance(spec, ClojureSpec):
            topology.problems.append(
                (topology.line, f"{kind} {id!r} must be a spec, got {printed(spec)[:80]}")
            )
        else:
            if spec.kind != kind:
                spec.fail(f"a {spec.kind} stands among the {kind}s")
            found.append((id, spec))
    return found
