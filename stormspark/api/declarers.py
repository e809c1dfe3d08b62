"""Declarers: `TopologyBuilder` returns one for each component.

A declarer collects the component's subscriptions and its configuration (A6, A9).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from stormspark.api.arrow_components import ArrowBolt, ArrowSpout
from stormspark.api.async_components import AsyncBolt, AsyncSpout
from stormspark.api.async_rules import misspelt_settings
from stormspark.api.batch_kind import kind_of_batch
from stormspark.api.component_configuration import ComponentConfiguration
from stormspark.api.components import BasicBolt, Bolt, Component, Spout, overrides
from stormspark.api.fields import Fields
from stormspark.api.source import SourceSpout
from stormspark.api.state import kind_of_state
from stormspark.api.streams import DEFAULT_STREAM, GlobalStreamId, OutputFieldsDeclarer, StreamDeclaration
from stormspark.api.windows import LATE_TUPLE_FIELD, WindowedBolt, WindowTime
from stormspark.config import merged
from stormspark.errors import InvalidTopologyError, SerializationError, StormsparkError
from stormspark.extras import first_missing, missing
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
from stormspark.pickling import pickled
from stormspark.user_line import raised_at, user_line
from stormspark.waiting_code import (
    Findings,
    WaitsValueError,
    blocking_call,
    declared_by,
    declares_that_it_computes,
    look_through,
)
from stormspark.windowing.settings import LATE_TUPLE_STREAM

__all__ = ["BoltDeclarer", "ComponentDeclaration", "Declarer", "SpoutDeclarer", "described"]


@dataclass(frozen=True)
class ComponentDeclaration:
    """A declared spout or bolt: its one pickled copy (A3), its streams, its subscriptions and its configuration."""

    id: str
    kind: str  # "spout" | "bolt"
    pickled: bytes = field(repr=False)
    type_name: str
    streams: Mapping[str, StreamDeclaration]
    inputs: Mapping[GlobalStreamId, Grouping]
    parallelism: int
    conf: Mapping[str, Any]
    declared_at: str
    #: The time that a windowed bolt uses; None for every other component.
    window_time: WindowTime | None = None
    #: The name of the class of a `SourceSpout`; empty for every other component.
    kind_of_source: str = ""
    #: ``storm`` or ``heron`` for a component that needs state, ``sink`` for a sink that also works without transactions; empty
    #: for every other component.
    kind_of_state: str = ""
    #: ``finish`` or ``commit`` for a bolt that is told of the end of a batch, ``part`` for a component that is told only of the
    #: beginning, and empty for every other component. See `stormspark.spi.batches`.
    kind_of_batch: str = ""
    #: Whether the component is a bolt that may hold tuples, and flushes them at the end of its input (`Bolt.end_of_input`).
    flushes: bool = False
    #: Why the component's code may wait (`stormspark.waiting_code`). Empty if the code only computes, or if the component runs on
    #: the worker's thread in any case.
    may_wait: str = ""
    #: If the component declares that its code only computes (``waits = False``), but the code uses something that waits: a
    #: description of this use. Otherwise empty.
    waits_all_the_same: str = ""
    #: Whether the component declares that its code only computes (``waits = False``).
    says_that_it_computes: bool = False
    #: Whether the component's tasks run on the worker's thread in any case.
    on_workers_thread: bool = False
    #: How many calls of an `AsyncBolt` may be under way at once in each task; 0 for every other component.
    capacity: int = 0
    #: If the component is async, but one of its coroutines calls something that blocks the event loop: a description of this
    #: call. Otherwise empty.
    blocks_the_loop: str = ""
    #: The attributes of an async component that are probably misspelt settings, each with the setting.
    misspelt: tuple[tuple[str, str], ...] = ()
    #: Whether the component takes and emits record batches, as an `ArrowBolt` or `ArrowSpout` does.
    vectorised: bool = False
    #: The line in which the user subscribed to each of the ``inputs``, as FILE:LINE. A front-end may leave lines out.
    subscribed_at: Mapping[GlobalStreamId, str] = field(default_factory=dict)

    @property
    def num_tasks(self) -> int | None:
        """The number of instances that the component's own configuration asks for, or None (A16)."""
        return self.conf.get("topology.tasks")


