"""Building a topology (A1-A10): the builder collects declarations, `create_topology` pickles and freezes
them.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self, TypeVar

import cloudpickle

from stormspark.api.components import BasicBolt, Bolt, Component, Spout
from stormspark.api.fields import Fields
from stormspark.api.streams import DEFAULT_STREAM, GlobalStreamId, OutputFieldsDeclarer, StreamDeclaration
from stormspark.config import merged
from stormspark.errors import InvalidTopologyError, SerializationError
from stormspark.grouping import (
    AllGrouping,
    CustomGrouping,
    CustomStreamGrouping,
    DirectGrouping,
    FieldsGrouping,
    GlobalGrouping,
    Grouping,
    LoadAwareShuffleGrouping,
    LocalFirstGrouping,
    LocalOrShuffleGrouping,
    NoneGrouping,
    PartialKeyGrouping,
    ShuffleGrouping,
)

__all__ = ["BoltDeclarer", "ComponentDeclaration", "SpoutDeclarer", "Topology", "TopologyBuilder"]


@dataclass(frozen=True)
class ComponentDeclaration:
    """A spout or bolt as declared: pickled once (A3), with what it emits, subscribes to and is configured
    with.
    """

    id: str
    kind: str  # "spout" | "bolt"
    pickled: bytes
    type_name: str
    streams: Mapping[str, StreamDeclaration]
    inputs: Mapping[GlobalStreamId, Grouping]
    parallelism: int
    num_tasks: int | None
    conf: Mapping[str, Any]
    declared_at: str


@dataclass(frozen=True)
class Topology:
    """A topology as written: plain data, not yet validated. `stormspark.plan.plan_topology` makes a plan of
    it.
    """

    name: str
    components: Mapping[str, ComponentDeclaration]
    conf: Mapping[str, Any] = field(default_factory=dict)


class _Declarer:
    """What the declarers of spouts and bolts share (A9)."""

    def __init__(self, component_id: str, component: Component, parallelism: int, declared_at: str) -> None:
        self._id = component_id
        self._component = component
        self._parallelism = parallelism
        self._num_tasks: int | None = None
        self._conf: dict[str, Any] = {}
        self._declared_at = declared_at
        self._inputs: dict[GlobalStreamId, Grouping] = {}

    def set_num_tasks(self, tasks: int) -> Self:
        """How many instances there are; fixed for the topology's life, by default its parallelism (A16)."""
        if isinstance(tasks, bool) or not isinstance(tasks, int) or tasks < 1:
            msg = f"{self._declared_at}: number of tasks of {self._id!r} must be a positive integer, got {tasks!r}"
            raise InvalidTopologyError(msg)
        self._num_tasks = tasks
        return self

    def add_configuration(self, key: str, value: Any) -> Self:
        """Set one value for this component alone; it wins over everything else (A20)."""
        return self.add_configurations({key: value})

    def add_configurations(self, conf: Mapping[str, Any]) -> Self:
        """Set values for this component alone (A9, A20)."""
        if "topology.kryo.register" in conf:
            msg = f"{self._declared_at}: {self._id!r}: topology.kryo.register can only be set for the topology (A9)"
            raise InvalidTopologyError(msg)
        self._conf.update(conf)
        return self

    def set_debug(self, debug: bool) -> Self:
        """Log every emit and ack of this component."""
        return self.add_configuration("topology.debug", debug)

    def set_max_task_parallelism(self, limit: int) -> Self:
        """Cap the number of tasks (A16)."""
        return self.add_configuration("topology.max.task.parallelism", limit)

    def set_max_spout_pending(self, limit: int) -> Self:
        """Cap the open trees of each task (B4)."""
        return self.add_configuration("topology.max.spout.pending", limit)

    def declaration(self) -> ComponentDeclaration:
        """Pickle and freeze; raises `SerializationError` or `InvalidTopologyError` naming the component."""
        component = self._component
        declarer = OutputFieldsDeclarer(self._id)
        component.declare_output_fields(declarer)
        return ComponentDeclaration(
            id=self._id,
            kind="spout" if isinstance(component, Spout) else "bolt",
            pickled=_pickled(self._id, component, self._declared_at),
            type_name=type(component).__qualname__,
            streams=dict(declarer.streams),
            inputs=dict(self._inputs),
            parallelism=self._parallelism,
            num_tasks=self._num_tasks,
            conf=merged(component.get_component_configuration() or {}, self._conf),
            declared_at=self._declared_at,
        )


