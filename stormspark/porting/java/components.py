"""Reads the class of a spout or bolt: its methods, emits, acks, fails, ticks, threads, and other facts that matter for a port."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from stormspark.porting.findings import Place
from stormspark.porting.java.source import (
    JavaClass,
    JavaMethod,
    JavaSources,
    arguments_of,
    descendants,
    text_of,
    type_name,
)
from stormspark.porting.java.stock import Base, base_of

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["ClassFacts", "EmitFound", "class_facts"]

_COLLECTORS: Final = {
    "OutputCollector",
    "SpoutOutputCollector",
    "BasicOutputCollector",
    "BatchOutputCollector",
    "IOutputCollector",
    "ISpoutOutputCollector",
    "IBasicOutputCollector",
}
_VERDICTS: Final = {"ack", "fail", "reportError", "resetTimeout"}
_THREADS: Final = {
    "Thread",
    "Timer",
    "ExecutorService",
    "ScheduledExecutorService",
    "Executors",
    "CompletableFuture",
    "ThreadPoolExecutor",
    "ForkJoinPool",
}


@dataclass(frozen=True)
class EmitFound:
    """A call of ``emit`` or ``emitDirect``. ``stream`` is the id of the stream, or its expression in the source."""

    place: Place
    stream: str
    direct: bool
    #: In a bolt, whether the emit is anchored. In basic, batch and (stateful) windowed bolts, all emits are anchored.
    anchored: bool
    #: In a spout, whether the emit has a message id.
    with_id: bool

    def described(self, style: str) -> str:
        """Describe the emit in words, for a class of this style.

        >>> EmitFound(Place("A.java", 1), "errors", False, False, False).described("bolt")
        'emits on errors without an anchor'
        """
        words = [
            "emits",
            "to one task" if self.direct else "",
            "" if self.stream == "default" else f"on {self.stream}",
        ]
        if style == "spout":
            words.append("with a message id" if self.with_id else "without a message id")
        elif style in ("bolt", "tick", "stateful"):
            words.append("anchored" if self.anchored else "without an anchor")
        return " ".join(word for word in words if word)


@dataclass
class ClassFacts:
    """The facts about a component's class, from its source and from the source of the project's classes that it extends."""

    java_class: JavaClass
    base: Base | None
    library_types: list[str]
    methods: dict[str, JavaMethod] = field(default_factory=dict)
    emits: list[EmitFound] = field(default_factory=list)
    #: For each of ``ack``, ``fail``, ``reportError`` and ``resetTimeout``: the places where it is called on a collector.
    verdicts: dict[str, list[Place]] = field(default_factory=dict)
    ticks: list[Place] = field(default_factory=list)
    threads: list[Place] = field(default_factory=list)
    metrics: list[Place] = field(default_factory=list)
    #: Calls of the context's methods that stormspark lacks, or that behave differently in stormspark.
    context_calls: list[tuple[str, Place]] = field(default_factory=list)

    @property
    def committer(self) -> bool:
        """Whether the component is a committer (G6)."""
        return "ICommitter" in self.library_types


def class_facts(sources: JavaSources, java_class: JavaClass) -> ClassFacts:
    """Read a class and the classes of the project that it extends."""
    types = sources.library_types(java_class)
    facts = ClassFacts(java_class, base_of(types), types)
    chain = list(sources.ancestors(java_class))
    typed: dict[str, str] = {}
    for one in reversed(chain):
        typed.update({name: declared.type for name, declared in one.fields.items()})
    for one in chain:
        for name, methods in one.methods.items():
            for method in methods:
                if method.body is not None:
                    facts.methods.setdefault(name, method)
        for method in [m for methods in one.methods.values() for m in methods] + one.constructors:
            if method.body is not None:
                _read_method(facts, method, typed)
    return facts


def _read_method(facts: ClassFacts, method: JavaMethod, fields: dict[str, str]) -> None:
    body = method.body
    assert body is not None
    typed = fields | {one.name: one.type for one in method.parameters} | dict(_locals(body))
    spout = facts.base is not None and facts.base.style in ("spout", "shell-spout")
    place = method.owner.file.place
    for call in descendants(body, "method_invocation"):
        name = text_of(call.child_by_field_name("name"))
        on = call.child_by_field_name("object")
        if name in ("emit", "emitDirect") and _is_collector(on, typed):
            facts.emits.append(_emit(call, name, typed, place(call), spout, facts))
        elif name in _VERDICTS and _is_collector(on, typed):
            facts.verdicts.setdefault(name, []).append(place(call))
        elif name == "isTick":
            facts.ticks.append(place(call))
        elif name.startswith("register") and _type_of(on, typed) == "TopologyContext":
            facts.metrics.append(place(call))
        elif name in ("getPIDDir", "getCodeDir", "getThisWorkerPort", "getSharedExecutor"):
            facts.context_calls.append((name, place(call)))
    for access in descendants(body, "field_access", "identifier"):
        if text_of(access).endswith(("SYSTEM_TICK_STREAM_ID", "SYSTEM_COMPONENT_ID")) and not _is_part(
            access
        ):
            facts.ticks.append(place(access))
    for kind in descendants(body, "type_identifier"):
        if text_of(kind) in _THREADS:
            facts.threads.append(place(kind))
    for on in descendants(body, "identifier"):
        if text_of(on) in ("Executors", "CompletableFuture"):
            facts.threads.append(place(on))


def _is_part(node: Node) -> bool:
    """Return whether an identifier is part of a field access. If so, it is skipped, because the whole field access is read."""
    return node.type == "identifier" and node.parent is not None and node.parent.type == "field_access"


def _locals(body: Node) -> Iterator[tuple[str, str]]:
    for one in descendants(body, "local_variable_declaration"):
        kind = type_name(one.child_by_field_name("type"))
        for declarator in one.children_by_field_name("declarator"):
            yield text_of(declarator.child_by_field_name("name")), kind
    for one in descendants(body, "enhanced_for_statement"):
        yield text_of(one.child_by_field_name("name")), type_name(one.child_by_field_name("type"))


def _is_collector(on: Node | None, typed: dict[str, str]) -> bool:
    kind = _type_of(on, typed)
    if kind:
        return kind in _COLLECTORS
    return on is not None and text_of(on).lower().endswith("collector")


def _type_of(node: Node | None, typed: dict[str, str]) -> str:
    """Return the type of a simple expression, without its package; empty if the type is not known."""
    if node is None:
        return ""
    if node.type == "parenthesized_expression":
        return _type_of(node.named_children[0] if node.named_children else None, typed)
    if node.type in ("identifier", "field_access"):
        name = text_of(node).removeprefix("this.")
        return typed.get(name, "").rpartition(".")[2]
    if node.type == "string_literal":
        return "String"
    if node.type == "object_creation_expression":
        return type_name(node.child_by_field_name("type")).rpartition(".")[2]
    if node.type == "cast_expression":
        return type_name(node.child_by_field_name("type")).rpartition(".")[2]
    if node.type == "binary_expression" and any(one.type == "string_literal" for one in node.named_children):
        return "String"
    if node.type == "method_invocation":
        name = text_of(node.child_by_field_name("name"))
        return (
            "String"
            if name in ("getString", "getStringByField", "toString", "format", "getSourceStreamId")
            else ""
        )
    return ""


def _emit(
    call: Node, name: str, typed: dict[str, str], place: Place, spout: bool, facts: ClassFacts
) -> EmitFound:
    arguments = arguments_of(call)
    direct = name == "emitDirect"
    rest = arguments[1:] if direct else arguments
    stream = "default"
    # If the first of several arguments is a string, it must be the id of a stream, because anchors and values are no strings.
    if len(rest) >= 2 and _is_string(rest[0], typed):
        stream, rest = _stream_text(rest[0]), rest[1:]
    style = facts.base.style if facts.base else ""
    more = len(rest) >= 2
    return EmitFound(
        place,
        stream,
        direct,
        anchored=style in ("basic", "batch", "windowed", "stateful-windowed") or (more and not spout),
        with_id=spout and more,
    )


def _is_string(node: Node, typed: dict[str, str]) -> bool:
    kind = _type_of(node, typed)
    if kind:
        return kind == "String"
    # The type is not known, so the name decides. Constants and variables for ids of streams usually have such names.
    name = text_of(node).rpartition(".")[2]
    return name.isupper() or "stream" in name.lower()


def _stream_text(node: Node) -> str:
    return text_of(node)[1:-1] if node.type == "string_literal" else text_of(node)
