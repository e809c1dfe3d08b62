"""Turns heronpy's specs into a topology of `stormspark.api`, which any engine can run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from stormspark.api import (
    BoltDeclarer,
    Component,
    ComponentDeclaration,
    OutputFieldsDeclarer,
    SourceSpout,
    SpoutDeclarer,
    Topology,
)
from stormspark.compat.heronpy.component_spec import HeronComponentSpec
from stormspark.compat.heronpy.configuration import engine_conf, reliability_mode, typed, with_defaults
from stormspark.compat.heronpy.constants import (
    TOPOLOGY_COMPONENT_PARALLELISM,
    TOPOLOGY_STMGRS,
    TopologyReliabilityMode,
)
from stormspark.compat.heronpy.delegates import Blueprint, load_class
from stormspark.compat.heronpy.groupings import engine_grouping, protocol_number
from stormspark.compat.heronpy.state import StatefulComponent
from stormspark.compat.heronpy.stream import Stream
from stormspark.compat.heronpy.tasks import HeronBolt, HeronSpout, StatefulHeronBolt, StatefulHeronSpout
from stormspark.config import for_component
from stormspark.coroutines import problem_with_coroutine

__all__ = ["CALLED", "lowered", "native_spec"]

#: The methods of users' classes that are called.
CALLED = (
    *("initialize", "process", "process_tick", "processWindow", "init_state", "pre_save"),
    *("next_tuple", "ack", "fail", "activate", "deactivate", "close"),
)


def lowered(name: str, specs: Sequence[HeronComponentSpec], own: Mapping[str, Any]) -> Topology:
    """Return the topology ``name`` with the components of ``specs``.

    ``own`` is the topology's own configuration, without the defaults, in Heron's form: its values are strings.

    If the user asks for n containers, the topology gets n workers (A45). If the user does not ask, planning chooses the number of
    workers. Heron would make one container, but with one process per instance.

    Raises `InvalidTopologyError`, TypeError or `SerializationError`. The message names the component and its line.
    """
    config = typed(with_defaults(own))
    conf = engine_conf(config, of_topology=True)
    if TOPOLOGY_STMGRS in own:
        conf.setdefault("topology.workers", config[TOPOLOGY_STMGRS])
    groupings = {spec.name: spec.groupings() for spec in specs}
    sources = {
        str(component): {(stream, source): protocol_number(one) for (source, stream), one in taken.items()}
        for component, taken in groupings.items()
    }
    configs = {
        str(spec.name): {**config, TOPOLOGY_COMPONENT_PARALLELISM: spec.parallelism, **typed(spec.config())}
        for spec in specs
    }
    stateful = reliability_mode(config) == TopologyReliabilityMode.EFFECTIVELY_ONCE
    components: dict[str, ComponentDeclaration] = {}
    for spec in specs:
        component = str(spec.name)
        own = for_component(engine_conf(typed(spec.config()), of_topology=False))
        made = _component(spec, configs[component], {**conf, **own}, sources, stateful)
        declarer = (SpoutDeclarer if spec.is_spout else BoltDeclarer)(
            component, made, spec.parallelism, spec.declared_at
        )
        if isinstance(declarer, BoltDeclarer):
            for (source, stream), grouping in groupings[component].items():
                place = f"{spec.place}: its input {source}:{stream}"
                declarer.grouping(
                    source,
                    engine_grouping(grouping, place, name, configs.get(source, config), sources),
                    stream,
                )
        declaration = declarer.declaration()
        components[component] = replace(
            declaration,
            conf={**declaration.conf, **own},
            type_name=spec.python_class_path.rpartition(".")[2],
            subscribed_at={},
        )
    return Topology(name, components, conf)


def _component(
    spec: HeronComponentSpec,
    config: Mapping[str, Any],
    declared: Mapping[str, Any],
    sources: Mapping[str, Mapping[tuple[str, str], int]],
    stateful: bool,
) -> Any:
    component = spec.component
    if isinstance(component, Component | SourceSpout):
        return component
    if component is None:
        component = load_class(spec.python_class_path, f"{spec.place}: the class")
    base = "AsyncSpout" if spec.is_spout else "AsyncBolt"
    problem = problem_with_coroutine(component, CALLED, f"use a stormspark.{base} in its place")
    if problem is not None:
        spec.refuse(problem)
    streams = spec.streams()
    blueprint = Blueprint(
        id=str(spec.name),
        component=component,
        widths={id: len(stream.fields) for id, stream in streams.items()},
        direct=frozenset(id for id, stream in streams.items() if stream.direct),
        config=config,
        declared=declared,
        sources=sources,
    )
    has_state = stateful and issubclass(component, StatefulComponent)
    kinds = (HeronSpout, StatefulHeronSpout) if spec.is_spout else (HeronBolt, StatefulHeronBolt)
    return kinds[has_state](blueprint, {id: tuple(stream.fields) for id, stream in streams.items()})


def native_spec(
    name: str, component: Any, par: int, inputs: Any, config: Any, *, is_spout: bool
) -> HeronComponentSpec:
    """Return a spec that puts a spout or bolt of stormspark into a topology of heronpy (W23)."""
    declarer = OutputFieldsDeclarer(name)
    component.declare_output_fields(declarer)
    outputs = [Stream(list(one.fields), id, one.direct) for id, one in declarer.streams.items()]
    path = f"{type(component).__module__}.{type(component).__qualname__}"
    return HeronComponentSpec(name, path, is_spout, par, inputs, outputs, config, component=component)
