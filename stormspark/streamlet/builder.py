"""`Builder` makes the streamlets of sources, and builds a topology from all operations on them (G23, G24)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from stormspark.api import DEFAULT_STREAM, SourceSpout, Spout, Topology, TopologyBuilder, Tuple
from stormspark.api.declarers import described
from stormspark.errors import InvalidTopologyError
from stormspark.grouping import Grouping, ShuffleGrouping
from stormspark.streamlet.bolts import Operation, TupleBolt
from stormspark.streamlet.config import Config, delivery_semantics, for_components_alone, topology_conf
from stormspark.streamlet.coroutines import refuse_coroutine, refuse_coroutines_of
from stormspark.streamlet.operators import Generator
from stormspark.streamlet.sources import GeneratorSpout, StatefulGeneratorSpout, SupplierSpout
from stormspark.streamlet.stage import Input, Lowering, Made, Stage, in_order
from stormspark.streamlet.streamlet import Streamlet
from stormspark.user_line import declared_at, user_line

__all__ = ["Builder"]


class Builder:
    """Collects sources. The operations on their streamlets become the topology.

    >>> from stormspark.streamlet import ArrayLooper, WindowConfig
    >>> builder = Builder()
    >>> words = builder.new_source(ArrayLooper(["the storm", "the spark"])).flat_map(str.split)
    >>> counts = words.map(lambda word: (word, 1)).reduce_by_key_and_window(
    ...     WindowConfig.create_tumbling_window(10), lambda one, other: one + other
    ... )
    >>> _ = counts.log()
    >>> list(builder.build("word-count").components)
    ['generator-1', 'flatmap-1', 'map-1', 'reducebykeyandwindow-1', 'log-1']
    """

    def __init__(self) -> None:
        self._sources: list[Stage] = []

    def new_source(
        self,
        source: Generator | Callable[[], Any] | Spout | SourceSpout,
        element: Callable[[Tuple], Any] | None = None,
        *,
        stream: str = DEFAULT_STREAM,
    ) -> Streamlet:
        """Return a streamlet of a source's elements.

        The source may be a `Generator`, or a function without arguments, which returns the next element, or None if there is no
        element now. The source may also be any spout. Then ``element(tup)`` makes an element from each tuple of the spout's
        ``stream``. By default the element is the tuple's first value.

        Raises `InvalidTopologyError` for any other source.
        """
        where = user_line()
        if element is not None:
            refuse_coroutine(element, "new_source")
        if isinstance(source, Generator):
            refuse_coroutines_of(source, ("setup", "get"))
            stage = Stage("generator", where, _generator(source, Operation("generator", where)))
        elif isinstance(source, Spout | SourceSpout):
            return self._of_spout(source, element or _first_value, stream, where)
        elif callable(source) and not isinstance(source, type):
            refuse_coroutine(source, "new_source")
            stage = Stage("supplier", where, _supplier(source, Operation("supplier", where)))
        else:
            msg = f"{where}: a source must be a Generator, a function or a spout, got {described(source)}"
            raise InvalidTopologyError(msg)
        if element is not None:
            msg = f"{where}: element is only for the tuples of spouts; use .map(...)"
            raise InvalidTopologyError(msg)
        self._sources.append(stage)
        return Streamlet(stage)

    def build(self, name: str, config: Config | Mapping[str, Any] | None = None) -> Topology:
        """Return the topology. Run it with `stormspark.spark.submit`, `stormspark.local.submit` or ``stormspark run``.

        Raises `InvalidTopologyError` for two stages with the same name, and for a union or join with a streamlet of another
        builder. Raises `SerializationError` for a function that can't be pickled.
        """
        settings = config.api_config if isinstance(config, Config) else dict(config or {})
        stages = in_order(self._sources)
        _check_inputs(stages)
        lowering = Lowering(delivery_semantics(settings), _names(stages), for_components_alone(settings))
        builder = TopologyBuilder()
        for stage, component_id in lowering.names.items():
            component = stage.make(lowering)
            with declared_at(stage.where):
                if isinstance(component, Spout | SourceSpout):
                    builder.set_spout(component_id, component, stage.partitions)
                    continue
                declarer = builder.set_bolt(component_id, component, stage.partitions)
                for one in stage.inputs:
                    declarer.grouping(lowering.names[one.stage], one.grouping, one.stream)
        return builder.create_topology(
            name, topology_conf(settings, sum(stage.holds_secs for stage in stages))
        )

    def _of_spout(
        self, spout: Spout | SourceSpout, element: Callable[[Tuple], Any], stream: str, where: str
    ) -> Streamlet:
        source = Stage("spout", where, lambda _: spout, streams=None)
        operation = Operation("new_source", where)
        grouping: Grouping = ShuffleGrouping()
        elements = Stage(
            "elements", where, lambda _: TupleBolt(operation, element), (Input(source, stream, grouping),)
        )
        self._sources.append(source)
        return Streamlet(elements)


def _generator(generator: Generator, operation: Operation) -> Callable[[Lowering], Made]:
    def make(lowering: Lowering) -> Made:
        kind = StatefulGeneratorSpout if lowering.stateful else GeneratorSpout
        return kind(operation, generator, lowering.config, tracked=lowering.tracked)

    return make


def _supplier(function: Callable[[], Any], operation: Operation) -> Callable[[Lowering], Made]:
    return lambda lowering: SupplierSpout(operation, function, tracked=lowering.tracked)


def _first_value(tup: Tuple) -> Any:
    return tup.values[0]


def _names(stages: list[Stage]) -> dict[Stage, str]:
    """Return the name of each stage. It is the name that the user has set, or else the stage's prefix with a free number."""
    taken: dict[str, Stage] = {}
    for stage in stages:
        if stage.name is None:
            continue
        if (first := taken.setdefault(stage.name, stage)) is not stage:
            msg = f"{stage.where}: the name {stage.name!r} is already in use, at {first.where}; choose another one"
            raise InvalidTopologyError(msg)
    names = {}
    for stage in stages:
        name, number = stage.name, 1
        while name is None or (stage.name is None and name in taken):
            name, number = f"{stage.prefix}-{number}", number + 1
        taken[name] = stage
        names[stage] = name
    return names


def _check_inputs(stages: list[Stage]) -> None:
    known = set(stages)
    for stage in stages:
        for child in stage.children:
            if child not in known:
                msg = (
                    f"{child.where}: {child.prefix} has a streamlet that does not come from a source of this builder: make all "
                    f"sources with one Builder"
                )
                raise InvalidTopologyError(msg)
