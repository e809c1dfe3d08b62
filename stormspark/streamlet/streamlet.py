"""`Streamlet` is a stream of elements, with the operations on it (G23, G24)."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Self

from stormspark.api import GlobalStreamId
from stormspark.api.declarers import described
from stormspark.errors import InvalidTopologyError, StormsparkError
from stormspark.grouping import CustomGrouping, CustomStreamGrouping, Grouping, ShuffleGrouping
from stormspark.streamlet.bolts import (
    OUTPUT,
    ConsumeBolt,
    FilterBolt,
    FlatMapBolt,
    LogBolt,
    MapBolt,
    Operation,
    PassBolt,
    ReduceByKeyBolt,
    SplitBolt,
    StatefulReduceByKeyBolt,
    StatefulTransformBolt,
    TransformBolt,
)
from stormspark.streamlet.coroutines import refuse_coroutine, refuse_coroutines_of
from stormspark.streamlet.keys import ByFunction, ByKey
from stormspark.streamlet.operators import TransformOperator
from stormspark.streamlet.stage import Input, Lowering, Made, Stage
from stormspark.streamlet.window import KeyValue
from stormspark.streamlet.window_config import WindowConfig
from stormspark.streamlet.windowed import (
    Join,
    JoinType,
    KeyedReduction,
    Reduction,
    WindowBolt,
    WindowOperation,
)
from stormspark.user_line import user_line

__all__ = ["Streamlet"]


class Streamlet:
    """A stream of elements. Elements may be any objects that can be pickled.

    `Builder.new_source` returns the first streamlet, and each operation on a streamlet returns a new one. A streamlet's
    elements come from one *stage* of the topology: a component. By default a stage has as many partitions (tasks) as the
    streamlet whose method was called. The stage's default name begins with the name of the operation, as in ``map-1``.
    `set_num_partitions` and `set_name` change the number and the name. Functions may be lambdas. Operations raise
    `InvalidTopologyError` for impossible arguments.

    >>> from stormspark.streamlet import Builder
    >>> builder = Builder()
    >>> words = builder.new_source(lambda: "one line").flat_map(str.split).set_name("words")
    >>> _ = words.filter(lambda word: word != "one").consume(print)
    >>> list(builder.build("demo").components)
    ['supplier-1', 'words', 'filter-1', 'consume-1']
    """

    def __init__(self, stage: Stage, stream: str = OUTPUT) -> None:
        self._stage = stage
        self._stream = stream

    # -- names and partitions --------------------------------------------------------------------------------

    def set_name(self, name: str) -> Self:
        """Name the stage. The stage's component has this name in statistics, logs and errors."""
        if not isinstance(name, str) or not name:
            msg = f"{user_line()}: the name of a streamlet must be a string that is not empty, got {name!r}"
            raise InvalidTopologyError(msg)
        self._stage.name = name
        return self

    def get_name(self) -> str | None:
        """Return the name that was set with `set_name`; None if there is none."""
        return self._stage.name

    def set_num_partitions(self, num_partitions: int) -> Self:
        """Set the number of tasks of the stage. Later operations on this streamlet get the same number by default."""
        self._stage.partitions = _partitions(num_partitions)
        return self

    def get_num_partitions(self) -> int:
        """Return the number of tasks of the stage."""
        return self._stage.partitions

    # -- element by element ----------------------------------------------------------------------------------

    def map(self, map_function: Callable[[Any], Any]) -> Streamlet:
        """Return a streamlet of ``map_function(element)`` for each element."""
        _check(map_function, "map", 1)
        return self._then("map", lambda operation: MapBolt(operation, map_function))

    def flat_map(self, flatmap_function: Callable[[Any], Any]) -> Streamlet:
        """Return a streamlet of the elements in ``flatmap_function(element)``, for each element.

        If a result can't be iterated, it is one element itself.
        """
        _check(flatmap_function, "flat_map", 1)
        return self._then("flat_map", lambda operation: FlatMapBolt(operation, flatmap_function))

    def filter(self, filter_function: Callable[[Any], Any]) -> Streamlet:
        """Return a streamlet of the elements for which ``filter_function(element)`` is true."""
        _check(filter_function, "filter", 1)
        return self._then("filter", lambda operation: FilterBolt(operation, filter_function))

    def transform(self, transform_operator: TransformOperator) -> Streamlet:
        """Return a streamlet of the elements that the operator emits. Each partition has its own copy of the operator."""
        if not isinstance(transform_operator, TransformOperator):
            msg = f"{user_line()}: transform takes a TransformOperator, got {described(transform_operator)}"
            raise InvalidTopologyError(msg)
        refuse_coroutines_of(transform_operator, ("setup", "transform"))

        def make(operation: Operation, lowering: Lowering) -> Made:
            kind = StatefulTransformBolt if lowering.stateful else TransformBolt
            return kind(operation, transform_operator, lowering.config)

        return Streamlet(self._child("transform", make))

    def consume(self, consume_function: Callable[[Any], Any]) -> None:
        """Call ``consume_function(element)`` for each element. This ends the chain of operations."""
        _check(consume_function, "consume", 1)
        self._then("consume", lambda operation: ConsumeBolt(operation, consume_function))

    def log(self) -> None:
        """Write each element to the log of its task. This ends the chain of operations."""
        self._then("log", LogBolt)

    # -- partitions ------------------------------------------------------------------------------------------

    def repartition(
        self,
        num_partitions: int,
        repartition_function: Callable[[Any, int], int | Iterable[int]] | None = None,
    ) -> Streamlet:
        """Return a streamlet of the same elements in ``num_partitions`` partitions.

        ``repartition_function(element, num_partitions)`` returns the index of a partition, from 0, or the indexes of several
        partitions. Without this function, elements are spread evenly over the partitions.
        """
        grouping: Grouping | CustomStreamGrouping = ShuffleGrouping()
        if repartition_function is not None:
            _check(repartition_function, "repartition", 2)
            grouping = ByFunction(repartition_function)
        into = _partitions(num_partitions)
        return Streamlet(
            self._child("repartition", lambda operation, _: PassBolt(operation), grouping, partitions=into)
        )

    def clone(self, num_clones: int) -> list[Streamlet]:
        """Return ``num_clones`` streamlets, each with all elements."""
        return [self.repartition(self.get_num_partitions()) for _ in range(_partitions(num_clones))]

    def union(self, other_streamlet: Streamlet) -> Streamlet:
        """Return a streamlet of the elements of both streamlets."""
        other = self._other(other_streamlet, "union")
        also = Input(other._stage, other._stream, ShuffleGrouping())
        return Streamlet(self._child("union", lambda operation, _: PassBolt(operation), also=(also,)))

    def split(self, predicates: Mapping[str, Callable[[Any], Any]]) -> Streamlet:
        """Return a streamlet with one named stream per predicate. Each stream has the elements for which its predicate is true.

        `with_stream` selects one of the streams. If it is not called, operations use the first stream.
        """
        if not isinstance(predicates, Mapping) or not predicates:
            msg = (
                f"{user_line()}: split takes a mapping of names of streams to predicates, got {predicates!r}"
            )
            raise InvalidTopologyError(msg)
        for predicate in predicates.values():
            _check(predicate, "split", 1)
        child = self._child("split", lambda operation, _: SplitBolt(operation, predicates))
        child.streams = tuple(predicates)
        return Streamlet(child, next(iter(predicates)))

    def with_stream(self, stream_id: str) -> Streamlet:
        """Return one of the streams of `split`, as a streamlet."""
        streams = self._stage.streams
        if streams is not None and stream_id not in streams:
            msg = f"{user_line()}: there is no stream {stream_id!r} here; the streams are {', '.join(map(repr, streams))}"
            raise InvalidTopologyError(msg)
        return Streamlet(self._stage, stream_id)

    # -- keys ------------------------------------------------------------------------------------------------

    def key_by(
        self, key_extractor: Callable[[Any], Any], value_extractor: Callable[[Any], Any] | None = None
    ) -> Streamlet:
        """Return a streamlet with one `KeyValue` for each element: the element's key and value (G23).

        Without ``value_extractor``, the value is the element itself.
        """
        return self._keyed("key_by", key_extractor, value_extractor)

    def reduce_by_key(
        self,
        key_extractor: Callable[[Any], Any],
        value_extractor: Callable[[Any], Any] | None,
        reduce_function: Callable[[Any, Any], Any],
    ) -> Streamlet:
        """Return a streamlet with one `KeyValue` for each element: the element's key, and the key's reduced value so far (G23).

        Reduced values stay in memory as long as the task lives. With EFFECTIVELY_ONCE they are state, and outlive the task.
        """
        _check(reduce_function, "reduce_by_key", 2)
        pairs = self._keyed("reduce_by_key", key_extractor, value_extractor)

        def make(operation: Operation, lowering: Lowering) -> Made:
            kind = StatefulReduceByKeyBolt if lowering.stateful else ReduceByKeyBolt
            return kind(operation, reduce_function)

        return Streamlet(pairs._child("reduce_by_key", make, ByKey()))

    def count_by_key(self, key_extractor: Callable[[Any], Any]) -> Streamlet:
        """Return a streamlet with one `KeyValue` for each element: the element's key, and the key's count so far (G23)."""
        return self.reduce_by_key(key_extractor, _one, _sum)

    # -- windows ---------------------------------------------------------------------------------------------

    def reduce_by_window(
        self, window_config: WindowConfig, reduce_function: Callable[[Any, Any], Any], initial: Any = None
    ) -> Streamlet:
        """Return a streamlet with one pair (`Window`, value) for each window of each partition.

        For the value, ``reduce_function`` reduces ``initial`` and the first element, then its result and the second element, and
        so on. As in Heron, ``initial`` is None by default, so the first call is ``reduce_function(None, first)``. Elements that
        are pairs go to partitions by key. Others are spread evenly. Unlike in Heron, a window without elements has no result.
        """
        _check(reduce_function, "reduce_by_window", 2)
        makes = Reduction(reduce_function, initial)
        return self._windowed("reduce_by_window", window_config, makes, ByKey(strict=False))

    def reduce_by_key_and_window(
        self, window_config: WindowConfig, reduce_function: Callable[[Any, Any], Any]
    ) -> Streamlet:
        """Return a streamlet with one pair (`KeyedWindow`, value) for each key of each window.

        ``reduce_function`` reduces the key's values to this value, one by one. As in Heron, the streamlet has one partition
        unless you set another number.
        """
        _check(reduce_function, "reduce_by_key_and_window", 2)
        return self._windowed(
            "reduce_by_key_and_window", window_config, KeyedReduction(reduce_function), ByKey(), partitions=1
        )

    def count_by_key_and_window(
        self, key_extractor: Callable[[Any], Any], window_config: WindowConfig
    ) -> Streamlet:
        """Return a streamlet with one pair (`KeyedWindow`, count) for each key of each window (G23)."""
        pairs = self._keyed("count_by_key_and_window", key_extractor, _one)
        return pairs._windowed("count_by_key_and_window", window_config, KeyedReduction(_sum), ByKey())

    def join(
        self,
        join_streamlet: Streamlet,
        window_config: WindowConfig,
        join_function: Callable[[Any, Any], Any],
    ) -> Streamlet:
        """Return a streamlet with pairs (`KeyedWindow`, ``join_function(left value, right value)``).

        The streamlet on which this method is called is the left side, and ``join_streamlet`` is the right side. The elements of
        both sides must be pairs of a key and a value. There is one result for each combination of a left pair and a right pair
        with the same key in the same window.
        """
        return self._joined(JoinType.INNER, join_streamlet, window_config, join_function)

    def outer_left_join(
        self,
        join_streamlet: Streamlet,
        window_config: WindowConfig,
        join_function: Callable[[Any, Any], Any],
    ) -> Streamlet:
        """Do the same as `join`. Also call ``join_function(left value, None)`` for keys that only the left side has."""
        return self._joined(JoinType.OUTER_LEFT, join_streamlet, window_config, join_function)

    def outer_right_join(
        self,
        join_streamlet: Streamlet,
        window_config: WindowConfig,
        join_function: Callable[[Any, Any], Any],
    ) -> Streamlet:
        """Do the same as `join`. Also call ``join_function(None, right value)`` for keys that only the right side has."""
        return self._joined(JoinType.OUTER_RIGHT, join_streamlet, window_config, join_function)

    def outer_join(
        self,
        join_streamlet: Streamlet,
        window_config: WindowConfig,
        join_function: Callable[[Any, Any], Any],
    ) -> Streamlet:
        """Do the same as `outer_left_join` and `outer_right_join` together."""
        return self._joined(JoinType.OUTER, join_streamlet, window_config, join_function)

    # -- how stages are made -----------------------------------------------------------------------------------

    def _child(
        self,
        name: str,
        make: Callable[[Operation, Lowering], Made],
        grouping: Grouping | CustomStreamGrouping | None = None,
        *,
        also: tuple[Input, ...] = (),
        partitions: int | None = None,
    ) -> Stage:
        where = user_line()
        operation = Operation(name, where)
        if isinstance(grouping, CustomStreamGrouping):
            grouping = _custom(grouping, operation)
        own = Input(self._stage, self._stream, grouping or ShuffleGrouping())
        return Stage(
            name.replace("_", ""),  # map-1, reducebykeyandwindow-1: Heron's names
            where,
            lambda lowering: make(operation, lowering),
            (own, *also),
            self._stage.partitions if partitions is None else partitions,
        )

    def _then(self, name: str, make: Callable[[Operation], Made]) -> Streamlet:
        return Streamlet(self._child(name, lambda operation, _: make(operation)))

    def _keyed(self, name: str, key: Callable[[Any], Any], value: Callable[[Any], Any] | None) -> Streamlet:
        _check(key, name, 1)
        if value is not None:
            _check(value, name, 1)

        def pair(element: Any) -> KeyValue:
            return KeyValue(key(element), element if value is None else value(element))

        return self._then("key_by", lambda operation: MapBolt(operation, pair))

    def _windowed(
        self,
        name: str,
        windows: WindowConfig,
        makes: WindowOperation,
        grouping: Grouping,
        *,
        right: Streamlet | None = None,
        partitions: int | None = None,
    ) -> Streamlet:
        if not isinstance(windows, WindowConfig):
            msg = f"{user_line()}: {name} takes a WindowConfig, got {described(windows)}"
            raise InvalidTopologyError(msg)

        def make(operation: Operation, lowering: Lowering) -> Made:
            of_right = None
            if right is not None:
                of_right = GlobalStreamId(lowering.names[right._stage], right._stream)
            return WindowBolt(operation, windows, makes, of_right)

        also = () if right is None else (Input(right._stage, right._stream, grouping),)
        child = self._child(name, make, grouping, also=also, partitions=partitions)
        child.holds_secs = windows.holds_secs
        return Streamlet(child)

    def _joined(
        self,
        kind: JoinType,
        other: Streamlet,
        windows: WindowConfig,
        function: Callable[[Any, Any], Any],
    ) -> Streamlet:
        _check(function, kind.value, 2)
        right = self._other(other, kind.value)
        joined = self._windowed(kind.value, windows, Join(kind, function), ByKey(), right=right)
        joined._stage.prefix = "join"
        return joined

    def _other(self, other: object, name: str) -> Streamlet:
        if not isinstance(other, Streamlet):
            msg = f"{user_line()}: {name} takes another Streamlet, got {described(other)}"
            raise InvalidTopologyError(msg)
        if other._stage is self._stage and other._stream == self._stream:
            msg = f"{user_line()}: {name} of a streamlet with itself: make two of it first with one, other = streamlet.clone(2)"
            raise InvalidTopologyError(msg)
        return other


