"""The behaviour of Storm's and Heron's builders, declarers and configurations, for the evaluation of Java code.

`Drafts` is the `Library` that an evaluation uses. It knows ``setBolt``, ``fieldsGrouping``, ``conf.put``, ``submitTopology`` and
other calls. It records the arguments of these calls, even those whose values can't be found out.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Final, Literal

from stormspark.porting.findings import Place
from stormspark.porting.java.config_keys import by_setter, storm_key
from stormspark.porting.java.drafts import (
    Builder,
    Built,
    ComponentDraft,
    DeclaredStreams,
    Declarer,
    InputDraft,
    StreamDraft,
    StreamOf,
    Streams,
    Submission,
)
from stormspark.porting.java.evaluation import Condition, Evaluation
from stormspark.porting.java.values import (
    Const,
    Function,
    Instance,
    Items,
    Name,
    Pair,
    Pairs,
    Unknown,
    Value,
    integer,
    made_by,
    text,
)

__all__ = ["GROUPINGS", "Drafts"]

#: For each grouping method of a declarer, stormspark's name of the grouping.
GROUPINGS: Final = {
    "shuffleGrouping": "shuffle",
    "fieldsGrouping": "fields",
    "allGrouping": "all",
    "globalGrouping": "global",
    "noneGrouping": "none",
    "localOrShuffleGrouping": "local_or_shuffle",
    "localFirstGrouping": "local_first",
    "directGrouping": "direct",
    "partialKeyGrouping": "partial_key",
    "customGrouping": "custom",
}

_BUILDERS: Final = {
    "TopologyBuilder": "java",
    "TransactionalTopologyBuilder": "java-transactional",
    "LinearDRPCTopologyBuilder": "java-drpc",
}
#: Builders that make topologies from operations on streams. The report only lists the calls of their methods.
_STREAM_BUILDERS: Final = {
    "TridentTopology": "java-trident",
    "StreamBuilder": "java-streams",
    "Builder.newBuilder": "java-streamlet",
}
_MAPS: Final = {
    "Config",
    "HashMap",
    "LinkedHashMap",
    "TreeMap",
    "ConcurrentHashMap",
    "Properties",
    "ImmutableMap.Builder",
}
_LISTS: Final = {"ArrayList", "LinkedList", "HashSet", "LinkedHashSet"}
_LIST_FACTORIES: Final = {
    "Arrays.asList",
    "List.of",
    "Set.of",
    "ImmutableList.of",
    "Lists.newArrayList",
    "Collections.singletonList",
}
#: Storm's methods that receive a list, and do not change it. So the items of the list stay known.
_ONLY_READ: Final = {"setDefaultStream", "setNamedStream"}
_CREATE: Final = {"createTopology", "buildTopology", "createRemoteTopology", "createLocalTopology", "build"}

_KNOWN_CONSTANTS: Final = {
    ("Utils", "DEFAULT_STREAM_ID"): "default",
    ("Constants", "SYSTEM_TICK_STREAM_ID"): "__tick",
    ("Constants", "SYSTEM_COMPONENT_ID"): "__system",
}


class Drafts:
    """The `Library` that an evaluation uses. It collects all builders that the evaluation finds."""

    def __init__(self) -> None:
        self.builders: list[Builder] = []
        self.streams: list[Streams] = []

    # -- methods of Library ----------------------------------------------------------------------------------

    def create(self, evaluation: Evaluation, made: Instance) -> Value | None:
        """See `Library`."""
        kind = made.simple_type
        if kind in _BUILDERS:
            builder = Builder(_BUILDERS[kind], made.place, made.arguments, made.conditions)
            self.builders.append(builder)
            if kind == "TransactionalTopologyBuilder" and len(made.arguments) >= 3:
                _, spout_id, spout, *rest = made.arguments
                self._add(evaluation, builder, "spout", [spout_id, spout, *rest], made.place)
            return builder
        if kind in _STREAM_BUILDERS:
            return self._new_streams(_STREAM_BUILDERS[kind], made.place)
        if kind in _MAPS:
            pairs = Pairs(kind, made.place, conditions=made.conditions)
            for one in made.arguments:
                if isinstance(one, Pairs):
                    pairs.pairs.extend(one.pairs)
                elif not isinstance(one, Const):
                    pairs.unknown.append((_described(one), made.place))
            return pairs
        if kind in _LISTS:
            inside = [one.items for one in made.arguments if isinstance(one, Items)]
            return Items(list(itertools.chain.from_iterable(inside)), conditions=made.conditions)
        return None

    def call(
        self, evaluation: Evaluation, on: Value, name: str, arguments: list[Value], place: Place
    ) -> Value | None:
        """See `Library`."""
        match on:
            case Builder():
                return self._on_builder(evaluation, on, name, arguments, place)
            case Declarer():
                return self._on_declarer(evaluation, on, name, arguments, place)
            case Pairs():
                return self._on_map(evaluation, on, name, arguments, place)
            case DeclaredStreams():
                return self._on_declared(evaluation, on, name, arguments, place)
            case Streams() | StreamOf():
                return self._on_streams(on, name, arguments, place)
            case Items():
                return _on_list(on, name, arguments, certain=not evaluation.since(on.conditions))
            case Const():
                return _on_text(on, name, arguments)
        return self._submitted(name, arguments, place)

    def call_static(
        self, evaluation: Evaluation, owner: str, name: str, arguments: list[Value], place: Place
    ) -> Value | None:
        """See `Library`."""
        simple = owner.rpartition(".")[2]
        if owner == "super":
            return (
                Pairs("HashMap", place, conditions=tuple(evaluation.conditions))
                if name == "getComponentConfiguration"
                else None
            )
        if simple == "ConfigurableTopology" and name == "start" and arguments:
            topology = arguments[0]
            own = topology.java_class if isinstance(topology, Instance) else None
            run = evaluation.method_of(own, "run", 1) if own is not None else None
            if run is not None and isinstance(topology, Instance):
                evaluation.call(run, topology, arguments[1:] or [Unknown("args")])
            return Const(None)
        if simple == "Config" and arguments and isinstance(arguments[0], Pairs):
            return self._on_map(evaluation, arguments[0], name, arguments[1:], place)
        if f"{simple}.{name}" in _LIST_FACTORIES:
            return (
                arguments[0]
                if len(arguments) == 1 and isinstance(arguments[0], Items)
                else Items(list(arguments), conditions=tuple(evaluation.conditions))
            )
        if f"{simple}.{name}" in (
            "Map.of",
            "ImmutableMap.of",
            "Collections.singletonMap",
            "Collections.emptyMap",
        ):
            pairs = Pairs("Map", place, conditions=tuple(evaluation.conditions))
            pairs.pairs = [Pair(k, v, place) for k, v in zip(arguments[::2], arguments[1::2], strict=False)]
            return pairs
        if f"{simple}.{name}" in _STREAM_BUILDERS:
            return self._new_streams(_STREAM_BUILDERS[f"{simple}.{name}"], place)
        if f"{simple}.{name}" in (
            "Integer.valueOf",
            "Long.valueOf",
            "Integer.parseInt",
            "Long.parseLong",
            "String.valueOf",
        ):
            return _converted(name if simple != "String" else "toString", arguments)
        if (simple, name) == ("Utils", "get") and len(arguments) == 3:
            return self._on_map_or_nothing(arguments[0], arguments[1:])
        if simple in ("ObjectReader", "Utils") and name in (
            "getInt",
            "getLong",
            "getString",
            "getBoolean",
            "getDouble",
        ):
            if not isinstance(arguments[0] if arguments else None, Const) and len(arguments) == 2:
                return arguments[1] if isinstance(arguments[1], Const) else Unknown(f"{simple}.{name}(...)")
            return arguments[0] if arguments else Unknown(name)
        return self._submitted(name, arguments, place)

    def _on_map_or_nothing(self, pairs: Value, arguments: list[Value]) -> Value:
        """Return a key's value in a map. ``arguments`` are the key and the default.

        If the map lacks the key, or is not known, return the default, with a note that the configuration may override it. Return
        `Unknown` if the default is no constant.
        """
        key, otherwise = arguments
        known = text(key)
        for pair in reversed(pairs.pairs if isinstance(pairs, Pairs) else []):
            if known is not None and text(pair.key) == known:
                return pair.value
        if isinstance(otherwise, Const):
            return replace(otherwise, unless=otherwise.unless or f"the configuration has {_described(key)}")
        return Unknown(f"the configuration's {_described(key)}")

    def constant(self, owner: str, name: str) -> Value | None:
        """See `Library`."""
        simple = owner.rpartition(".")[2]
        if known := _KNOWN_CONSTANTS.get((simple, name)):
            return Const(known)
        if simple in ("Config", "DaemonConfig") and name.isupper():
            return Const(storm_key(name))
        if (simple, name) == ("Integer", "MAX_VALUE"):
            return Const(2**31 - 1)
        if (simple, name) == ("Long", "MAX_VALUE"):
            return Const(2**63 - 1)
        return None

    def inherited_field(self, evaluation: Evaluation, this: Instance, name: str) -> Value | None:
        """See `Library`."""
        if name != "conf" or this.java_class is None:
            return None
        if "ConfigurableTopology" not in evaluation.sources.library_types(this.java_class):
            return None
        return this.fields.setdefault(
            "conf", Pairs("Config", this.java_class.place, conditions=this.conditions)
        )

    def escaped(self, value: Value, name: str, place: Place) -> None:
        """See `Library`."""
        match value:
            case Builder() | DeclaredStreams():
                value.escapes.append((name, place))
            case Declarer():
                value.draft.escapes.append((name, place))
            case Items() if name not in _ONLY_READ:
                value.incomplete = True
            case Pairs():
                value.unknown.append((f"{name}(...)", place))

    # -- builders --------------------------------------------------------------------------------------------

    def _on_builder(
        self, evaluation: Evaluation, builder: Builder, name: str, arguments: list[Value], place: Place
    ) -> Value | None:
        if name in ("setSpout", "setBolt", "setCommitterBolt", "addBolt"):
            kind: Literal["spout", "bolt"] = "spout" if name == "setSpout" else "bolt"
            if name == "addBolt":  # a DRPC topology is a chain of bolts without ids
                number = len(builder.components)
                arguments = [Const(f"bolt-{number}"), *arguments]
            return self._add(
                evaluation, builder, kind, arguments, place, committer=name == "setCommitterBolt"
            )
        if name in _CREATE:
            return Built(builder)
        if name == "getSpoutDeclarer" and builder.components:
            return Declarer(builder, builder.components[0])
        builder.others.append((name, place))
        return builder

    def _add(
        self,
        evaluation: Evaluation,
        builder: Builder,
        kind: Literal["spout", "bolt"],
        arguments: list[Value],
        place: Place,
        *,
        committer: bool = False,
    ) -> Value:
        id_, component, *rest = [*arguments, Unknown(""), Unknown("")][: max(2, len(arguments))]
        parallelism: Value = Const(1)
        if rest and text(rest[0]) is None:
            parallelism, *rest = rest
            if isinstance(parallelism, Const) and parallelism.value is None:
                parallelism = Const(1)
        draft = ComponentDraft(
            id_,
            kind,
            component,
            parallelism,
            place,
            evaluation.since(builder.conditions),
            fields=tuple(rest[0].items if len(rest) == 1 and isinstance(rest[0], Items) else rest),
            committer=committer,
        )
        if builder.kind == "java-drpc" and builder.components:
            draft.inputs.append(InputDraft(builder.components[-1].id, Const("default"), "none", None, place))
        builder.components.append(draft)
        return Declarer(builder, draft)

    def _on_declarer(
        self, evaluation: Evaluation, declarer: Declarer, name: str, arguments: list[Value], place: Place
    ) -> Value:
        draft = declarer.draft
        if name in GROUPINGS or name == "grouping":
            if declarer.builder.kind == "java-drpc":
                before = draft.inputs[0].source if draft.inputs else Unknown("")
                draft.inputs.clear()
                arguments = [before, *arguments]
            draft.inputs.append(_input(name, arguments, place, evaluation.since(declarer.builder.conditions)))
        elif name == "setNumTasks" and arguments:
            draft.tasks = arguments[0]
        elif name == "addConfiguration" and len(arguments) == 2:
            draft.settings.append(Pair(arguments[0], arguments[1], place))
        elif name == "addConfigurations" and arguments:
            given = arguments[0]
            if isinstance(given, Pairs):
                draft.settings.extend(given.pairs)
            else:
                draft.settings.append(Pair(Unknown(_described(given)), Unknown(_described(given)), place))
        elif name in ("addSharedMemory", "addResource", "addResources"):
            draft.shared_memory = True
        elif name in (
            "setDebug",
            "setMaxSpoutPending",
            "setMaxTaskParallelism",
            "setMemoryLoad",
            "setCPULoad",
        ):
            keys = {
                "setDebug": "topology.debug",
                "setMaxSpoutPending": "topology.max.spout.pending",
                "setMaxTaskParallelism": "topology.max.task.parallelism",
                "setMemoryLoad": "topology.component.resources.onheap.memory.mb",
                "setCPULoad": "topology.component.cpu.pcore.percent",
            }
            if arguments:
                draft.settings.append(Pair(Const(keys[name]), arguments[0], place))
        return declarer

    # -- configurations --------------------------------------------------------------------------------------

    def _on_map(
        self, evaluation: Evaluation, pairs: Pairs, name: str, arguments: list[Value], place: Place
    ) -> Value | None:
        conditions = evaluation.since(pairs.conditions)
        if name in ("put", "putIfAbsent", "setProperty") and len(arguments) == 2:
            pairs.pairs.append(Pair(arguments[0], arguments[1], place, conditions))
            return Const(None)
        if name == "putAll" and arguments:
            if isinstance(arguments[0], Pairs):
                pairs.pairs.extend(arguments[0].pairs)
            else:
                pairs.unknown.append((_described(arguments[0]), place))
            return Const(None)
        if name == "getOrDefault" and len(arguments) == 2:
            return self._on_map_or_nothing(pairs, arguments)
        if name == "get" and arguments:
            key = text(arguments[0])
            found = [pair.value for pair in pairs.pairs if key is not None and text(pair.key) == key]
            return found[-1] if found else Unknown(f"the configuration's {_described(arguments[0])}")
        if name.startswith(("set", "register")):
            pairs.pairs.extend(
                replace(one, conditions=conditions) for one in by_setter(name, arguments, place)
            )
            return pairs
        return None

    # -- what a component declares ---------------------------------------------------------------------------

    def _on_declared(
        self,
        evaluation: Evaluation,
        declared: DeclaredStreams,
        name: str,
        arguments: list[Value],
        place: Place,
    ) -> Value | None:
        if name not in ("declare", "declareStream"):
            return None
        id_: Value = Const("default")
        if name == "declareStream" and arguments:
            id_, *arguments = arguments
        direct = False
        if len(arguments) == 2:
            flag, *arguments = arguments
            direct = isinstance(flag, Const) and flag.value is True
        fields_ = arguments[0] if arguments else Unknown("")
        declared.streams.append(StreamDraft(id_, fields_, direct, place, tuple(evaluation.conditions)))
        return Const(None)

    # -- streams ---------------------------------------------------------------------------------------------

    def _new_streams(self, kind: str, place: Place) -> Streams:
        streams = Streams(kind, place)
        self.streams.append(streams)
        return streams

    def _on_streams(self, on: Streams | StreamOf, name: str, arguments: list[Value], place: Place) -> Value:
        streams = on if isinstance(on, Streams) else on.of
        if name == "build" and isinstance(on, Streams):
            return Built(streams)
        given = next((string for one in arguments if (string := text(one)) is not None), "")
        streams.operations.append((name, given, place))
        return StreamOf(streams)

    # -- submissions -----------------------------------------------------------------------------------------

    def _submitted(self, name: str, arguments: list[Value], place: Place) -> Value | None:
        if not (name.startswith(("submit", "completeTopology")) or name == "run"):
            return None
        target = next((one for one in arguments if isinstance(one, Built | Builder | Streams)), None)
        if target is None:
            return None
        found = target.builder if isinstance(target, Built) else target
        given = next((one for one in arguments if isinstance(one, Pairs)), None)
        # Copy the configuration, because the code may change it after the submission.
        conf = None if given is None else replace(given, pairs=list(given.pairs), unknown=list(given.unknown))
        names = [one for one in arguments if isinstance(one, Const | Unknown)]
        found.submissions.append(Submission(names[0] if names else Unknown(""), conf, place))
        return Const(None)


def _input(name: str, arguments: list[Value], place: Place, conditions: tuple[Condition, ...]) -> InputDraft:
    source = arguments[0] if arguments else Unknown("")
    rest = arguments[1:]
    stream: Value = Const("default")
    fields_: Value | None = None
    custom: Value | None = None
    if name == "grouping":  # its two arguments are Thrift's GlobalStreamId and Grouping
        if (
            isinstance(source, Instance)
            and source.simple_type == "GlobalStreamId"
            and len(source.arguments) == 2
        ):
            source, stream = source.arguments
        made = rest[0] if rest else None
        kind, fields_ = _of_thrift(made)
        return InputDraft(
            source, stream, kind, fields_, place, made if kind == "custom" else None, conditions
        )
    grouping = GROUPINGS[name]
    if grouping in ("fields", "partial_key", "custom"):
        if len(rest) >= 2:
            stream, *rest = rest
        last = rest[0] if rest else Unknown("")
        if grouping == "custom":
            custom = last
            if isinstance(last, Instance) and last.simple_type == "PartialKeyGrouping":
                grouping, fields_, custom = "partial_key", next(iter(last.arguments), None), None
        else:
            fields_ = last
    elif rest:
        stream = rest[0]
    return InputDraft(source, stream, grouping, fields_, place, custom, conditions)


def _of_thrift(made: Value | None) -> tuple[str, Value | None]:
    """Return the grouping's name and fields, given an expression such as ``Grouping.shuffle(new NullStruct())``.

    Any other value counts as a custom grouping.
    """
    kind = made.simple_type if isinstance(made, Instance) else ""
    known = {"shuffle", "all", "none", "direct", "fields"}
    if kind in known and isinstance(made, Instance):
        return kind, made.arguments[0] if kind == "fields" and made.arguments else None
    if kind == "local_or_shuffle":
        return kind, None
    return "custom", None


def _on_list(items: Items, name: str, arguments: list[Value], *, certain: bool) -> Value | None:
    first = arguments[0] if arguments else None
    if name == "get" and (position := integer(first)) is not None and position < len(items.items):
        return None if items.incomplete else items.items[position]
    if name == "add" and len(arguments) == 1 and certain:
        items.items.extend(arguments)
    elif name == "addAll" and isinstance(first, Items) and certain:
        items.items.extend(first.items)
        items.incomplete = items.incomplete or first.incomplete
    elif name.startswith(("add", "set", "remove", "clear", "sort", "retain", "replace")):
        items.incomplete = True
    return None


def _on_text(value: Const, name: str, arguments: list[Value]) -> Value | None:
    if isinstance(value.value, str):
        match name:
            case "toLowerCase":
                return Const(value.value.lower(), value.unless)
            case "toUpperCase":
                return Const(value.value.upper(), value.unless)
            case "trim" | "strip":
                return Const(value.value.strip(), value.unless)
            case "concat" if arguments and (other := text(arguments[0])) is not None:
                return Const(value.value + other, value.unless)
    if name in ("intValue", "longValue", "toString"):
        return _converted(name, [value])
    return None


def _converted(name: str, arguments: list[Value]) -> Value:
    first = arguments[0] if arguments else None
    if isinstance(first, Const):
        if name == "toString":
            return (
                Const(str(first.value), first.unless) if isinstance(first.value, str | int) else Unknown(name)
            )
        if (number := integer(first)) is not None:
            return Const(number, first.unless)
        if isinstance(first.value, str) and first.value.lstrip("-").isdigit():
            return Const(int(first.value), first.unless)
    return Unknown(_described(first) if first else name)


def _described(value: Value | None) -> str:
    """Return the text that the report shows for a value. It is close to the value's source text, and empty for a value
    that has none.
    """
    match value:
        case Unknown() | Name():
            return value.text
        case Instance():
            return made_by(value)
        case Function():
            return "a lambda"
        case Const():
            return repr(value.value)
    return ""
