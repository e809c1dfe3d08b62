"""Reads the topologies in Java sources.

Walks through the code (`following`) record what they find as drafts (`drafts`). This module makes topologies from the drafts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, TypeVar

from stormspark.porting.findings import (
    ComponentFound,
    InputFound,
    Kind,
    Place,
    Setting,
    Statement,
    StreamFound,
    TopologyFound,
    Unresolved,
)
from stormspark.porting.java.components import ClassFacts, class_facts
from stormspark.porting.java.drafts import (
    Builder,
    ComponentDraft,
    DeclaredStreams,
    InputDraft,
    Streams,
    Submission,
)
from stormspark.porting.java.evaluation import Evaluation
from stormspark.porting.java.following import follow
from stormspark.porting.java.library import Drafts
from stormspark.porting.java.remarks import (
    class_summary,
    described,
    report_behaviour,
    report_conditions,
    report_what_does_not_fit,
)
from stormspark.porting.java.source import JavaClass, JavaSources
from stormspark.porting.java.stock import Base, Stock, base_of, fits, stock_of, transactional_base
from stormspark.porting.java.values import (
    Const,
    Function,
    Instance,
    Items,
    Pair,
    Pairs,
    Unknown,
    Value,
    field_names,
    integer,
    plain,
    text,
)
from stormspark.porting.keys import about_settings
from stormspark.storm_keys import STORM_KEYS

__all__ = ["ReadComponent", "ReadTopology", "kebab", "read_topologies"]

_B = TypeVar("_B", Builder, Streams)


_NOT_THERE: Final = {
    "java-drpc": "stormspark has no DRPC yet, so a topology of LinearDRPCTopologyBuilder can't be ported",
    "java-trident": "stormspark has no Trident yet; it has Trident's states (stormspark.map_state) and transactional topologies",
    "java-streams": "stormspark does not have Storm's Streams API: write the topology with TopologyBuilder and WindowedBolt",
    "java-streamlet": "write Heron's streamlets of Java with stormspark.streamlet, whose operations are the same",
}


@dataclass(eq=False)
class ReadComponent:
    """A component, with all facts that are needed to write it in Python."""

    draft: ComponentDraft
    found: ComponentFound
    facts: ClassFacts | None = None
    stock: Stock | None = None
    #: The settings of the component: first those of its class, then those of its declarer.
    own_conf: list[Pair] = field(default_factory=list)
    #: Whether the topology is a transactional one.
    transactional: bool = False

    @property
    def instance(self) -> Instance | None:
        """The component's object; None if it is not known."""
        return self.draft.component if isinstance(self.draft.component, Instance) else None

    @property
    def base(self) -> Base | None:
        """The base class in stormspark. It is known if the component's class is in the project and extends a known class.

        In a transactional topology it is always known, because only few classes are possible there.
        """
        base = self.facts.base if self.facts else None
        committer = self.transactional and self.draft.committer  # is a batch bolt
        possible = base is not None and fits(base, self.found.kind, transactional=self.transactional)
        if base is not None and possible and not (committer and base.style == "basic"):
            return base
        return transactional_base(self.found.type_name, self.found.kind) if self.transactional else None


@dataclass(eq=False)
class ReadTopology:
    """A topology, with all facts that the report and the skeleton need."""

    found: TopologyFound
    builder: Builder | Streams
    owner: JavaClass | None
    components: list[ReadComponent] = field(default_factory=list)


def read_topologies(sources: JavaSources) -> list[ReadTopology]:
    """Return all topologies that the sources build, sorted by their places."""
    drafts = Drafts()
    evaluation = Evaluation(sources, drafts)
    follow(sources, evaluation, drafts)
    found: list[ReadTopology] = []
    for builders in _by_place(drafts.builders):
        found.append(_Reader(sources, evaluation, builders).read())
    for streams in _by_place(drafts.streams):
        found.append(_read_streams(sources, streams))
    return sorted(found, key=lambda one: one.found.place)


def _by_place(found: list[_B]) -> Iterator[list[_B]]:
    """Group the builders by the place in the code that makes them. Several walks may reach a place, but it makes one topology."""
    places: dict[Place, list[_B]] = {}
    for one in found:
        places.setdefault(one.place, []).append(one)
    yield from places.values()