class SpoutDeclarer(_Declarer):
    """Returned by `TopologyBuilder.set_spout`."""


class BoltDeclarer(_Declarer):
    """Returned by `TopologyBuilder.set_bolt`: says what the bolt subscribes to (A6).

    A second grouping on the same stream replaces the first, as in Storm (A8).
    """

    def shuffle_grouping(self, source: str, stream: str = DEFAULT_STREAM) -> Self:
        """Tuples are dealt out evenly (D5)."""
        return self.grouping(source, ShuffleGrouping(), stream)

    def fields_grouping(self, source: str, fields: Fields, stream: str = DEFAULT_STREAM) -> Self:
        """Equal values of ``fields`` go to the same task (D1)."""
        names = tuple(fields if isinstance(fields, Fields) else Fields(fields))
        # An empty list of fields is how Storm spells the global grouping (A7).
        return self.grouping(source, FieldsGrouping(names) if names else GlobalGrouping(), stream)

    def global_grouping(self, source: str, stream: str = DEFAULT_STREAM) -> Self:
        """All tuples go to the task with the lowest id (D10)."""
        return self.grouping(source, GlobalGrouping(), stream)

    def all_grouping(self, source: str, stream: str = DEFAULT_STREAM) -> Self:
        """Every task gets every tuple (D9)."""
        return self.grouping(source, AllGrouping(), stream)

    def local_or_shuffle_grouping(self, source: str, stream: str = DEFAULT_STREAM) -> Self:
        """Tasks in the sender's worker if there are any, else all; dealt out evenly (D7)."""
        return self.grouping(source, LocalOrShuffleGrouping(), stream)

    def local_first_grouping(self, source: str, stream: str = DEFAULT_STREAM) -> Self:
        """Tasks in the sender's worker while they keep up, else all; dealt out evenly (D7)."""
        return self.grouping(source, LocalFirstGrouping(), stream)

    def load_aware_shuffle_grouping(self, source: str, stream: str = DEFAULT_STREAM) -> Self:
        """Storm's default shuffle: prefers tasks in the sender's worker, and those with less load (D6)."""
        return self.grouping(source, LoadAwareShuffleGrouping(), stream)

    def none_grouping(self, source: str, stream: str = DEFAULT_STREAM) -> Self:
        """Each tuple goes to a task drawn at random (D8)."""
        return self.grouping(source, NoneGrouping(), stream)

    def partial_key_grouping(self, source: str, fields: Fields, stream: str = DEFAULT_STREAM) -> Self:
        """Equal values of ``fields`` go to one of two tasks, the one that got fewer tuples so far (D12)."""
        return self.grouping(source, PartialKeyGrouping(Fields(fields)), stream)

    def custom_grouping(
        self, source: str, grouping: CustomStreamGrouping | Grouping, stream: str = DEFAULT_STREAM
    ) -> Self:
        """The tasks are named by a rule of your own (D13).

        Raises `InvalidTopologyError` for what is no such rule, `SerializationError` for one that can't be pickled.
        """
        if isinstance(grouping, Grouping):  # as in Storm, where a PartialKeyGrouping is a custom one
            return self.grouping(source, grouping, stream)
        try:
            return self.grouping(source, CustomGrouping(grouping), stream)
        except (InvalidTopologyError, SerializationError) as error:
            msg = f"{_caller()}: bolt {self._id!r} subscribes to stream {stream!r} of {source!r}: {error}"
            raise type(error)(msg) from error

    def direct_grouping(self, source: str, stream: str = DEFAULT_STREAM) -> Self:
        """The producer names the task by ``emit_direct`` (D11)."""
        return self.grouping(source, DirectGrouping(), stream)

    def grouping(self, source: str, grouping: Grouping, stream: str = DEFAULT_STREAM) -> Self:
        """Subscribe by any grouping."""
        self._inputs[GlobalStreamId(source, stream)] = grouping
        return self


