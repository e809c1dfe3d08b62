"""Building a topology (A1-A10): the builder collects declarations, `create_topology` pickles and freezes
them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn, Self, TypeVar

from stormspark.api.component_configuration import ComponentConfiguration
from stormspark.api.components import BasicBolt, Bolt, Component, Spout
from stormspark.api.fields import Fields
from stormspark.api.lambdas import bolt_of, spout_of
from stormspark.api.pickling import pickled
from stormspark.api.streams import DEFAULT_STREAM, GlobalStreamId, OutputFieldsDeclarer, StreamDeclaration
from stormspark.api.user_line import raised_at, user_line
from stormspark.api.windows import LATE_TUPLE_FIELD, WindowedBolt, WindowTime
from stormspark.api.worker_hook import WorkerHook, WorkerHookDeclaration
from stormspark.config import merged
from stormspark.errors import InvalidTopologyError, SerializationError, StormsparkError
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
from stormspark.windowing.settings import LATE_TUPLE_STREAM

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
    conf: Mapping[str, Any]
    declared_at: str
    #: Of a windowed bolt; None for every other component.
    window_time: WindowTime | None = None
    #: Where the user wrote each of the ``inputs``, as FILE:LINE; a front-end may leave it out.
    subscribed_at: Mapping[GlobalStreamId, str] = field(default_factory=dict)

    @property
    def num_tasks(self) -> int | None:
        """The number of instances that its own configuration asks for, or None (A16)."""
        return self.conf.get("topology.tasks")


@dataclass(frozen=True)
class Topology:
    """A topology as written: plain data, not yet validated. `stormspark.plan.plan_topology` makes a plan of
    it.
    """

    name: str
    components: Mapping[str, ComponentDeclaration]
    conf: Mapping[str, Any] = field(default_factory=dict)
    worker_hooks: tuple[WorkerHookDeclaration, ...] = ()


class _Declarer(ComponentConfiguration):
    """What the declarers of spouts and bolts share (A9)."""

    def __init__(self, component_id: str, component: Component, parallelism: int, declared_at: str) -> None:
        super().__init__()
        self._id = component_id
        self._component = component
        self._kind = "spout" if isinstance(component, Spout) else "bolt"
        self._what = f"{self._kind} {component_id!r}"
        self._parallelism = parallelism
        self._declared_at = declared_at
        self._inputs: dict[GlobalStreamId, Grouping] = {}
        self._subscribed_at: dict[GlobalStreamId, str] = {}

    def declaration(self) -> ComponentDeclaration:
        """Pickle and freeze; raises `SerializationError` or `InvalidTopologyError` naming the component."""
        component = self._component
        windowed = component if isinstance(component, WindowedBolt) else None
        conf = merged(
            windowed.window_configuration if windowed else {},
            self._ask("get_component_configuration", component.get_component_configuration) or {},
            self._conf,
        )
        declarer = OutputFieldsDeclarer(self._id)
        self._ask("declare_output_fields", lambda: component.declare_output_fields(declarer))
        if windowed and (late := conf.get(LATE_TUPLE_STREAM)):
            declarer.declare_stream(late, Fields(LATE_TUPLE_FIELD))
        return ComponentDeclaration(
            id=self._id,
            kind=self._kind,
            pickled=pickled(
                component,
                f"{self._declared_at}: component {self._id!r} ({type(component).__qualname__})",
                "make what it needs in open() or prepare() instead of __init__",
            ),
            type_name=type(component).__qualname__,
            streams=dict(declarer.streams),
            inputs=dict(self._inputs),
            parallelism=self._parallelism,
            conf=conf,
            declared_at=self._declared_at,
            window_time=windowed.window_time if windowed else None,
            subscribed_at=dict(self._subscribed_at),
        )

    def _ask(self, method: str, ask: Callable[[], Any]) -> Any:
        """Call a method of the user's component; what it raises, and what it should not give, is told with its line."""
        try:
            given = ask()
        except Exception as error:
            what = str(error) if isinstance(error, StormsparkError) else f"{type(error).__name__}: {error}"
            msg = f"{raised_at(error) or self._declared_at}: {self._what}: {method} raised {what}"
            raise InvalidTopologyError(msg) from error
        if given is not None and not isinstance(given, Mapping):
            msg = f"{self._declared_at}: {self._what}: {method} must return a mapping or None, got {given!r}"
            raise InvalidTopologyError(msg)
        return given


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
            msg = f"{user_line()}: bolt {self._id!r} subscribes to stream {stream!r} of {source!r}: {error}"
            raise type(error)(msg) from error

    def direct_grouping(self, source: str, stream: str = DEFAULT_STREAM) -> Self:
        """The producer names the task by ``emit_direct`` (D11)."""
        return self.grouping(source, DirectGrouping(), stream)

    def grouping(self, source: str, grouping: Grouping, stream: str = DEFAULT_STREAM) -> Self:
        """Subscribe by any grouping."""
        where = user_line()
        for what, name in (("component", source), ("stream", stream)):
            if not isinstance(name, str) or not name:
                msg = f"{where}: {self._what} subscribes to a {what} without a name: {name!r} (A6)"
                raise InvalidTopologyError(msg)
        if not isinstance(grouping, Grouping):
            msg = f"{where}: {self._what}: a grouping must be a Grouping, got {_described(grouping)} (A6)"
            raise InvalidTopologyError(msg)
        pickled(
            grouping,
            f"{where}: {self._what}: the {grouping.kind} grouping",
            "make what it needs where it is prepared",
        )
        key = GlobalStreamId(source, stream)
        self._inputs[key], self._subscribed_at[key] = grouping, where
        return self