# -- one topology ------------------------------------------------------------------------------------------------


class _Reader:
    def __init__(self, sources: JavaSources, evaluation: Evaluation, builders: list[Builder]) -> None:
        self._sources = sources
        self._evaluation = evaluation
        self._builders = builders
        self._builder = max(builders, key=_known)
        self._owner = _owner(sources, self._builder.place)

    def read(self) -> ReadTopology:
        builder = self._builder
        submissions = [one for each in self._builders for one in each.submissions]
        topology = TopologyFound("", builder.kind, builder.place)
        topology.name = _name(topology, submissions, self._owner, builder)
        read = ReadTopology(topology, builder, self._owner)
        if len(self._builders) > 1 and len({str(plain(one.name)) for one in submissions}) > 1:
            names = ", ".join(dict.fromkeys(str(plain(one.name)) for one in submissions))
            topology.report(
                "note",
                f"the same code builds several topologies ({names}), and this is one of them",
                builder.place,
            )
        self._report_omissions(topology)
        for draft in builder.components:
            component = self._component(topology, draft)
            read.components.append(component)
            topology.components.append(component.found)
        report_what_does_not_fit(topology)
        self._settings(topology, read, submissions)
        if not builder.components:
            topology.report(
                "unread",
                "no code was found that adds a component to this builder",
                builder.place,
                "see which code calls setSpout and setBolt",
            )
        if builder.kind in _NOT_THERE:
            topology.report("change", _NOT_THERE[builder.kind], builder.place)
        return read

    def _report_omissions(self, topology: TopologyFound) -> None:
        if not self._builder.followed:
            topology.report(
                "unread",
                "the code that builds it is too long or too deeply nested to be followed to its end",
                topology.place,
                "see what else it adds",
            )
        for name, place in self._builder.escapes:
            topology.report(
                "unread",
                f"the builder is passed to {name}(), which could not be followed",
                place,
                "see what that method adds",
            )
        for name, place in self._builder.others:
            if name == "addWorkerHook":
                topology.report(
                    "change",
                    "it has a worker hook",  # A5
                    place,
                    "write a stormspark.WorkerHook, and add it with builder.add_worker_hook",
                )
            elif name != "clone":
                topology.report(
                    "unread", f"{name}() of the builder is a method that port does not know", place
                )

    # -- components ------------------------------------------------------------------------------------------

    def _component(self, topology: TopologyFound, draft: ComponentDraft) -> ReadComponent:
        instance = draft.component if isinstance(draft.component, Instance) else None
        found = ComponentFound(
            id=text(draft.id),
            kind=draft.kind,
            type_name=_type_name(draft.component),
            place=draft.place,
            parallelism=integer(draft.parallelism),
            tasks=integer(draft.tasks),
        )
        read = ReadComponent(draft, found, transactional=topology.front_end == "java-transactional")
        if instance is not None and instance.java_class is not None:
            read.facts = class_facts(self._sources, instance.java_class)
        elif instance is not None:
            read.stock = stock_of(instance)
        self._report_how_it_is_added(topology, read)
        for name, place in draft.escapes:
            topology.report(
                "unread",
                f"the declarer of {found.label} is passed to {name}(), which could not be followed",
                place,
                "see what that method subscribes to",
            )
        found.streams = self._streams(topology, read)
        found.inputs = [self._input(topology, found, one, len(draft.conditions)) for one in draft.inputs]
        read.own_conf = [*self._own_conf(read), *draft.settings]
        self._report_object(topology, read)
        if read.facts is not None:
            found.does = class_summary(read.facts, instance)
            report_behaviour(topology, read.facts)
        return read

    def _report_how_it_is_added(self, topology: TopologyFound, read: ReadComponent) -> None:
        draft, found = read.draft, read.found
        if found.id is None:
            topology.report(
                "unread",
                f"the id of this {draft.kind} can't be made out: {described(draft.id)}",
                draft.place,
                "add it to the skeleton",
            )
        if isinstance(draft.id, Const) and draft.id.unless:
            topology.report("note", f"the id of {found.label} is different if {draft.id.unless}", draft.place)
        if found.parallelism is None:
            topology.report(
                "unread",
                f"the parallelism of {found.label} can't be made out: {described(draft.parallelism)}",
                draft.place,
                "set it in the skeleton, which has 1",
            )
        elif isinstance(draft.parallelism, Const) and draft.parallelism.unless:
            topology.report(
                "note",
                f"the parallelism of {found.label} is different if {draft.parallelism.unless}",
                draft.place,
            )
        if isinstance(draft.tasks, Const) and draft.tasks.unless:
            topology.report(
                "note",
                f"the number of tasks of {found.label} is different if {draft.tasks.unless}",
                draft.place,
            )
        if draft.tasks is not None and found.tasks is None:
            topology.report(
                "unread",
                f"the number of tasks of {found.label} can't be made out: {described(draft.tasks)}",
                draft.place,
            )
        report_conditions(topology, f"{found.label} is added", draft.conditions, draft.place)

    def _streams(self, topology: TopologyFound, read: ReadComponent) -> tuple[StreamFound, ...] | None:
        draft, found = read.draft, read.found
        if isinstance(draft.component, Function):
            names = [text(one) for one in draft.fields]
            if draft.kind == "spout":
                names = ["lambda"]
            known = tuple(name for name in names if name is not None)
            return (StreamFound("default", known, draft.place),) if known else ()
        instance = read.instance
        if instance is None:
            topology.report(
                "unread",
                f"the object of {found.label} can't be made out: {described(draft.component)}",
                draft.place,
                "see which code makes it",
            )
            return None
        if read.stock is not None:
            given = read.stock.streams(instance)
            if given is None:
                return None
            return tuple(StreamFound(stream, fields, instance.place) for stream, fields in given.items())
        if instance.java_class is None:
            return None
        method = self._evaluation.method_of(instance.java_class, "declareOutputFields", 1)
        if method is None or method.body is None:
            if base_of(self._sources.library_types(instance.java_class)) is None:
                return None
            # The component's class inherits its streams from a class that is not in the project.
            topology.report(
                "unread",
                f"the streams of {found.label} are declared in a class that is not in the project",
                instance.java_class.place,
            )
            return None
        declared = DeclaredStreams()
        self._evaluation.begin()
        self._evaluation.call(method, instance, [declared])
        if declared.escapes:
            name, place = declared.escapes[0]
            topology.report(
                "unread",
                f"the streams of {found.label} are declared in {name}(), which could not be followed",
                place,
                "declare them in the skeleton",
            )
            return None
        streams: dict[str, StreamFound] = {}
        for one in declared.streams:
            stream, names_ = text(one.id), field_names(one.fields)
            if stream is None or any(condition.loop for condition in one.conditions):
                why = ", because a loop declares it" if stream else ""
                topology.report(
                    "unread",
                    f"a stream of {found.label} can't be made out{why}: {described(one.id)}",
                    one.place,
                    "declare it in the skeleton",
                )
                return None
            report_conditions(
                topology, f"stream {stream!r} of {found.label} is declared", one.conditions, one.place
            )
            if names_ is None:
                topology.report(
                    "unread",
                    f"the fields of stream {stream!r} of {found.label} can't be made out: {described(one.fields)}",
                    one.place,
                    "declare them in the skeleton",
                )
            if stream not in streams:
                streams[stream] = StreamFound(stream, names_, one.place, one.direct)
        return tuple(streams.values())

    def _input(
        self, topology: TopologyFound, found: ComponentFound, draft: InputDraft, around: int
    ) -> InputFound:
        fields: tuple[str, ...] | None = ()
        if draft.fields is not None:
            fields = field_names(draft.fields)
        elif draft.grouping in ("fields", "partial_key"):
            fields = None
        # In Storm, a fields grouping without fields is a global grouping (A7).
        grouping = "global" if draft.grouping == "fields" and fields == () else draft.grouping
        read = InputFound(
            text(draft.source),
            text(draft.stream),
            grouping,
            draft.place,
            fields,
            _type_name(draft.custom) if draft.custom is not None else "",
        )
        if not read.resolved:
            unknown = [
                f"{what} {described(value)}"
                for what, value, known in (
                    ("source", draft.source, read.source),
                    ("stream", draft.stream, read.stream),
                    ("fields", draft.fields, read.fields),
                )
                if known is None and value is not None
            ]
            topology.report(
                "unread",
                f"a subscription of {found.label} can't be made out: {', '.join(unknown)}",
                draft.place,
                "add it to the skeleton",
            )
        for value in (draft.source, draft.stream):
            if isinstance(value, Const) and value.unless:
                topology.report(
                    "note", f"a subscription of {found.label} is different if {value.unless}", draft.place
                )
        if draft.custom is not None:
            topology.report(
                "change",
                f"{found.label} has a custom grouping, {read.custom}",
                draft.place,
                "write it as a stormspark.CustomStreamGrouping",  # D13
            )
        elif draft.grouping == "none":
            topology.report(
                "note",
                f"the none grouping of {found.label} chooses a random task, as in Storm; in Heron it is a shuffle",  # D8
                draft.place,
            )
        report_conditions(
            topology, f"a subscription of {found.label} is made", draft.conditions[around:], draft.place
        )
        return read

    def _own_conf(self, read: ReadComponent) -> list[Pair]:
        instance = read.instance
        if instance is None or instance.java_class is None:
            return []
        method = self._evaluation.method_of(instance.java_class, "getComponentConfiguration", 0)
        if method is None:
            return []
        self._evaluation.begin()
        given = self._evaluation.call(method, instance, [])
        return given.pairs if isinstance(given, Pairs) else []

    def _report_object(self, topology: TopologyFound, read: ReadComponent) -> None:
        found, instance = read.found, read.instance
        component = read.draft.component
        if isinstance(component, Function):
            topology.report(
                "change",
                f"{found.label} is a lambda",
                component.place,
                "write it as a function (docs/building.md)",
            )
            return
        if instance is None:
            return
        if instance.unless:
            topology.report("note", f"{found.label} is a different object if {instance.unless}", found.place)
        if read.stock is not None:
            if read.stock.ours.startswith("stormspark.multilang."):
                found.command = tuple(shell_command(read))
                if found.command:
                    return
            remark = f": {read.stock.remark}" if read.stock.remark else ""
            if read.stock.ours:
                kind: Kind = "runs" if read.stock.ours.startswith("stormspark.testing") else "change"
                todo = (
                    ""
                    if kind == "runs"
                    else f"configure {read.stock.ours}: the skeleton has what could be carried over"
                )
                topology.report(
                    kind,
                    f"{found.label} is Storm's {instance.simple_type}, and {read.stock.ours} replaces it{remark}",
                    found.place,
                    todo,
                )
            else:
                topology.report(
                    "change",
                    f"{found.label} is Storm's {instance.simple_type}{remark}",
                    found.place,
                    "write it in Python: the skeleton has a class for it",
                )
            return
        if read.facts is None:
            topology.report(
                "change",
                f"{found.label} is {instance.type}, whose source is not in the project",
                found.place,
                "write it in Python: the skeleton has a class for it",
            )
            return
        self._report_class(topology, read, read.facts)

    def _report_class(self, topology: TopologyFound, read: ReadComponent, facts: ClassFacts) -> None:
        found, base = read.found, read.base
        name = facts.java_class.name
        if base is None or (base is not facts.base and facts.base is None):
            what = base.ours if base is not None else found.kind
            topology.report(
                "unread",
                f"{name} of {found.label} extends no known class of components",
                facts.java_class.place,
                f"write it in Python as a {what}",
            )
            return
        if base.style in ("shell-bolt", "shell-spout"):
            command = found.command = tuple(shell_command(read))
            if not command:
                topology.report(
                    "unread",
                    f"{found.label}, {name}: the command of its child process can't be made out",
                    facts.java_class.place,
                    "put the command into the skeleton",
                )
            return
        topology.report(
            "change",
            f"{found.label}: {name} has to be written in Python, as a {base.ours}",
            facts.java_class.place,
            "fill in the skeleton's methods; each names the Java line that it replaces",
        )
        if base.remark:
            topology.report("change", f"{found.label}: {base.remark}", facts.java_class.place)
        instance = read.instance
        for call in instance.calls if instance else ():
            report_conditions(
                topology, f"{call.name}() of {found.label} is called", call.conditions, call.place
            )

    # -- settings --------------------------------------------------------------------------------------------

    def _settings(self, topology: TopologyFound, read: ReadTopology, submissions: list[Submission]) -> None:
        conf = next((one.conf for one in submissions if one.conf is not None), None)
        if conf is not None:
            for source, place in dict.fromkeys(conf.unknown):
                topology.report(
                    "unread",
                    f"the configuration also has settings from {source or 'an unknown source'}, which can't be made out",
                    place,
                    "set them with -c key=value",
                )
            topology.settings += _settings_of(topology, conf.pairs, "")
        for component in read.components:
            topology.settings += _settings_of(topology, component.own_conf, component.found.id or "")
        topology.statements += list(about_settings(topology.settings))