class Declarer(ComponentConfiguration):
    """The base class of the declarers of spouts and bolts (A9)."""

    def __init__(self, component_id: str, component: Component, parallelism: int, declared_at: str) -> None:
        super().__init__()
        self._id = component_id
        self._component = component
        self._kind = "spout" if isinstance(component, Spout | SourceSpout | AsyncSpout) else "bolt"
        self._place = f"{self._kind} {component_id!r}"
        self._parallelism = parallelism
        self._declared_at = declared_at
        self._inputs: dict[GlobalStreamId, Grouping] = {}
        self._subscribed_at: dict[GlobalStreamId, str] = {}

    def declaration(self) -> ComponentDeclaration:
        """Pickle and freeze the component. Raises `SerializationError` or `InvalidTopologyError`, which name the component."""
        component = self._component
        self._check_extras()
        windowed = component if isinstance(component, WindowedBolt) else None
        conf = merged(
            windowed.window_configuration if windowed else {},
            self._own_conf(),
            self._conf,
        )
        declarer = OutputFieldsDeclarer(self._id)
        self._ask("declare_output_fields", lambda: component.declare_output_fields(declarer))
        if windowed and (late := conf.get(LATE_TUPLE_STREAM)):
            self._ask(
                "the late tuple stream", lambda: declarer.declare_stream(late, Fields(LATE_TUPLE_FIELD))
            )
        on_workers_thread = _runs_on_workers_thread(component)
        waiting = self._looked_through(on_workers_thread=on_workers_thread)
        return ComponentDeclaration(
            id=self._id,
            kind=self._kind,
            pickled=pickled(
                component,
                f"{self._declared_at}: component {self._id!r} ({type(component).__qualname__})",
                "make what it needs in open() or prepare() instead of __init__ or the class",
            ),
            type_name=type(component).__qualname__,
            streams=dict(declarer.streams),
            inputs=dict(self._inputs),
            parallelism=self._parallelism,
            conf=conf,
            declared_at=self._declared_at,
            window_time=windowed.window_time if windowed else None,
            kind_of_source=type(component).__name__ if isinstance(component, SourceSpout) else "",
            kind_of_state=kind_of_state(component),
            kind_of_batch=kind_of_batch(component),
            flushes=windowed is not None or overrides(component, "end_of_input", Bolt, BasicBolt, AsyncBolt),
            may_wait=waiting.reason or "",
            waits_all_the_same=waiting.contradiction or "",
            says_that_it_computes=declares_that_it_computes(component),
            on_workers_thread=on_workers_thread,
            capacity=component.capacity if isinstance(component, AsyncBolt) else 0,
            blocks_the_loop=blocking_call(component) or ""
            if isinstance(component, AsyncBolt | AsyncSpout)
            else "",
            misspelt=misspelt_settings(component),
            vectorised=isinstance(component, ArrowBolt | ArrowSpout),
            subscribed_at=dict(self._subscribed_at),
        )

    def _check_extras(self) -> None:
        """Raise `UnsupportedEnvironmentError` if a package is not installed that the component's class needs."""
        lacking = first_missing(getattr(type(self._component), "_required_modules", ()))
        if lacking is not None:
            where = f"{self._declared_at}: " if self._declared_at else ""
            raise missing(lacking, f"{where}{self._place} ({type(self._component).__qualname__})")

    def _looked_through(self, *, on_workers_thread: bool) -> Findings:
        """Find out whether the component's code may wait.

        For a component that always runs on the worker's thread, only check the value of ``waits``.
        """
        try:
            if on_workers_thread:
                declared_by(self._component)
                return Findings(None)
            return look_through(self._component)
        except WaitsValueError as error:
            msg = f"{self._declared_at}: {self._place}: {error}"
            raise InvalidTopologyError(msg) from error

    def _own_conf(self) -> Mapping[str, Any]:
        given = self._ask("get_component_configuration", self._component.get_component_configuration)
        if given is not None and not isinstance(given, Mapping):
            msg = f"{self._declared_at}: {self._place}: get_component_configuration must return a mapping or None, got {given!r}"
            raise InvalidTopologyError(msg)
        return given or {}

    def _ask(self, method: str, ask: Callable[[], Any]) -> Any:
        """Call code of the user's component. If it raises, raise an error that begins with the line of the code that raised."""
        try:
            return ask()
        except Exception as error:
            reason = str(error) if isinstance(error, StormsparkError) else f"{type(error).__name__}: {error}"
            msg = f"{raised_at(error) or self._declared_at}: {self._place}: {method} raised {reason}"
            raise InvalidTopologyError(msg) from error


class SpoutDeclarer(Declarer):
    """The declarer that `TopologyBuilder.set_spout` returns."""

    if not TYPE_CHECKING:  # a type checker shall not think that any attribute exists

        def __getattr__(self, name: str) -> Any:
            """Raise an error for a name that does not exist, as Python does, but say why a spout has no groupings."""
            why = ""
            if name.endswith(("_grouping", "Grouping")):
                why = ": a spout gets no tuples, so it can't subscribe; add what subscribes by set_bolt"
            msg = f"{type(self).__name__!r} object has no attribute {name!r}{why}"
            raise AttributeError(msg, name=name, obj=self)


