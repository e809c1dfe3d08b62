"""Turns a topology of streamparse's DSL into a topology of `stormspark.api`. This is called lowering (A37)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from stormspark.api.topology import Topology, TopologyBuilder
from stormspark.compat.streamparse.bolt import BatchingBolt, Bolt
from stormspark.compat.streamparse.bolt_adapter import BatchingBoltAdapter, BoltAdapter
from stormspark.compat.streamparse.errors import SpecTypeError
from stormspark.compat.streamparse.groupings import ChosenGrouping
from stormspark.compat.streamparse.other_languages import java_component, shell_component
from stormspark.compat.streamparse.specs import ComponentSpec, JavaComponentSpec
from stormspark.compat.streamparse.spout import Spout
from stormspark.compat.streamparse.spout_adapter import SpoutAdapter
from stormspark.compat.streamparse.topology import TopologyType
from stormspark.coroutines import problem_with_coroutine
from stormspark.errors import InvalidTopologyError
from stormspark.grouping import (
    AllGrouping,
    CustomGrouping,
    DirectGrouping,
    FieldsGrouping,
    GlobalGrouping,
    Grouping,
    LocalOrShuffleGrouping,
    NoneGrouping,
    ShuffleGrouping,
)
from stormspark.user_line import declared_at

__all__ = ["CALLED", "lower", "runs_a_command"]

_GROUPINGS: Mapping[str, Callable[[], Grouping]] = {
    "shuffle": ShuffleGrouping,
    "all": AllGrouping,
    "none": NoneGrouping,
    "direct": DirectGrouping,
    "local_or_shuffle": LocalOrShuffleGrouping,
}
#: The methods of users' classes that are called, by kind of component.
CALLED = {
    "bolt": ("initialize", "process", "process_tick", "process_batch", "process_batches", "group_key"),
    "spout": ("initialize", "next_tuple", "ack", "fail", "activate", "deactivate"),
}


@dataclass(frozen=True)
class _Place:
    """The facts about a project that are needed to lower a component."""

    environment: str | None
    folder: Path | None


def lower(
    topology: TopologyType,
    name: str,
    conf: Mapping[str, Any] | None = None,
    *,
    environment: str | None = None,
    folder: Path | None = None,
) -> Topology:
    """Return the topology of a DSL class, under the name ``name``. The class's own ``config`` overrides ``conf``.

    If a spec has a parallelism for each environment, ``environment`` selects one. Shell components run in ``folder``.
    Raises `InvalidTopologyError` for a spec that stormspark can't run. The message has the spec's line, and says what to do
    instead.

    >>> from stormspark.compat.streamparse.storm import Spout
    >>> from stormspark.compat.streamparse.topology import Topology as Dsl
    >>> class Words(Spout):
    ...     outputs = ["word"]
    >>> class WordCount(Dsl):
    ...     words = Words.spec(par={"prod": 4, "beta": 1})
    >>> lower(WordCount, "wordcount", environment="prod").components["words"].parallelism
    4
    """
    builder = TopologyBuilder()
    place = _Place(environment, folder)
    for spec in topology.specs:
        _add(builder, spec, place)
    built = builder.create_topology(name, {**(conf or {}), **topology.config})
    specs = {str(spec.name): spec for spec in topology.specs}
    components = {
        id: replace(
            declared,
            type_name=specs[id].class_name if _in_python(specs[id]) else declared.type_name,
            declared_at=specs[id].declared_at,
            subscribed_at=dict.fromkeys(declared.inputs, specs[id].declared_at),
        )
        for id, declared in built.components.items()
    }
    return replace(built, components=components)


def _add(builder: TopologyBuilder, spec: ComponentSpec, place: _Place) -> None:
    name, par = str(spec.name), _parallelism(spec, place.environment)
    try:
        with declared_at(spec.declared_at):
            component = _component(spec, place)
        # Without this, errors would name the line of the command line that builds the topology.
        with declared_at(spec.declared_at):
            if spec.kind == "spout":
                builder.set_spout(name, component, par).add_configurations(spec.config)
                return
            bolt = builder.set_bolt(name, component, par).add_configurations(spec.config)
        for source, grouping in spec.inputs.items():
            bolt.grouping(source.componentId, _grouping(spec, source, grouping), source.streamId or "default")
    except InvalidTopologyError as error:
        if spec.declared_at in str(error):
            raise
        msg = f"{spec.declared_at}: {spec.kind} {name!r}: {error}"
        raise type(error)(msg) from error


def _in_python(spec: ComponentSpec) -> bool:
    return isinstance(spec.component_cls, type) and issubclass(spec.component_cls, Spout | Bolt)


def runs_a_command(spec: ComponentSpec) -> bool:
    """Return whether a spec is for a child process."""
    return not _in_python(spec) and spec.component_object.shell is not None


def _component(spec: ComponentSpec, place: _Place) -> Any:
    """Return the component that runs a spec."""
    cls = spec.component_cls
    if _in_python(spec):
        _refuse_coroutines(spec)
        adapter = BatchingBoltAdapter if issubclass(cls, BatchingBolt) else BoltAdapter
        return (adapter if spec.kind == "bolt" else SpoutAdapter)(cls, spec.outputs, early=spec.early)
    if not isinstance(cls, type):
        return cls  # a component of stormspark
    if spec.component_object.shell is not None:
        return shell_component(spec, place.folder)
    if isinstance(spec, JavaComponentSpec):
        return java_component(spec)
    raise spec.fail(SpecTypeError, f"{cls!r} is neither a spout nor a bolt")  # A36


def _refuse_coroutines(spec: ComponentSpec) -> None:
    base = f"Async{spec.kind.capitalize()}"
    instead = f"put a stormspark.{base} in its place, by native(...) of stormspark.compat.streamparse.native"
    problem = problem_with_coroutine(spec.component_cls, CALLED[spec.kind], instead)
    if problem is not None:
        raise spec.fail(InvalidTopologyError, f"{problem}")  # B20, C14


def _parallelism(spec: ComponentSpec, environment: str | None) -> int:
    if isinstance(spec.par, int):
        return spec.par
    if environment is not None and environment in spec.par:
        return spec.par[environment]
    asked = (
        "no environment is chosen"
        if environment is None
        else f"environment {environment!r} is not among them"
    )
    problem = f"par is {spec.par!r}, and {asked}: choose one of {', '.join(map(repr, spec.par))} by --environment"  # A31
    raise spec.fail(InvalidTopologyError, problem)


def _grouping(spec: ComponentSpec, source: Any, grouping: Any) -> Grouping:
    if isinstance(grouping, Grouping):
        return grouping
    if not isinstance(grouping, ChosenGrouping):
        return CustomGrouping(grouping)
    if grouping.fields is not None:
        return FieldsGrouping(tuple(grouping.fields)) if grouping.fields else GlobalGrouping()
    if grouping.kind in _GROUPINGS:
        return _GROUPINGS[grouping.kind]()
    java = (
        grouping.custom_object.full_class_name
        if grouping.custom_object is not None
        else "a serialized object"
    )
    problem = (
        f"takes stream {source.streamId!r} of {source.componentId!r} by a Java grouping ({java}), which Python can't run"
        f": put a grouping of stormspark in its place, an instance of a subclass of stormspark.CustomStreamGrouping or "  # A34
        f"stormspark.grouping.PartialKeyGrouping(...), as the value in inputs"
    )
    raise spec.fail(InvalidTopologyError, problem)
