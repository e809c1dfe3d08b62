"""What is to be said of topologies and components of Java, with its line."""

from __future__ import annotations

from typing import Final

from stormspark.porting.findings import Place, TopologyFound
from stormspark.porting.java.components import ClassFacts
from stormspark.porting.java.evaluation import Condition
from stormspark.porting.java.values import Function, Instance, Unknown, Value, made_by, plain

__all__ = ["class_told", "said", "say_conditions", "say_what_does_not_fit", "say_what_it_does"]

_CONTEXT: Final = {
    "getPIDDir": "there is no PID folder here (A26)",
    "getCodeDir": "there is no code folder here: Spark ships the code (A26)",
}


_VERDICTS: Final = {
    "ack": "acks",
    "fail": "fails",
    "reportError": "reports errors",
    "resetTimeout": "resets timeouts",
}
_STATE: Final = {
    "initState": "has a state",
    "prePrepare": "prepares commits",
    "preCommit": "is told of commits",
}


def class_told(facts: ClassFacts, instance: Instance | None) -> tuple[str, ...]:
    """What a component's class extends, emits, acks and fails, its windows and its state; each with its lines."""
    style = facts.base.style if facts.base else ""
    told: dict[str, list[Place]] = {}
    for emit in facts.emits:
        told.setdefault(emit.told(style), []).append(emit.place)
    for name, words in _VERDICTS.items():
        if name in facts.verdicts:
            told[words] = facts.verdicts[name]
    if facts.ticks:
        told["looks for ticks"] = facts.ticks
    for name, words in _STATE.items():
        if name in facts.methods:
            told[words] = [facts.methods[name].place]
    for call in instance.calls if instance is not None else ():
        if call.name.startswith("with"):
            told.setdefault(f"{call.name}()", []).append(call.place)
    extends = f"extends {facts.library_types[0]}" if facts.library_types else "extends nothing that is known"
    return (extends, *(f"{words} ({_lines(places)})" for words, places in told.items()))


def _lines(places: list[Place]) -> str:
    """Places as ``Split.java:31, 35``."""
    files: dict[str, list[str]] = {}
    for place in dict.fromkeys(places):
        files.setdefault(place.file.rpartition("/")[2], []).append(str(place.line))
    return "; ".join(f"{file}:{', '.join(lines)}" for file, lines in files.items())


def say_what_it_does(topology: TopologyFound, facts: ClassFacts) -> None:
    """What a component's class does that a port has to know: acks, anchors, ids, ticks, threads, metrics."""
    style = facts.base.style if facts.base else ""
    name = facts.java_class.name
    if style in ("bolt", "stateful", "tick") and "ack" not in facts.verdicts and "fail" not in facts.verdicts:
        topology.say(
            "note",
            f"{name} acks and fails nothing that can be seen: its tuples time out, here as in Storm (C3)",
            facts.java_class.place,
            "ack, or make it a BasicBolt",
        )
    if style in ("bolt", "stateful", "tick"):
        for emit in facts.emits:
            if not emit.anchored:
                topology.say(
                    "note",
                    f"{name} emits without an anchor: what fails behind it is not replayed (C2)",
                    emit.place,
                )
    if style == "spout" and facts.emits and not any(emit.with_id for emit in facts.emits):
        topology.say(
            "note",
            f"{name} emits without message ids: nothing is tracked or replayed (B6)",
            facts.emits[0].place,
        )
    for emit in facts.emits:
        if emit.direct:
            topology.say("note", f"{name} emits to a task of its choice: emit_direct (D11)", emit.place)
    if facts.ticks:
        topology.say(
            "note",
            f"{name} tells ticks from tuples: tup.is_tick, or a TickTupleAwareBolt; ticks need no ack (C9)",
            facts.ticks[0],
        )
    if facts.threads:
        topology.say(
            "note",
            f"{name} uses threads of its own: collectors may be called from them, but emit returns no task ids there (A28)",
            facts.threads[0],
        )
    if facts.metrics:
        topology.say("note", f"{name} registers metrics: the context has them too (A29)", facts.metrics[0])
    for called, place in facts.context_calls:
        if called in _CONTEXT:
            topology.say("change", f"{name} asks for {called}(): {_CONTEXT[called]}", place, "do without")


def say_conditions(
    topology: TopologyFound, what: str, conditions: tuple[Condition, ...], place: Place
) -> None:
    """What is done in branches and loops: perhaps, or nobody knows how often."""
    for one in conditions:
        if one.loop:
            topology.say(
                "unread",
                f"{what} in a loop, {one.text}: how often can't be told",
                place,
                "add the others to the skeleton",
            )
        else:
            topology.say("note", f"{what} only if {one.text}", place)


def say_what_does_not_fit(topology: TopologyFound) -> None:
    """Subscriptions to components and streams that are not there: most likely something was not made out."""
    streams = {one.id: one.streams for one in topology.components if one.id is not None}
    seen: dict[str, Place] = {}
    for component in topology.components:
        if component.id is None:
            continue
        if component.id in seen:
            topology.say(
                "unread",
                f"the id {component.id!r} is used twice, at {seen[component.id]} too: in another branch?",
                component.place,
                "the skeleton has the first",
            )
        seen.setdefault(component.id, component.place)
    for component, one in topology.inputs:
        if one.source is None or one.stream is None:
            continue
        if one.source not in streams:
            topology.say(
                "unread",
                f"{component.label} subscribes to {one.source!r}, which is not seen to be added",
                one.place,
            )
            continue
        declared = streams[one.source]
        if declared is not None and one.stream not in {stream.id for stream in declared}:
            topology.say(
                "unread",
                f"{component.label} subscribes to stream {one.stream!r} of {one.source!r}, which it is not seen to declare",
                one.place,
            )


def said(value: Value | None) -> str:
    """What the source says of a value."""
    match value:
        case Unknown():
            return value.text
        case Instance():
            return made_by(value)
        case Function():
            return "a lambda"
    return str(plain(value)) if value is not None else ""