_D = TypeVar("_D", bound=_Declarer)


class TopologyBuilder:
    """Collects spouts and bolts (A1).

    >>> from stormspark.testing import TestWordCounter, TestWordSpout
    >>> builder = TopologyBuilder()
    >>> _ = builder.set_spout("words", TestWordSpout(), parallelism=2)
    >>> _ = builder.set_bolt("count", TestWordCounter(), parallelism=4).fields_grouping("words", Fields("word"))
    >>> sorted(builder.create_topology("word-count").components)
    ['count', 'words']
    """

    def __init__(self) -> None:
        self._declarers: dict[str, _Declarer] = {}

    def set_spout(self, component_id: str, spout: Spout, parallelism: int = 1) -> SpoutDeclarer:
        """Add a spout. Raises `InvalidTopologyError` for an id in use, a parallelism below 1, or no spout
        (A2).
        """
        where = _caller()
        if not isinstance(spout, Spout):
            msg = f"{where}: spout {component_id!r} must be an instance of Spout, got {_described(spout)}"
            raise InvalidTopologyError(msg)
        return self._added(
            SpoutDeclarer(component_id, spout, self._checked(component_id, parallelism, where), where)
        )

    def set_bolt(self, component_id: str, bolt: Bolt | BasicBolt, parallelism: int = 1) -> BoltDeclarer:
        """Add a bolt. Raises `InvalidTopologyError` for an id in use, a parallelism below 1, or no bolt (A2)."""
        where = _caller()
        if not isinstance(bolt, Bolt | BasicBolt):
            msg = f"{where}: bolt {component_id!r} must be an instance of Bolt or BasicBolt, got {_described(bolt)}"
            raise InvalidTopologyError(msg)
        return self._added(
            BoltDeclarer(component_id, bolt, self._checked(component_id, parallelism, where), where)
        )

    def create_topology(self, name: str, conf: Mapping[str, Any] | None = None) -> Topology:
        """Pickle the components and freeze all. ``conf`` is the topology's configuration (A20).

        Raises `SerializationError` naming a component that can't be pickled (A2).
        """
        return Topology(name, {d._id: d.declaration() for d in self._declarers.values()}, dict(conf or {}))

    def _checked(self, component_id: str, parallelism: int, where: str) -> int:
        if not isinstance(component_id, str) or not component_id:
            msg = f"{where}: a component's id must be a text that is not empty, got {component_id!r}"
            raise InvalidTopologyError(msg)
        if component_id in self._declarers:
            first = self._declarers[component_id]._declared_at
            msg = f"{where}: the id {component_id!r} is in use already, declared at {first} (A2); choose another one"
            raise InvalidTopologyError(msg)
        if isinstance(parallelism, bool) or not isinstance(parallelism, int) or parallelism < 1:
            msg = f"{where}: Parallelism must be positive (A2): {component_id!r} has {parallelism!r}"
            raise InvalidTopologyError(msg)
        return parallelism

    def _added(self, declarer: _D) -> _D:
        self._declarers[declarer._id] = declarer
        return declarer


def _described(value: object) -> str:
    """Tell a class from an instance: passing the class is the usual mistake."""
    if isinstance(value, type):
        return f"the class {value.__qualname__}: did you forget the brackets, {value.__qualname__}()?"
    return f"{value!r} of type {type(value).__qualname__}"


def _caller() -> str:
    """FILE:LINE of the code that called into this module."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename == __file__:
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def _pickled(component_id: str, component: Component, where: str) -> bytes:
    try:
        pickled: bytes = cloudpickle.dumps(component)
    except Exception as error:
        culprits = [
            name for name, value in getattr(component, "__dict__", {}).items() if not _can_pickle(value)
        ]
        attributes = f"attribute {', '.join(map(repr, culprits))} of " if culprits else ""
        msg = (
            f"{where}: {attributes}component {component_id!r} ({type(component).__qualname__}) can't be pickled: {error}. "
            f"Create it in open() or prepare() instead of __init__ (A2, A3)"
        )
        raise SerializationError(msg) from error
    return pickled


def _can_pickle(value: object) -> bool:
    try:
        cloudpickle.dumps(value)
    except Exception:
        return False
    return True
