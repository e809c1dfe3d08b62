"""``petrel.topologybuilder``: Petrel's ``TopologyBuilder``, and the topology that its declarations become."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from stormspark.api import Component, Topology
from stormspark.api import TopologyBuilder as ApiBuilder
from stormspark.compat.petrel.emitter import EmitterBase
from stormspark.compat.petrel.storm import Spout
from stormspark.compat.petrel.tasks import BoltTask, SpoutTask, StreamDeclared
from stormspark.coroutines import problem_with_coroutine
from stormspark.errors import InvalidTopologyError
from stormspark.grouping import (
    AllGrouping,
    DirectGrouping,
    FieldsGrouping,
    GlobalGrouping,
    Grouping,
    LocalOrShuffleGrouping,
    NoneGrouping,
    ShuffleGrouping,
)
from stormspark.user_line import declared_at, user_line

__all__ = ["CALLED", "TopologyBuilder"]

#: The methods of users' classes that are called.
CALLED = ("initialize", "process", "nextTuple", "ack", "fail")


@dataclass
class _Declared:
    """A component as ``create`` has declared it."""

    component: Any
    is_spout: bool
    parallelism: int
    where: str
    #: For each stream that the component takes: its grouping, and the line of the subscription.
    inputs: dict[tuple[str, str], tuple[Grouping, str]] = field(default_factory=dict)
    streams: dict[str, StreamDeclared] = field(default_factory=dict)


class TopologyBuilder:
    """The builder that ``create(builder)`` gets.

    A component of stormspark may be declared in the place of one of Petrel's.
    """

    def __init__(self) -> None:
        self._declared: dict[str, _Declared] = {}

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of all components."""
        return tuple(self._declared)

    def setSpout(self, id: str, spout: Any, parallelism_hint: int | None = None) -> None:  # noqa: N802
        """Declare a spout."""
        self._declare(id, spout, parallelism_hint, is_spout=True)

    def setBolt(self, id: str, bolt: Any, parallelism_hint: int | None = None) -> _Inputs:  # noqa: N802
        """Declare a bolt. The methods of the result are its subscriptions."""
        return _Inputs(self._declare(id, bolt, parallelism_hint, is_spout=False))

    def addOutputStream(  # noqa: N802
        self,
        id: str,
        streamId: str,  # noqa: N803
        output_fields: Sequence[str],
        direct: bool = False,
    ) -> None:
        """Declare a further stream of a component."""
        self._declared[id].streams[streamId] = (tuple(output_fields), direct)

    def write(self, stream: Any) -> None:
        """Raise `InvalidTopologyError`: Storm's Thrift form of a topology has no use here."""
        msg = f"{user_line()}: TopologyBuilder.write makes a file for Storm: run the topology with `stormspark run` instead"
        raise InvalidTopologyError(msg)

    read = write

    def _declare(self, id: str, component: Any, parallelism: int | None, *, is_spout: bool) -> _Declared:
        where = user_line()
        if (before := self._declared.get(id)) is not None:
            kind = "Spout" if before.is_spout else "Bolt"
            msg = f"{kind} has already been declared for id {id}, at {before.where}"
            raise KeyError(msg)
        if isinstance(component, type) and issubclass(component, EmitterBase):
            component = component()  # forks of Petrel are given classes
        if not isinstance(component, EmitterBase | Component):
            kind = "spout" if is_spout else "bolt"
            what = f"the class {component.__name__}" if isinstance(component, type) else repr(component)[:80]
            msg = f"{where}: {kind} {id!r} must be an object of a subclass of petrel.emitter.{kind.capitalize()}, got {what}"
            raise InvalidTopologyError(msg)
        declared = _Declared(component, is_spout, 1 if parallelism is None else parallelism, where)
        self._declared[id] = declared
        return declared

    def lowered(
        self, name: str, conf: Mapping[str, Any] | None = None, parallelism: Mapping[str, int] | None = None
    ) -> Topology:
        """Return the topology ``name``. ``parallelism`` overrides what the builder was told, by component.

        Raises `InvalidTopologyError`; the message has the line of the declaration.
        """
        wanted = parallelism or {}
        builder = ApiBuilder()
        for id_, one in self._declared.items():
            one.parallelism = wanted.get(id_, one.parallelism)
            _add(builder, id_, one)
        built = builder.create_topology(name, conf)
        components = {
            id_: replace(declared, type_name=type(self._declared[id_].component).__name__)
            for id_, declared in built.components.items()
        }
        return replace(built, components=components)


class _Inputs:
    """What ``setBolt`` returns. Each method subscribes the bolt to a stream, and returns this object."""

    def __init__(self, bolt: _Declared) -> None:
        self._bolt = bolt

    def _take(self, component: str, stream: str, grouping: Grouping) -> _Inputs:
        self._bolt.inputs[component, stream] = (grouping, user_line())
        return self

    def fieldsGrouping(self, componentId: str, fields: Sequence[str], streamId: str = "default") -> _Inputs:  # noqa: N802, N803
        """Subscribe by fields (D1). Without fields, this is a global grouping (A7)."""
        names = [fields] if isinstance(fields, str) else list(fields)
        return self._take(componentId, streamId, FieldsGrouping(tuple(names)) if names else GlobalGrouping())


def _plain(grouping: Callable[[], Grouping]) -> Callable[..., _Inputs]:
    def subscribe(self: _Inputs, componentId: str, streamId: str = "default") -> _Inputs:  # noqa: N803
        return self._take(componentId, streamId, grouping())

    return subscribe


for _name, _grouping in {
    "allGrouping": AllGrouping,
    "globalGrouping": GlobalGrouping,
    "shuffleGrouping": ShuffleGrouping,
    "localOrShuffleGrouping": LocalOrShuffleGrouping,
    "noneGrouping": NoneGrouping,
    "directGrouping": DirectGrouping,
}.items():
    setattr(_Inputs, _name, _plain(_grouping))


def _add(builder: ApiBuilder, id_: str, one: _Declared) -> None:
    component = one.component
    with declared_at(one.where):
        if isinstance(component, EmitterBase):
            component = _adapter(id_, one)
        conf = one.component.getComponentConfiguration() if isinstance(one.component, EmitterBase) else None
        if one.is_spout:
            builder.set_spout(id_, component, one.parallelism).add_configurations(dict(conf or {}))
            return
        bolt = builder.set_bolt(id_, component, one.parallelism).add_configurations(dict(conf or {}))
    for (source, stream), (grouping, where) in one.inputs.items():
        with declared_at(where):
            bolt.grouping(source, grouping, stream)


def _adapter(id_: str, one: _Declared) -> Component:
    cls, kind = type(one.component), "spout" if one.is_spout else "bolt"
    if issubclass(cls, Spout) != one.is_spout:
        other = "setSpout" if not one.is_spout else "setBolt"
        msg = f"{one.where}: {kind} {id_!r} is a {cls.__name__}, which is no {kind}: declare it by {other}"
        raise InvalidTopologyError(msg)
    instead = f"put a stormspark.Async{kind.capitalize()} in its place"
    if (problem := problem_with_coroutine(cls, CALLED, instead)) is not None:
        msg = f"{one.where}: {kind} {id_!r}: {problem}"  # B20
        raise InvalidTopologyError(msg)
    fields = one.component.declareOutputFields()
    streams = dict(one.streams)
    if fields:
        streams["default"] = (tuple(fields), False)
    return (SpoutTask if one.is_spout else BoltTask)(cls, one.component.script, streams)