def _one(element: Any) -> int:
    return 1


def _sum(one: Any, other: Any) -> Any:
    return one + other


def _custom(grouping: CustomStreamGrouping, operation: Operation) -> CustomGrouping:
    try:
        return CustomGrouping(grouping)
    except StormsparkError as error:
        msg = f"{operation.where}: {operation.name}: {error}"
        raise type(error)(msg) from error


def _check(function: object, name: str, arguments: int) -> None:
    if not callable(function):
        msg = f"{user_line()}: {name} takes a function, got {described(function)}"
        raise InvalidTopologyError(msg)
    refuse_coroutine(function, name)
    try:
        inspect.signature(function).bind(*range(arguments))
    except TypeError as error:
        called = getattr(function, "__qualname__", type(function).__qualname__).rpartition(".")[2]
        many = "one argument" if arguments == 1 else f"{arguments} arguments"
        msg = f"{user_line()}: {name} calls its function with {many}, but {called} can't be called like that: {error}"
        raise InvalidTopologyError(msg) from error
    except ValueError:
        pass  # The function is written in C, so it has no signature to check. If it takes other arguments, its first call raises.


def _partitions(number: object) -> int:
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        msg = f"{user_line()}: a number must be 1 or more, got {number!r}"
        raise InvalidTopologyError(msg)
    return number
