"""Turns a Flux definition into a `Topology`, with the ordinary builder (K13-K16, K21)."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from stormspark.api import BoltDeclarer, Config, SpoutDeclarer, Topology, TopologyBuilder
from stormspark.config import conf_problems, merged
from stormspark.errors import InvalidTopologyError, StormsparkError
from stormspark.flux.definition import ObjectDefinition, Setting, Stream, TopologyDefinition, Vertex
from stormspark.flux.document import nearest
from stormspark.flux.eco import Resources, taken_out
from stormspark.flux.objects import Objects, spellings
from stormspark.multilang.component import ShellComponent
from stormspark.user_line import declared_at, raised_at

__all__ = ["lowered"]

_log = logging.getLogger("stormspark.flux")

_D = TypeVar("_D", SpoutDeclarer, BoltDeclarer)


def lowered(definition: TopologyDefinition) -> Topology:
    """Return the topology. Raises `InvalidTopologyError` with the line of the YAML that is wrong."""
    _refuse_halves(definition)
    objects = Objects({name: one.value for name, one in definition.class_names.items()})
    resources, conf = taken_out(_checked(definition.config, "config"))
    objects.make_components(definition.components)
    if definition.source is not None:
        return _of_source(definition, definition.source, objects, conf)
    assert definition.name is not None
    builder = TopologyBuilder()
    for vertex in definition.spouts.values():
        with declared_at(vertex.object.where):
            spout = objects.made(vertex.object, f"spout {vertex.object.id!r}")
            _check_script(spout, f"spout {vertex.object.id!r}", conf)
            declarer = builder.set_spout(vertex.object.id, spout, vertex.parallelism)
            _configure(declarer, vertex, resources)
    _add_bolts(builder, definition, objects, resources, conf)
    for hook in definition.worker_hooks.values():
        made = objects.made(hook, f"worker hook {hook.id!r}")
        with declared_at(hook.where):
            builder.add_worker_hook(made)
    return builder.create_topology(definition.name, conf)


def _refuse_halves(definition: TopologyDefinition) -> None:
    """Raise an error unless the file has spouts, or else a topology source without spouts, bolts and streams (K13).

    A file with spouts must also have a name, and none of its bolts may have the id of a spout (A2).
    """
    of_dsl = [
        key
        for key, present in (
            ("spouts", definition.spouts),
            ("bolts", definition.bolts),
            ("streams", definition.streams),
        )
        if present
    ]
    source = definition.source
    problem = None
    if source is not None and of_dsl:
        problem = (
            f"{source.where}: topologySource makes a whole topology, so the file can't have {' and '.join(of_dsl)} too: "
            f"remove one or the other"
        )
    elif source is None and "spouts" not in of_dsl:
        lacking = "spouts" if of_dsl else "neither spouts, bolts and streams nor a topologySource"
        problem = (
            f"{definition.file}: the file has {'no ' if of_dsl else ''}{lacking}, so there is nothing to run"
        )
    elif source is None and definition.name is None:
        problem = f"{definition.file}: the topology has no name: add the line `name: my-topology`"
    elif twice := next((id_ for id_ in definition.bolts if id_ in definition.spouts), None):
        spout, bolt = definition.spouts[twice].object, definition.bolts[twice].object
        problem = f"{bolt.where}: a spout has the id {twice!r} already, declared at {spout.where}: choose another id"
    if problem is not None:
        raise InvalidTopologyError(problem)


def _checked(config: Mapping[str, Setting], what: str) -> dict[str, Any]:
    for key, setting in config.items():
        if problems := conf_problems({key: setting.value}):
            msg = f"{setting.where}: {what}: {problems[0]}"
            raise InvalidTopologyError(msg)
    return {key: setting.value for key, setting in config.items()}


def _configure(declarer: _D, vertex: Vertex, resources: Mapping[str, Resources]) -> None:
    """Set the resources, the number of tasks and the configuration of a component, as the definition gives them (K15)."""
    one = vertex.object
    if asked := resources.get(one.id):
        asked.apply(declarer)
    if vertex.on_heap_mb is not None:  # without on-heap memory, Storm ignores the off-heap memory too
        declarer.set_memory_load(vertex.on_heap_mb, vertex.off_heap_mb)
    if vertex.cpu is not None:
        declarer.set_cpu_load(vertex.cpu)
    if vertex.num_tasks is not None:
        declarer.set_num_tasks(vertex.num_tasks)
    if vertex.config:
        declarer.add_configurations(_checked(vertex.config, f"config of {one.id!r}"))


def _add_bolts(
    builder: TopologyBuilder,
    definition: TopologyDefinition,
    objects: Objects,
    resources: Mapping[str, Resources],
    conf: Mapping[str, Any],
) -> None:
    bolts = {}
    listening = {stream.target for stream in definition.streams}
    for id_, vertex in definition.bolts.items():
        with declared_at(vertex.object.where):
            bolts[id_] = objects.made(vertex.object, f"bolt {id_!r}")
            if id_ in listening:
                _check_script(bolts[id_], f"bolt {id_!r}", conf)
    declarers: dict[str, BoltDeclarer] = {}
    subscribed: dict[tuple[str, str, str], Stream] = {}
    for stream in definition.streams:
        _refuse_unknown_ends(stream, definition)
        vertex = definition.bolts[stream.target]
        if stream.target not in declarers:
            with declared_at(vertex.object.where):
                declarer = builder.set_bolt(stream.target, bolts[stream.target], vertex.parallelism)
                _configure(declarer, vertex, resources)
            declarers[stream.target] = declarer
        key = (stream.source, stream.target, stream.grouping.stream or "default")
        if key in subscribed:
            _log.warning(
                "%s: this stream from %r to %r replaces the one at %s",  # A8
                *(stream.where, stream.source, stream.target, subscribed[key].where),
            )
        subscribed[key] = stream
        _subscribe(declarers[stream.target], stream, objects)
    for id_, vertex in definition.bolts.items():
        if id_ not in declarers:
            _log.warning(
                "%s: bolt %r is left out, because no stream leads to it (no stream with `to: %s`)",
                *(vertex.object.where, id_, id_),
            )


def _check_script(component: object, what: str, conf: Mapping[str, Any]) -> None:
    """Look for the script of a multilang component now, so that ``stormspark explain`` shows what is wrong with it (K20).

    It is only a warning if something is missing, because the workers may run on other hosts. If it is missing there too, the
    topology stops.
    """
    if isinstance(component, ShellComponent) and (problem := component.check_script(conf)) is not None:
        _log.warning("%s: its child can't start on this host: %s", what, problem)


def _refuse_unknown_ends(stream: Stream, definition: TopologyDefinition) -> None:
    ids = [*definition.spouts, *definition.bolts]
    if stream.target not in definition.bolts:
        problem = (
            f"a stream must end at a bolt, and {stream.target!r} is a spout"
            if stream.target in definition.spouts
            else f"there is no bolt {stream.target!r}: {nearest(stream.target, definition.bolts)}"
        )
        msg = f"{stream.target_where}: {problem}"
        raise InvalidTopologyError(msg)
    if stream.source not in ids:
        msg = f"{stream.source_where}: there is no spout or bolt {stream.source!r}: {nearest(stream.source, ids)}"
        raise InvalidTopologyError(msg)


def _subscribe(declarer: BoltDeclarer, stream: Stream, objects: Objects) -> None:
    grouping = stream.grouping
    source, id_ = stream.source, grouping.stream or "default"
    custom = None
    if grouping.custom_class is not None:
        custom = objects.made(grouping.custom_class, f"the grouping from {source!r} to {stream.target!r}")
    with declared_at(stream.where):
        match grouping.type:
            case "FIELDS":
                declarer.fields_grouping(source, grouping.args or (), id_)  # type: ignore[arg-type]
            case "PARTIAL_KEY":
                declarer.partial_key_grouping(source, grouping.args or (), id_)  # type: ignore[arg-type]
            case "CUSTOM":
                declarer.custom_grouping(source, custom, id_)  # type: ignore[arg-type]
            case kind:
                subscribe: Callable[[str, str], object] = getattr(declarer, f"{kind.lower()}_grouping")
                subscribe(source, id_)


def _of_source(
    definition: TopologyDefinition, source: ObjectDefinition, objects: Objects, conf: Mapping[str, Any]
) -> Topology:
    """Call a topology source, and return the topology that it makes (K21).

    The name in the YAML file replaces the topology's own name. The configuration in the file overrides the topology's own.
    """
    made = objects.made(source, "topologySource")
    place = f"{source.where}: topologySource: {source.class_name}"
    if not isinstance(made, Topology | TopologyBuilder):
        made = _call_source(made, definition.source_method, place, conf)
    name = definition.name
    if isinstance(made, TopologyBuilder):
        if name is None:
            msg = f"{definition.file}: {source.class_name} returns a builder, so the file needs a line `name: my-topology`"
            raise InvalidTopologyError(msg)
        made = made.create_topology(name)
    if not isinstance(made, Topology):
        msg = f"{place} must return a Topology or a TopologyBuilder, got {made!r:.80} of type {type(made).__name__}"
        raise InvalidTopologyError(msg)
    return replace(made, name=name or made.name, conf=merged(made.conf, conf))


def _call_source(source: object, method: str, place: str, conf: Mapping[str, Any]) -> object:
    for name in spellings(method):
        found = getattr(source, name, None)
        if callable(found):
            break
    else:
        others = [one for one in dir(source) if not one.startswith("_") and callable(getattr(source, one))]
        msg = f"{place} has no method {method}: {nearest(method, others)}"
        raise InvalidTopologyError(msg)
    try:
        inspect.signature(found).bind(conf)
    except TypeError:
        msg = f"{place}: {name} must take one argument, the configuration"
        raise InvalidTopologyError(msg) from None
    try:
        return found(Config(conf))
    except Exception as error:
        what = str(error) if isinstance(error, StormsparkError) else f"{type(error).__name__}: {error}"
        line = raised_at(error)
        msg = f"{place}: {name} raised {what}" + (f"\n  at {line}" if line else "")
        raise InvalidTopologyError(msg) from error
