"""Makes the report's statements about topologies and components in Java. Each statement has the line that it is about."""

from __future__ import annotations

from typing import Final

from stormspark.porting.findings import Place, TopologyFound
from stormspark.porting.java.components import ClassFacts
from stormspark.porting.java.evaluation import Condition
from stormspark.porting.java.values import Function, Instance, Unknown, Value, made_by, plain

__all__ = ["class_summary", "described", "report_behaviour", "report_conditions", "report_what_does_not_fit"]

_CONTEXT: Final = {
    "getPIDDir": "there is no PID folder here",  # A26
    "getCodeDir": "there is no code folder here: Spark ships the code",
}


_VERDICTS: Final = {
    "ack": "acks",
    "fail": "fails",
    "reportError": "reports errors",
    "resetTimeout": "resets timeouts",
}
_STATE: Final = {
    "initState": "has a state",
    "prePrepare": "has prePrepare()",
    "preCommit": "has preCommit()",
}


def class_summary(facts: ClassFacts, instance: Instance | None) -> tuple[str, ...]:
    """Summarise a component's class: the class that it extends, then its emits, acks, state and windows, with their lines."""
    style = facts.base.style if facts.base else ""
    actions: dict[str, list[Place]] = {}
    for emit in facts.emits:
        actions.setdefault(emit.described(style), []).append(emit.place)
    for name, words in _VERDICTS.items():
        if name in facts.verdicts:
            actions[words] = facts.verdicts[name]
    if facts.ticks:
        actions["checks for ticks"] = facts.ticks
    for name, words in _STATE.items():
        if name in facts.methods:
            actions[words] = [facts.methods[name].place]
    for call in instance.calls if instance is not None else ():
        if call.name.startswith("with"):
            actions.setdefault(f"{call.name}()", []).append(call.place)
    extends = f"extends {facts.library_types[0]}" if facts.library_types else "extends no known class"
    return (extends, *(f"{words} ({_lines(places)})" for words, places in actions.items()))


def _lines(places: list[Place]) -> str:
    """Write places in a short form, such as ``Split.java:31, 35``."""
    files: dict[str, list[str]] = {}
    for place in dict.fromkeys(places):
        files.setdefault(place.file.rpartition("/")[2], []).append(str(place.line))
    return "; ".join(f"{file}:{', '.join(lines)}" for file, lines in files.items())


def report_behaviour(topology: TopologyFound, facts: ClassFacts) -> None:
    """Report the facts about a component's class that a port needs: acks, anchors, message ids, ticks, threads and metrics."""
    style = facts.base.style if facts.base else ""
    name = facts.java_class.name
    if style in ("bolt", "stateful", "tick") and "ack" not in facts.verdicts and "fail" not in facts.verdicts:
        topology.report(
            "note",
            f"no call of ack or fail was found in {name}: without one, its tuples time out, as in Storm",
            facts.java_class.place,
            "ack its tuples, or make it a BasicBolt",
        )
    if style in ("bolt", "stateful", "tick"):
        for emit in facts.emits:
            if not emit.anchored:
                topology.report(
                    "note",
                    f"{name} emits without an anchor: if the emitted tuple fails, nothing is replayed",  # C2
                    emit.place,
                )
    if style == "spout" and facts.emits and not any(emit.with_id for emit in facts.emits):
        topology.report(
            "note",
            f"{name} emits without message ids: its tuples are not tracked and not replayed",  # B6
            facts.emits[0].place,
        )
    for emit in facts.emits:
        if emit.direct:
            topology.report(
                "note",
                f"{name} emits to a task of its choice: use emit_direct",
                emit.place,  # D11
            )
    if facts.ticks:
        topology.report(
            "note",
            f"{name} checks for ticks: use tup.is_tick or a TickTupleAwareBolt; ticks need no ack",  # C9
            facts.ticks[0],
        )
    if facts.threads:
        topology.report(
            "note",
            f"{name} uses threads of its own: they may call collectors, but emit returns no task ids there",  # A28
            facts.threads[0],
        )
    if facts.metrics:
        topology.report(
            "note",
            f"{name} registers metrics: the context here can do that too",
            facts.metrics[0],  # A29
        )
    for called, place in facts.context_calls:
        if called in _CONTEXT:
            topology.report(
                "change", f"{name} calls {called}(): {_CONTEXT[called]}", place, "remove the call"
            )


def report_conditions(
    topology: TopologyFound, what: str, conditions: tuple[Condition, ...], place: Place
) -> None:
    """Report that the code does something (``what``) only under a condition, or in a loop of unknown length."""
    for one in conditions:
        if one.loop:
            topology.report(
                "unread",
                f"{what} in a loop, {one.text}: the number of times can't be made out",
                place,
                "add the others to the skeleton",
            )
        else:
            topology.report("note", f"{what} only if {one.text}", place)


def report_what_does_not_fit(topology: TopologyFound) -> None:
    """Report ids that are used twice, and subscriptions to unknown components and streams.

    Such a finding usually means that the reading of the code has missed something.
    """
    streams = {one.id: one.streams for one in topology.components if one.id is not None}
    seen: dict[str, Place] = {}
    for component in topology.components:
        if component.id is None:
            continue
        if component.id in seen:
            topology.report(
                "unread",
                f"the id {component.id!r} is used at {seen[component.id]} too, perhaps in another branch",
                component.place,
                "the skeleton has the first one: choose",
            )
        seen.setdefault(component.id, component.place)
    for component, one in topology.inputs:
        if one.source is None or one.stream is None:
            continue
        if one.source not in streams:
            topology.report(
                "unread",
                f"{component.label} subscribes to {one.source!r}, but no code was found that adds this component",
                one.place,
            )
            continue
        declared = streams[one.source]
        if declared is not None and one.stream not in {stream.id for stream in declared}:
            topology.report(
                "unread",
                f"{component.label} subscribes to {one.stream!r} of {one.source!r}, but no code was found that declares it",
                one.place,
            )


def described(value: Value | None) -> str:
    """Return the text that the report shows for a value. It is close to the value's source text."""
    match value:
        case Unknown():
            return value.text
        case Instance():
            return made_by(value)
        case Function():
            return "a lambda"
    return str(plain(value)) if value is not None else ""