def shell_command(read: ReadComponent) -> list[str]:
    """Return the command of a shell component's child process; empty if a word of the command is not known."""
    if read.instance is None:
        return []
    given = read.instance.base_arguments or read.instance.arguments
    values = given[0].items if given and isinstance(given[0], Items) else list(given)
    words = [text(one) for one in values]
    return [] if None in words else [word for word in words if word is not None]


def _settings_of(topology: TopologyFound, pairs: Iterable[Pair], component: str) -> list[Setting]:
    settings: dict[str, Setting] = {}
    for pair in pairs:
        key = text(pair.key)
        if key is None:
            topology.report(
                "unread", f"a configuration key can't be made out: {described(pair.key)}", pair.place
            )
            continue
        value = plain(pair.value)
        report_conditions(topology, f"{key} is set", pair.conditions, pair.place)
        if isinstance(pair.value, Const) and pair.value.unless:
            topology.report("note", f"the value of {key} is different if {pair.value.unless}", pair.place)
        if isinstance(value, Unresolved) and not (key in STORM_KEYS and STORM_KEYS[key].useless_because):
            topology.report(
                "unread",
                f"the value of {key} can't be made out: {value.text}",
                pair.place,
                "set it in the skeleton",
            )
        settings[key] = Setting(key, value, pair.place, component)
    return list(settings.values())


