"""Building a topology (A1-A10). `TopologyBuilder` collects declarations, and its `create_topology` makes a topology of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn, Self, TypeVar

from stormspark.api.arrow_components import ArrowBolt
from stormspark.api.async_components import AsyncBolt, AsyncSpout
from stormspark.api.async_rules import problem_with_coroutines
from stormspark.api.components import BasicBolt, Bolt, Component, Spout
from stormspark.api.declarers import BoltDeclarer, ComponentDeclaration, Declarer, SpoutDeclarer, described
from stormspark.api.fields import Fields
from stormspark.api.lambdas import bolt_of, spout_of
from stormspark.api.source import SourceSpout
from stormspark.api.topology_page import topology_html, topology_line
from stormspark.api.windows import WindowedBolt
from stormspark.api.worker_hook import WorkerHook, WorkerHookDeclaration
from stormspark.errors import InvalidTopologyError
from stormspark.java_names import methods_in_java
from stormspark.pickling import pickled
from stormspark.user_line import user_line

__all__ = ["Topology", "TopologyBuilder"]


@dataclass(frozen=True, repr=False)
class Topology:
    """A topology as it was declared: plain data, not yet validated.

    `stormspark.plan.plan_topology` makes a plan from it. A notebook shows its graph.

    >>> from stormspark.testing import TestWordCounter, TestWordSpout
    >>> builder = TopologyBuilder()
    >>> _ = builder.set_spout("words", TestWordSpout(), parallelism=2)
    >>> _ = builder.set_bolt("count", TestWordCounter()).shuffle_grouping("words")
    >>> builder.create_topology("word-count")
    <Topology 'word-count': spout words x2, bolt count x1>
    """

    name: str
    components: Mapping[str, ComponentDeclaration]
    conf: Mapping[str, Any] = field(default_factory=dict)
    worker_hooks: tuple[WorkerHookDeclaration, ...] = ()

    def __repr__(self) -> str:
        return topology_line(self.name, self.components)

    def _repr_html_(self) -> str:
        """Return what a notebook shows (`stormspark.api.topology_page`)."""
        return topology_html(self.name, self.components)


_D = TypeVar("_D", bound=Declarer)
_C = TypeVar("_C", bound=Component)


class TopologyBuilder:
    """A builder, which collects the spouts, bolts and worker hooks of a topology (A1).

    >>> from stormspark.testing import TestWordCounter, TestWordSpout
    >>> builder = TopologyBuilder()
    >>> _ = builder.set_spout("words", TestWordSpout(), parallelism=2)
    >>> _ = builder.set_bolt("count", TestWordCounter(), parallelism=4).fields_grouping("words", Fields("word"))
    >>> sorted(builder.create_topology("word-count").components)
    ['count', 'words']
    """

    def __init__(self) -> None:
        self._declarers: dict[str, Declarer] = {}
        self._worker_hooks: list[WorkerHookDeclaration] = []

    def set_spout(
        self,
        component_id: str,
        spout: Spout | SourceSpout | AsyncSpout | Callable[[], Any],
        parallelism: int = 1,
    ) -> SpoutDeclarer:
        """Add a spout or a function. The function takes no arguments, and returns the next value, or None if there is none (A1).

        Each value is emitted in a tuple without a message id. The tuple's only field is ``lambda``.

        Raises `InvalidTopologyError` for an id that is empty or in use, a parallelism below 1, an object that is not a spout
        (A2), a function that needs arguments, or coroutines in the wrong place.
        """
        where = user_line()
        if not isinstance(spout, Spout | SourceSpout | AsyncSpout):
            if isinstance(spout, type | Component) or not callable(spout):
                wanted = "an instance of Spout, SourceSpout or AsyncSpout, or a function"
                _refuse(where, "spout", component_id, wanted, spout)
            supplier = spout
            spout = _made(where, "spout", component_id, lambda: spout_of(supplier))
        _check_coroutines(where, "spout", component_id, spout)
        _check_names(where, "spout", component_id, spout)
        return self._added(
            SpoutDeclarer(component_id, spout, self._checked(component_id, parallelism, where), where)
        )

    def set_bolt(
        self,
        component_id: str,
        bolt: Bolt | BasicBolt | WindowedBolt | ArrowBolt | AsyncBolt | Callable[..., Any],
        parallelism: int = 1,
        fields: Fields | Iterable[str] = (),
    ) -> BoltDeclarer:
        """Add a bolt or a function: ``function(tup, collector)`` that emits ``fields``, or ``function(tup)`` (A1).

        A function's tuple is acked when the function returns, and its emits are anchored to the tuple, as in `BasicBolt`.

        Raises `InvalidTopologyError` for an id that is empty or in use, a parallelism below 1, an object that is not a bolt
        (A2), a function that takes other arguments, ``fields`` without a function, or coroutines in the wrong place.
        """
        where = user_line()
        if not isinstance(bolt, Bolt | BasicBolt | WindowedBolt | ArrowBolt | AsyncBolt):
            if isinstance(bolt, type | Component) or not callable(bolt):
                wanted = "an instance of Bolt, BasicBolt, WindowedBolt, ArrowBolt or AsyncBolt, or a function"
                _refuse(where, "bolt", component_id, wanted, bolt)
            function = bolt
            bolt = _made(where, "bolt", component_id, lambda: bolt_of(function, fields))
        elif tuple(fields):
            msg = f"{where}: bolt {component_id!r}: fields are for functions; {type(bolt).__qualname__} declares its own"
            raise InvalidTopologyError(msg)
        _check_coroutines(where, "bolt", component_id, bolt)
        _check_names(where, "bolt", component_id, bolt)
        return self._added(
            BoltDeclarer(component_id, bolt, self._checked(component_id, parallelism, where), where)
        )

    def add_worker_hook(self, hook: WorkerHook) -> Self:
        """Run ``hook`` in every worker, before the worker's tasks start and after they have ended (A5).

        Hooks start in the order in which they were added. Raises `InvalidTopologyError` for an object that is no `WorkerHook`,
        and `SerializationError` for a hook that can't be pickled.
        """
        where = user_line()
        if not isinstance(hook, WorkerHook):
            msg = f"{where}: a worker hook must be an instance of WorkerHook, got {described(hook)}"
            raise InvalidTopologyError(msg)
        name = type(hook).__qualname__
        bytes_ = pickled(
            hook, f"{where}: worker hook {name}", "make what it needs in start() instead of __init__"
        )
        self._worker_hooks.append(WorkerHookDeclaration(bytes_, name, where))
        return self

    def create_topology(self, name: str, conf: Mapping[str, Any] | None = None) -> Topology:
        """Pickle the components and freeze all declarations. ``conf`` is the topology's configuration (A20).

        Raises `SerializationError`, which names a component that can't be pickled (A2), and `InvalidTopologyError` for wrong
        declarations (A10) or a ``conf`` that is no mapping (A24). Only `stormspark.plan.plan_topology` checks whether the
        components fit together.
        """
        if conf is not None and not isinstance(conf, Mapping):
            msg = f"{user_line()}: the configuration of topology {name!r} must be a mapping, got {described(conf)}"
            raise InvalidTopologyError(msg)
        components = {d._id: d.declaration() for d in self._declarers.values()}
        return Topology(name, components, dict(conf or {}), tuple(self._worker_hooks))

    def _checked(self, component_id: str, parallelism: int, where: str) -> int:
        if not isinstance(component_id, str) or not component_id:
            msg = f"{where}: a component's id must be a string that is not empty, got {component_id!r}"
            raise InvalidTopologyError(msg)
        if component_id in self._declarers:
            first = self._declarers[component_id]._declared_at
            msg = (
                f"{where}: the id {component_id!r} is already in use, declared at {first}; choose another one"
            )
            raise InvalidTopologyError(msg)
        if isinstance(parallelism, bool) or not isinstance(parallelism, int) or parallelism < 1:
            msg = (
                f"{where}: Parallelism must be a positive whole number: {component_id!r} has {parallelism!r}"
            )
            raise InvalidTopologyError(msg)
        return parallelism

    def _added(self, declarer: _D) -> _D:
        self._declarers[declarer._id] = declarer
        return declarer


def _refuse(where: str, kind: str, component_id: str, wanted: str, got: object) -> NoReturn:
    other = ""
    if kind == "bolt" and isinstance(got, Spout | AsyncSpout):
        other = " (a spout is added by set_spout)"
    elif kind == "spout" and callable(getattr(got, "execute", None)):
        other = " (a bolt is added by set_bolt)"
    msg = f"{where}: {kind} {component_id!r} must be {wanted}, got {described(got)}{other}"
    raise InvalidTopologyError(msg)


def _check_coroutines(where: str, kind: str, component_id: str, component: Component) -> None:
    problem = problem_with_coroutines(component)
    if problem is not None:
        msg = f"{where}: {kind} {component_id!r}: {problem}"
        raise InvalidTopologyError(msg)


def _check_names(where: str, kind: str, component_id: str, component: Component) -> None:
    for java, name in methods_in_java(component):
        msg = (
            f"{where}: {kind} {component_id!r}: nothing calls the method {java} of {type(component).__qualname__}: did you mean "
            f"{name}?"
        )
        raise InvalidTopologyError(msg)


def _made(where: str, kind: str, component_id: str, make: Callable[[], _C]) -> _C:
    """Return the component that ``make`` makes from a user's function. An error's message begins with the user's line."""
    try:
        return make()
    except InvalidTopologyError as error:
        msg = f"{where}: {kind} {component_id!r}: {error}"
        raise InvalidTopologyError(msg) from error
