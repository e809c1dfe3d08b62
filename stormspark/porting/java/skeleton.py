"""Writes the skeleton of a Java topology in Python: ids, parallelism, groupings and settings, but no bodies of methods.

The file can be imported, and ``stormspark explain`` prints its graph. So users can compare the graph with Java's before they
write the body of a method. The skeleton has no copy of the Java code. Each method names the Java line that it replaces.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from stormspark.config import conf_problems
from stormspark.porting.findings import InputFound, Place, Setting, StreamFound, Unresolved
from stormspark.porting.java.components import ClassFacts
from stormspark.porting.java.drafts import Builder
from stormspark.porting.java.overloads import fitting
from stormspark.porting.java.placeholders import possible, with_ids
from stormspark.porting.java.python_text import (
    class_name,
    in_docstring,
    one_line,
    python_name,
    quoted,
    short,
    shown,
)
from stormspark.porting.java.reading import ReadComponent, ReadTopology, shell_command
from stormspark.porting.java.source import JavaClass, JavaMethod
from stormspark.porting.java.stock_source import kafka_bolt, kafka_spout, window_calls
from stormspark.porting.java.values import (
    Function,
    Instance,
    Value,
    field_names,
    plain,
    text,
)
from stormspark.storm_keys import SIZING_KEYS

__all__ = ["skeleton"]

#: For each style of class, its methods. The entry of a method has its name in Python, its parameters, its name in Java, and
#: whether the skeleton has the method even if the Java class lacks it.
_METHODS: Final[dict[str, tuple[tuple[str, str, str, bool], ...]]] = {
    "spout": (
        ("open", "conf, context, collector", "open", True),
        ("next_tuple", "", "nextTuple", True),
        ("ack", "message_id", "ack", False),
        ("fail", "message_id", "fail", False),
        ("activate", "", "activate", False),
        ("deactivate", "", "deactivate", False),
        ("close", "", "close", False),
    ),
    "bolt": (
        ("prepare", "conf, context, collector", "prepare", True),
        ("execute", "tup", "execute", True),
        ("cleanup", "", "cleanup", False),
    ),
    "tick": (
        ("prepare", "conf, context, collector", "prepare", True),
        ("process", "tup", "process", True),
        ("on_tick_tuple", "tick", "onTickTuple", False),
        ("cleanup", "", "cleanup", False),
    ),
    "basic": (
        ("prepare", "conf, context", "prepare", False),
        ("execute", "tup, collector", "execute", True),
        ("cleanup", "", "cleanup", False),
    ),
    "windowed": (
        ("prepare", "conf, context, collector", "prepare", True),
        ("execute", "window", "execute", True),
        ("cleanup", "", "cleanup", False),
    ),
    "stateful": (
        ("prepare", "conf, context, collector", "prepare", True),
        ("init_state", "state", "initState", True),
        ("execute", "tup", "execute", True),
        ("pre_prepare", "txid", "prePrepare", False),
        ("pre_commit", "txid", "preCommit", False),
        ("pre_rollback", "", "preRollback", False),
        ("cleanup", "", "cleanup", False),
    ),
    "batch": (
        ("prepare", "conf, context, collector, attempt", "prepare", True),
        ("execute", "tup", "execute", True),
        ("finish_batch", "", "finishBatch", True),
    ),
    "tx-spout": (
        ("get_coordinator", "conf, context", "getCoordinator", True),
        ("get_emitter", "conf, context", "getEmitter", True),
    ),
}
_METHODS["stateful-windowed"] = tuple(
    ("execute", "window", "execute", True) if method[0] == "execute" else method
    for method in _METHODS["stateful"]
)
_METHODS["tx-partitioned"] = _METHODS["tx-opaque"] = _METHODS["tx-spout"]


def skeleton(read: ReadTopology) -> str:
    """Return the text of the Python file."""
    components = with_ids(read.components)
    draft = _Skeleton(read, components)
    list(draft._placed())
    # No class of the skeleton may have the name of a class that the skeleton imports, such as Count or Duration.
    imported = {name for names in draft.imports.values() for name in names}
    return _Skeleton(read, components, taken=imported).text()


@dataclass
class _Class:
    """A class of the skeleton, and the component that it was written for."""

    name: str
    component: ReadComponent


@dataclass
class _Skeleton:
    read: ReadTopology
    components: Sequence[ReadComponent]
    imports: dict[str, set[str]] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)
    classes: list[str] = field(default_factory=list)
    functions: list[str] = field(default_factory=list)
    made: dict[object, list[_Class]] = field(default_factory=dict)

    def text(self) -> str:
        found = self.read.found
        assert isinstance(self.read.builder, Builder)
        self.taken |= {"Fields", "TopologyBuilder", "TransactionalTopologyBuilder", "CONF", "build"}
        # The names of imported classes are in use, so no class of the skeleton gets one of them.
        for component in self.components:
            if component.base is not None:
                self.taken.add(component.base.ours.rpartition(".")[2])
            elif component.stock is not None and component.stock.ours:
                self.taken.add(component.stock.ours.rpartition(".")[2])
        self.taken |= {"Spout", "Bolt"}
        added = [line for one in self._placed() for line in one]
        conf = self._conf()
        parts = [
            f'"""The topology {in_docstring(found.name)}, ported from',
            f"{in_docstring(str(found.place))}",
            "",
            "It is wired like the Java topology. Write the methods that raise NotImplementedError: each names its line in Java.",
            '"""',
            "",
            *self._import_lines(),
            "",
            *conf,
            *(f"\n\n{one}" for one in self.functions),
            *(f"\n\n{one}" for one in self.classes),
            "\n\ndef build():",
            f'    """The topology as {short(found.place)} builds it."""',
            *added,
            f"    return builder.create_topology({quoted(found.name)}, CONF)",
        ]
        return "\n".join(parts) + "\n"

    # -- the graph -------------------------------------------------------------------------------------------

    def _placed(self) -> Iterator[list[str]]:
        components = list(self.components)
        ids: set[str] = set()
        if self.read.found.front_end == "java-transactional":
            self._use("stormspark.transactional.TransactionalTopologyBuilder")
            assert isinstance(self.read.builder, Builder)
            id_ = text(self.read.builder.arguments[0]) if self.read.builder.arguments else None
            first = components.pop(0) if components else None
            if first is None:
                yield ["    builder = TransactionalTopologyBuilder()"]
                return
            yield from self._remarks(first)
            ids.add(first.found.id or "spout")
            yield [
                f"    builder = TransactionalTopologyBuilder({quoted(id_ or self.read.found.name)}, "
                f"{quoted(first.found.id or 'spout')}, {self._object(first)}, {first.found.parallelism or 1})"
            ]
        else:
            self._use("stormspark.TopologyBuilder")
            yield ["    builder = TopologyBuilder()"]
            if not any(one.found.kind == "spout" for one in components):
                yield list(self._missing_spout({one.found.id or "" for one in components}))
        added = {one.found.id for one in self.components if one.found.id is not None} | ids
        for one in components:
            assert one.found.id is not None
            if one.found.id in ids:
                yield [
                    f"    # {short(one.found.place)}: uses the id {one.found.id!r} again, and is left out here"
                ]
            else:
                ids.add(one.found.id)
                yield from self._remarks(one)
                yield list(self._component(one, added))

    def _remarks(self, one: ReadComponent) -> Iterator[list[str]]:
        if one not in self.read.components:  # `with_ids` has made it
            yield [f"    # {short(one.found.place)}: the id can't be made out; it is {one.found.id!r} here"]

    def _missing_spout(self, ids: set[str]) -> Iterator[str]:
        """Add a spout to a topology of which no spout was found, so that it can be planned."""
        self._use("stormspark.Spout")
        name, id_ = self._free("MissingSpout"), "missing-spout"
        while id_ in ids:
            id_ += "-2"
        self.classes.append(
            f'class {name}(Spout):\n    """Stands for the spouts, of which none could be made out. Put them in its place."""\n\n'
            f"    def open(self, conf, context, collector):\n"
            f'        raise NotImplementedError("no spout could be made out: see {short(self.read.found.place)}")\n\n'
            f"    def next_tuple(self):\n"
            f'        raise NotImplementedError("no spout could be made out: see {short(self.read.found.place)}")'
        )
        yield "    # no spout could be made out: put the spouts here, and the subscriptions to them"
        yield f"    builder.set_spout({quoted(id_)}, {name}())"

    def _component(self, one: ReadComponent, added: set[str]) -> Iterator[str]:
        found = one.found
        assert found.id is not None
        for condition in one.draft.conditions:
            yield f"    # {short(condition.place)}: {'in a loop' if condition.loop else 'only if'} {one_line(condition.text)}"
        adding = (
            "set_spout"
            if found.kind == "spout"
            else "set_committer_bolt"
            if one.draft.committer
            else "set_bolt"
        )
        arguments = [quoted(found.id), self._object(one)]
        if found.parallelism is None:
            yield f"    # {short(found.place)}: the parallelism can't be made out; it is 1 here"
        if any(not self._is_known(argument) for argument in self._passed(one)):
            yield f"    # {short(found.place)}: arguments that can't be made out are None here"
        if (found.parallelism or 1) != 1:
            arguments.append(str(found.parallelism))
        if isinstance(one.draft.component, Function) and found.kind == "bolt" and found.streams:
            arguments.append(f"fields={shown(list(found.streams[0].fields or ()))}")
        calls = []
        for each in found.inputs:
            if not each.resolved or each.source not in added:
                yield f"    # {short(each.place)}: a subscription is left out, because it or its source can't be made out: {each}"
                continue
            if (problem := self._problem(each)) is not None:
                yield f"    # {short(each.place)}: a subscription is left out, because {problem}: {each}"
                continue
            calls.append(self._grouping(one, each))
        if found.tasks is not None:
            calls.append(f".set_num_tasks({found.tasks})")
        for setting in self._settings_of_declarer(one):
            calls.append(f".add_configuration({quoted(setting.key)}, {shown(setting.value)})")
        line = f"    builder.{adding}({', '.join(arguments)})"
        if len(line) + sum(map(len, calls)) <= 110 or not calls:
            yield line + "".join(calls)
        else:
            yield "    ("
            yield f"        {line.strip()}"
            yield from (f"        {call}" for call in calls)
            yield "    )"

    def _problem(self, each: InputFound) -> str | None:
        """Return why a topology with this subscription could not be planned; None if it can be."""
        source = next(one for one in self.components if one.found.id == each.source)
        assert each.stream is not None
        stream = self._offered(source).get(each.stream)
        if stream is None:
            return "its source declares no such stream"
        if each.grouping == "direct" and not stream.direct:
            return "its stream is not declared as a direct one"
        if each.grouping in ("fields", "partial_key"):
            lacking = [name for name in each.fields or () if name not in (stream.fields or ())]
            if possible(each.fields or ()) != tuple(each.fields or ()):
                return "a field's name is empty or comes twice"
            if lacking:
                return f"the stream has no field {', '.join(map(repr, lacking))}"
        return None

    def _offered(self, source: ReadComponent) -> dict[str, StreamFound]:
        """Return the streams that a component of the skeleton declares."""
        if isinstance(source.draft.component, Function) or (source.stock is not None and source.stock.ours):
            known = {one.id: one for one in source.found.streams or ()}
            return known if source.found.streams is not None else self._streams(source)
        return self._streams(source)

    def _grouping(self, one: ReadComponent, each: Any) -> str:
        name = f"{each.grouping}_grouping"
        arguments = [quoted(each.source)]
        if each.grouping in ("fields", "partial_key"):
            self._use("stormspark.Fields")
            arguments.append(f"Fields({', '.join(map(quoted, each.fields))})")
        elif each.grouping == "custom":
            arguments.append(f"{self._custom_grouping(one, each)}()")
        if each.stream != "default":
            arguments.append(quoted(each.stream))
        return f".{name}({', '.join(arguments)})"

    def _custom_grouping(self, one: ReadComponent, each: Any) -> str:
        key = ("grouping", each.custom)
        if key not in self.made:
            self._use("stormspark.CustomStreamGrouping")
            name = self._free(class_name(each.custom, "Grouping"))
            self.made[key] = [_Class(name, one)]
            self.classes.append(
                f'class {name}(CustomStreamGrouping):\n    """Replaces {in_docstring(each.custom)}, used at {each.place}."""\n\n'
                f"    def prepare(self, context, source, target_tasks):\n"
                f'        raise NotImplementedError("port prepare of {each.custom}, used at {short(each.place)}")\n\n'
                f"    def choose_tasks(self, task, values):\n"
                f'        raise NotImplementedError("port chooseTasks of {each.custom}, used at {short(each.place)}")'
            )
        return self.made[key][0].name

    # -- objects ---------------------------------------------------------------------------------------------

    def _object(self, one: ReadComponent) -> str:
        """Return the Python expression that makes the component."""
        component = one.draft.component
        if isinstance(component, Function):
            return self._function(one, component)
        if one.stock is not None and (stock := self._stock(one)) is not None:
            return stock
        base = one.base
        if base is not None and base.style in ("shell-bolt", "shell-spout"):
            return self._shell(one, base.ours)
        name = self._class(one)
        arguments = self._arguments(one)
        calls = (
            "".join(window_calls(one.instance, one.own_conf, self._use))
            if base and base.style in ("windowed", "stateful-windowed")
            else ""
        )
        return f"{name}({arguments}){calls}"

    def _function(self, one: ReadComponent, function: Function) -> str:
        name = self._free(python_name(one.found.id or "function"))
        # A function without output fields emits nothing, so it needs no collector.
        parameters = "" if one.found.kind == "spout" else "tup, collector" if one.found.streams else "tup"
        self.functions.append(
            f'def {name}({parameters}):\n    """Replaces the lambda at {short(function.place)}."""\n'
            f'    raise NotImplementedError("port the lambda from {short(function.place)}")'
        )
        return name

    def _shell(self, one: ReadComponent, ours: str) -> str:
        name = self._use(ours)
        command = shell_command(one) or ["unknown-command"]
        streams = self._streams(one)
        if list(streams) == ["default"] and not streams["default"].direct:
            outputs = shown(list(streams["default"].fields or ()))
        else:
            self._use("stormspark.Fields")
            outputs = "{" + ", ".join(f"{quoted(s.id)}: {self._output(s)}" for s in streams.values()) + "}"
        return f"{name}({shown(command)}, {outputs})" if streams else f"{name}({shown(command)})"

    def _output(self, stream: StreamFound) -> str:
        if not stream.direct:
            return f"Fields({_names(stream)})"
        self._use("stormspark.api.StreamDeclaration")
        return f"StreamDeclaration({quoted(stream.id)}, Fields({_names(stream)}), direct=True)"

    def _stock(self, one: ReadComponent) -> str | None:
        """Return the Python expression that makes a stock component of Storm.

        Returns None if stormspark has no such component, or if too little is known about it.
        """
        assert one.stock is not None
        instance = one.instance
        assert instance is not None
        ours = one.stock.ours
        match instance.simple_type:
            case "TestWordSpout" | "TestWordCounter" | "TestGlobalCount" | "TestAggregatesCounter":
                return f"{self._use(ours)}()"
            case "FeederSpout" | "IdentityBolt":
                names = field_names(instance.arguments[0]) if instance.arguments else None
                if names is None:
                    return None
                self._use("stormspark.Fields")
                return f"{self._use(ours)}(Fields({', '.join(map(quoted, names))}))"
            case "FluxShellBolt" | "FluxShellSpout":
                return self._shell(one, ours)
            case "KafkaSpout":
                return kafka_spout(instance, ours, self._use)
            case "KafkaBolt":
                return kafka_bolt(instance, ours, self._use)
        return None

    # -- classes ---------------------------------------------------------------------------------------------

    def _class(self, one: ReadComponent) -> str:
        """Return the name of a component's Python class. Write the class, unless it was written before.

        Components of the same Java class share one Python class. A component with other streams or settings gets a subclass.
        """
        instance = one.instance
        java_class = instance.java_class if instance else None
        # The same unknown class may stand for a spout and for a bolt, such as that of Class.forName(...).
        key = one.found.kind, java_class or (instance.type if instance else one.found.id)
        for made in self.made.get(key, []):
            if self._declares(made.component) == self._declares(one):
                return made.name
        declared = self._declarations(one)
        first = self.made.setdefault(key, [])
        if first:
            name = self._free(f"{first[0].name}For{class_name(one.found.id or 'Another', 'Another')}")
            docstring = f'    """{first[0].name} with the streams and settings of {in_docstring(one.found.id or "another")}."""'
            self.classes.append("\n\n".join([f"class {name}({first[0].name}):\n{docstring}", *declared]))
        else:
            name = self._free(class_name(java_class.name if java_class else one.found.type_name, "Component"))
            style = one.base.style if one.base else "spout" if one.found.kind == "spout" else "bolt"
            bases = []
            if (
                one.facts is not None
                and one.facts.committer
                and one.base is not None
                and one.base.style == "batch"
            ):
                bases.append(self._use("stormspark.transactional.Committer"))
            bases.append(
                self._use(
                    one.base.ours if one.base else f"stormspark.{'Spout' if style == 'spout' else 'Bolt'}"
                )
            )
            where = java_class.place if java_class else one.found.place
            remark = f": {one.stock.remark}" if one.stock and one.stock.remark else ""
            source = f"{java_class.name if java_class else one.found.type_name} of {where}{remark}"
            docstring = f'    """Replaces {in_docstring(source)}."""'
            methods = [
                *self._constructor(one, java_class),
                *self._methods(style, one.facts, where),
                *declared,
            ]
            self.classes.append("\n\n".join([f"class {name}({', '.join(bases)}):\n{docstring}", *methods]))
        first.append(_Class(name, one))
        return name

    def _declares(self, one: ReadComponent) -> tuple[object, ...]:
        conf = tuple((setting.key, repr(setting.value)) for setting in self._settings_of_class(one))
        return tuple((s.id, s.fields, s.direct) for s in self._streams(one).values()), conf

    def _declarations(self, one: ReadComponent) -> list[str]:
        streams = self._streams(one)
        lines = []
        if streams:
            self._use("stormspark.Fields")
            declaring = ["    def declare_output_fields(self, declarer):"]
            for each in streams.values():
                direct = ", direct=True" if each.direct else ""
                if one.found.streams is None or each not in one.found.streams:
                    declaring.append(
                        f"        # {short(each.place)}: its fields can't be made out; here are those of subscribers, or 'value'"
                    )
                if each.id == "default":
                    declaring.append(f"        declarer.declare(Fields({_names(each)}){direct})")
                else:
                    declaring.append(
                        f"        declarer.declare_stream({quoted(each.id)}, Fields({_names(each)}){direct})"
                    )
            lines.append("\n".join(declaring))
        conf = {setting.key: setting.value for setting in self._settings_of_class(one)}
        if conf:
            method = ["    def get_component_configuration(self):", f"        return {shown(conf)}"]
            if one.base is not None and one.base.style in ("windowed", "stateful-windowed"):
                method[1] = f"        return {{**super().get_component_configuration(), **{shown(conf)}}}"
            lines.append("\n".join(method))
        return lines

    def _streams(self, one: ReadComponent) -> dict[str, StreamFound]:
        """Return the streams that a component declares. If these are not known, derive them from the subscriptions to it."""
        streams = {each.id: each for each in one.found.streams or ()}
        complete = one.found.streams is not None
        for component, each in self.read.found.inputs:
            if each.source != one.found.id or each.stream is None or not each.resolved:
                continue
            del component
            known = streams.get(each.stream)
            if known is None:
                streams[each.stream] = StreamFound(
                    each.stream, each.fields or ("value",), one.found.place, each.grouping == "direct"
                )
            elif known.fields is None or not complete:
                fields = tuple(dict.fromkeys([*(known.fields or ()), *(each.fields or ())])) or ("value",)
                if fields != ("value",) and known.fields == ("value",):
                    fields = each.fields or fields
                streams[each.stream] = StreamFound(each.stream, fields, known.place, known.direct)
        return {
            name: StreamFound(name, possible(each.fields or ("value",)), each.place, each.direct)
            if each.fields is None or possible(each.fields) != each.fields
            else each
            for name, each in streams.items()
        }

    def _constructor(self, one: ReadComponent, java_class: JavaClass | None) -> Iterator[str]:
        names = self._parameters(one, java_class)
        if not names:
            return
        constructor = (
            fitting(java_class.constructors, list(one.instance.arguments))
            if java_class and one.instance
            else None
        )
        where = f"  # {short(constructor.place)}" if constructor else ""
        yield "\n".join(
            [
                f"    def __init__(self, {', '.join(names)}):{where}",
                *(f"        self.{n} = {n}" for n in map(_bare, names)),
            ]
        )

    def _parameters(self, one: ReadComponent, java_class: JavaClass | None) -> list[str]:
        """Return the parameters of the longest constructor that the topology uses.

        A parameter gets a default if the topology also uses a shorter constructor that lacks the parameter. If the constructors
        do not begin with the same parameters, the only parameter is ``*arguments``.
        """
        if java_class is None or one.instance is None:
            return []
        used: list[JavaMethod] = []
        for each in self.components:
            if each.instance is not None and each.instance.java_class is java_class:
                constructor = fitting(java_class.constructors, list(each.instance.arguments))
                if constructor is not None and constructor not in used:
                    used.append(constructor)
        if not used:
            return []
        longest = max(used, key=lambda m: len(m.parameters))
        least = min(len(m.parameters) for m in used)
        if any(m.parameters != longest.parameters[: len(m.parameters)] for m in used):
            return ["*arguments"]
        names = []
        for position, parameter in enumerate(longest.parameters):
            name = python_name(parameter.name)
            names.append(f"*{name}" if parameter.rest else name if position < least else f"{name}=None")
        return names

    def _arguments(self, one: ReadComponent) -> str:
        return ", ".join(map(self._argument, self._passed(one)))

    def _passed(self, one: ReadComponent) -> Sequence[Value]:
        """Return the arguments with which the skeleton makes the component."""
        instance = one.instance
        if instance is None or instance.java_class is None:
            return ()
        return instance.arguments if self._parameters(one, instance.java_class) else ()

    def _is_known(self, argument: Value) -> bool:
        names = field_names(argument) if isinstance(argument, Instance) else None
        return names is not None or not isinstance(plain(argument), Unresolved)

    def _argument(self, value: Value) -> str:
        names = field_names(value)
        if isinstance(value, Instance) and names is not None:
            self._use("stormspark.Fields")
            return f"Fields({', '.join(map(quoted, possible(names)))})"
        known = plain(value)
        return "None" if isinstance(known, Unresolved) else shown(known)

    def _methods(self, style: str, facts: ClassFacts | None, where: Place) -> Iterator[str]:
        for name, parameters, java, needed in _METHODS[style]:
            method = facts.methods.get(java) if facts else None
            if method is None and not needed:
                continue
            place = method.place if method else where
            lines = [f"    def {name}(self{', ' if parameters else ''}{parameters}):"]
            emits = facts.emits if facts else ()
            shown_emits = [one for one in emits if method is not None and _inside(one.place, method)]
            # `execute`, `process` and `next_tuple` also list the emits of methods that the skeleton leaves out.
            if java in ("execute", "process", "nextTuple"):
                others = [
                    m for _, _, other, _ in _METHODS[style] if facts and (m := facts.methods.get(other))
                ]
                shown_emits += [one for one in emits if not any(_inside(one.place, m) for m in others)]
            lines += [f"        # {short(one.place)}: {one.described(style)}" for one in shown_emits]
            lines.append(f'        raise NotImplementedError("port {java} from {short(place)}")')
            yield "\n".join(lines)

    # -- configurations --------------------------------------------------------------------------------------

    def _conf(self) -> list[str]:
        lines = ["CONF = {"]
        for setting in self.read.found.settings:
            if setting.component:
                continue
            if isinstance(setting.value, Unresolved) or conf_problems({setting.key: setting.value}):
                lines.append(f"    # {short(setting.place)}: {setting.key} = {one_line(str(setting.value))}")
            else:
                lines.append(f"    {quoted(setting.key)}: {shown(setting.value)},")
        return [*lines, "}"] if len(lines) > 1 else ["CONF = {}"]

    def _settings_of_class(self, one: ReadComponent) -> list[Setting]:
        declared = {id(pair) for pair in one.draft.settings}
        return list(_usable(pair for pair in one.own_conf if id(pair) not in declared))

    def _settings_of_declarer(self, one: ReadComponent) -> list[Setting]:
        return list(_usable(one.draft.settings))

    # -- names -----------------------------------------------------------------------------------------------

    def _use(self, ours: str) -> str:
        module, _, name = ours.rpartition(".")
        self.imports.setdefault(module, set()).add(name)
        return name

    def _import_lines(self) -> Iterator[str]:
        for module in sorted(self.imports):
            yield f"from {module} import {', '.join(sorted(self.imports[module]))}"

    def _free(self, name: str) -> str:
        wanted, number = name, 2
        while name in self.taken:
            name, number = f"{wanted}{number}", number + 1
        self.taken.add(name)
        return name


def _usable(pairs: Any) -> Iterator[Setting]:
    for pair in pairs:
        key, value = text(pair.key), plain(pair.value)
        if key is None or isinstance(value, Unresolved) or conf_problems({key: value}):
            continue
        if key in SIZING_KEYS and key != "topology.tasks" and isinstance(value, int):
            value = float(value)
        yield Setting(key, value, pair.place)


def _inside(place: Place, method: JavaMethod) -> bool:
    body = method.node
    return place.file == method.place.file and body.start_point[0] < place.line <= body.end_point[0] + 1


def _names(stream: StreamFound) -> str:
    return ", ".join(map(quoted, stream.fields or ("value",)))


def _bare(parameter: str) -> str:
    return parameter.lstrip("*").partition("=")[0]