def _name(
    topology: TopologyFound,
    submissions: list[Submission],
    owner: JavaClass | None,
    builder: Builder | Streams,
) -> str:
    for one in submissions:
        if (name := text(one.name)) is not None:
            if isinstance(one.name, Const) and one.name.unless:
                topology.report("note", f"its name is different if {one.name.unless}", one.place)
            return name
    named = kebab(owner.name) if owner else "topology"
    what = "its name can't be made out" if submissions else "no code was found that submits it"
    topology.report(
        "unread",
        f"{what}; {named!r} is the name of its class",
        submissions[0].place if submissions else builder.place,
    )
    return named


def _read_streams(sources: JavaSources, found: list[Streams]) -> ReadTopology:
    streams = max(found, key=lambda one: len(one.operations))
    owner = _owner(sources, streams.place)
    topology = TopologyFound("", streams.kind, streams.place)
    topology.name = _name(topology, [s for one in found for s in one.submissions], owner, streams)
    topology.report("change", _NOT_THERE[streams.kind], streams.place)
    for name, given, place in streams.operations:
        topology.report("note", f"{name}({given!r}, ...)" if given else f"{name}(...)", place)
    return ReadTopology(topology, streams, owner)


def _owner(sources: JavaSources, place: Place) -> JavaClass | None:
    """Return the outermost class around a place. If there is none, return the first class of the file."""
    around = [one for file in sources.files if file.path == place.file for one in file.classes]
    inside = [one for one in around if one.node.start_point[0] < place.line <= one.node.end_point[0] + 1]
    return next(iter(inside or around), None)


def _known(builder: Builder) -> tuple[int, int]:
    known = [text(one.id) is not None for one in builder.components]
    return sum(known), len(builder.submissions)


def _type_name(value: Value | None) -> str:
    match value:
        case Instance():
            return value.java_class.name if value.java_class else value.simple_type
        case Function():
            return "lambda"
        case Unknown():
            return f"?({value.text})"
    return "?"


def kebab(name: str) -> str:
    """Make a topology's name from the name of a class.

    >>> kebab("RollingTopWords"), kebab("DRPCWordCount")
    ('rolling-top-words', 'drpc-word-count')
    """
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", name).lower()


def unreadable(sources: JavaSources) -> Iterator[Statement]:
    """Yield one statement per syntax error that the parser found."""
    for file in sources.files:
        for place, what in file.errors:
            yield Statement(
                "unread",
                f"a syntax error, {what}; the rest of the file was read",
                place,
                "compile it with javac",
            )