class BoltDeclarer(Declarer):
    """The declarer that `TopologyBuilder.set_bolt` returns; its methods subscribe the bolt to streams (A6).

    A second grouping on the same stream replaces the first, as in Storm (A8).
    """

    def shuffle_grouping(self, source: str, stream: str = DEFAULT_STREAM) -> Self:
        """Deal tuples out evenly to all tasks (D5)."""
        return self.grouping(source, ShuffleGrouping(), stream)

    def fields_grouping(self, source: str, fields: Fields, stream: str = DEFAULT_STREAM) -> Self:
        """Send tuples with equal values of ``fields`` to the same task (D1)."""
        names = tuple(fields if isinstance(fields, Fields) else Fields(fields))
        # Storm writes the global grouping as a fields grouping without fields (A7).
        return self.grouping(source, FieldsGrouping(names) if names else GlobalGrouping(), stream)

    def global_grouping(self, source: str, stream: str = DEFAULT_STREAM) -> Self:
        """Send all tuples to the task with the lowest id (D10)."""
        return self.grouping(source, GlobalGrouping(), stream)

    def all_grouping(self, source: str, stream: str = DEFAULT_STREAM) -> Self:
        """Send every tuple to every task (D9)."""
        return self.grouping(source, AllGrouping(), stream)

    def local_or_shuffle_grouping(self, source: str, stream: str = DEFAULT_STREAM) -> Self:
        """Deal tuples out evenly to the tasks in the sender's worker, or to all tasks if that worker has none (D7)."""
        return self.grouping(source, LocalOrShuffleGrouping(), stream)

    def local_first_grouping(self, source: str, stream: str = DEFAULT_STREAM) -> Self:
        """Deal tuples out evenly to the tasks in the sender's worker if these tasks keep up, else to all tasks (D7)."""
        return self.grouping(source, LocalFirstGrouping(), stream)

    def load_aware_shuffle_grouping(self, source: str, stream: str = DEFAULT_STREAM) -> Self:
        """Subscribe with Storm's default shuffle, which prefers tasks in the sender's worker, and tasks with less load (D6)."""
        return self.grouping(source, LoadAwareShuffleGrouping(), stream)

    def none_grouping(self, source: str, stream: str = DEFAULT_STREAM) -> Self:
        """Send each tuple to a task drawn at random (D8)."""
        return self.grouping(source, NoneGrouping(), stream)

    def partial_key_grouping(self, source: str, fields: Fields, stream: str = DEFAULT_STREAM) -> Self:
        """Send tuples with equal values of ``fields`` to two tasks, each tuple to the one that got fewer tuples so far (D12)."""
        return self.grouping(source, PartialKeyGrouping(Fields(fields)), stream)

    def custom_grouping(
        self, source: str, grouping: CustomStreamGrouping | Grouping, stream: str = DEFAULT_STREAM
    ) -> Self:
        """Let a rule of your own choose the tasks (D13).

        Raises `InvalidTopologyError` if ``grouping`` is neither a `CustomStreamGrouping` nor a `Grouping`, and
        `SerializationError` if it can't be pickled.
        """
        if isinstance(grouping, Grouping):  # as in Storm, where a PartialKeyGrouping is custom
            return self.grouping(source, grouping, stream)
        try:
            return self.grouping(source, CustomGrouping(grouping), stream)
        except (InvalidTopologyError, SerializationError) as error:
            msg = f"{user_line()}: bolt {self._id!r} subscribes to stream {stream!r} of {source!r}: {error}"
            raise type(error)(msg) from error

    def direct_grouping(self, source: str, stream: str = DEFAULT_STREAM) -> Self:
        """Let the producer choose the task, by ``emit_direct`` (D11)."""
        return self.grouping(source, DirectGrouping(), stream)

    def grouping(self, source: str, grouping: Grouping, stream: str = DEFAULT_STREAM) -> Self:
        """Subscribe with the given grouping.

        Raises `InvalidTopologyError` if a name is empty or no string, or if ``grouping`` is no `Grouping`. Raises
        `SerializationError` if the grouping can't be pickled.
        """
        where = user_line()
        for kind, name in (("component", source), ("stream", stream)):
            if not isinstance(name, str) or not name:
                msg = f"{where}: {self._place} subscribes to a {kind} without a name: {name!r}"
                raise InvalidTopologyError(msg)
        if not isinstance(grouping, Grouping):
            msg = f"{where}: {self._place}: a grouping must be a Grouping, got {described(grouping)}"
            raise InvalidTopologyError(msg)
        pickled(
            grouping,
            f"{where}: {self._place}: the {grouping.kind} grouping",
            "make what it needs where it is prepared",
        )
        key = GlobalStreamId(source, stream)
        self._inputs[key], self._subscribed_at[key] = grouping, where
        return self


def described(value: object) -> str:
    """Describe ``value`` for a message. If it is a class, say so, because passing a class is the usual mistake."""
    if isinstance(value, type):
        return f"the class {value.__qualname__}: did you forget the brackets, {value.__qualname__}()?"
    return f"{value!r} of type {type(value).__qualname__}"


def _runs_on_workers_thread(component: Component) -> bool:
    """Return whether a component always runs on the worker's thread, because it says so, or because its kind never blocks."""
    if isinstance(component, SourceSpout | AsyncSpout | AsyncBolt | ArrowBolt | ArrowSpout):
        return True
    if isinstance(component, Spout) and kind_of_batch(component):
        return True
    return getattr(type(component), "on_workers_thread", False) is True