_D = TypeVar("_D", bound=_Declarer)
_C = TypeVar("_C", bound=Component)


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
        self._worker_hooks: list[WorkerHookDeclaration] = []

    def set_spout(
        self, component_id: str, spout: Spout | Callable[[], Any], parallelism: int = 1
    ) -> SpoutDeclarer:
        """Add a spout, or a function without arguments that gives the next value, or None for nothing now (A1).

        The function's values are emitted as (value,) on field ``lambda``, without a message id.

        Raises `InvalidTopologyError` for an id in use, a parallelism below 1, or no spout (A2).
        """
        where = user_line()
        if not isinstance(spout, Spout):
            if isinstance(spout, type | Component) or not callable(spout):
                _refuse(where, "spout", component_id, "an instance of Spout or a function", spout)
            supplier = spout
            spout = _made(where, "spout", component_id, lambda: spout_of(supplier))
        return self._added(
            SpoutDeclarer(component_id, spout, self._checked(component_id, parallelism, where), where)
        )

    def set_bolt(
        self,
        component_id: str,
        bolt: Bolt | BasicBolt | WindowedBolt | Callable[..., Any],
        parallelism: int = 1,
        fields: Fields | Iterable[str] = (),
    ) -> BoltDeclarer:
        """Add a bolt, or a function: ``function(tup, collector)`` that emits ``fields``, or ``function(tup)`` (A1).

        A function's tuples are acked when it returns, and what it emits is anchored to them, as in `BasicBolt`.

        Raises `InvalidTopologyError` for an id in use, a parallelism below 1, or no bolt (A2).
        """
        where = user_line()
        if not isinstance(bolt, Bolt | BasicBolt | WindowedBolt):
            if isinstance(bolt, type | Component) or not callable(bolt):
                wanted = "an instance of Bolt, BasicBolt or WindowedBolt, or a function"
                _refuse(where, "bolt", component_id, wanted, bolt)
            function = bolt
            bolt = _made(where, "bolt", component_id, lambda: bolt_of(function, fields))
        elif tuple(fields):
            msg = f"{where}: bolt {component_id!r}: fields are for functions; {type(bolt).__qualname__} declares its own"
            raise InvalidTopologyError(msg)
        return self._added(
            BoltDeclarer(component_id, bolt, self._checked(component_id, parallelism, where), where)
        )

    def add_worker_hook(self, hook: WorkerHook) -> Self:
        """Run ``hook`` in every worker, before its tasks start and after they have ended (A5).

        Hooks start in the order in which they were added. Raises `SerializationError` for one that can't be pickled.
        """
        where = user_line()
        if not isinstance(hook, WorkerHook):
            msg = f"{where}: a worker hook must be an instance of WorkerHook, got {_described(hook)} (A5)"
            raise InvalidTopologyError(msg)
        name = type(hook).__qualname__
        bytes_ = pickled(
            hook, f"{where}: worker hook {name}", "make what it needs in start() instead of __init__"
        )
        self._worker_hooks.append(WorkerHookDeclaration(bytes_, name, where))
        return self

    def create_topology(self, name: str, conf: Mapping[str, Any] | None = None) -> Topology:
        """Pickle the components and freeze all. ``conf`` is the topology's configuration (A20).

        Raises `SerializationError` naming a component that can't be pickled (A2).
        """
        components = {d._id: d.declaration() for d in self._declarers.values()}
        return Topology(name, components, dict(conf or {}), tuple(self._worker_hooks))

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


def _refuse(where: str, kind: str, component_id: str, wanted: str, got: object) -> NoReturn:
    other = " (a spout is added by set_spout)" if isinstance(got, Spout) else ""
    msg = f"{where}: {kind} {component_id!r} must be {wanted}, got {_described(got)}{other} (A1)"
    raise InvalidTopologyError(msg)


def _made(where: str, kind: str, component_id: str, make: Callable[[], _C]) -> _C:
    """A component made of a function; errors are told with the user's line."""
    try:
        return make()
    except InvalidTopologyError as error:
        msg = f"{where}: {kind} {component_id!r}: {error} (A1)"
        raise InvalidTopologyError(msg) from error
