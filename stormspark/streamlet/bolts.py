"""The bolts for operations that process one element at a time (G23, G24).

A bolt anchors its emits to the input element, and then acks the input. So with ATLEAST_ONCE, if an element fails anywhere, its
source emits it again. If a user's function raises an error, the bolt adds a note to it: the stage, the user's line, the element.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any, Final

from stormspark.api import (
    BasicBolt,
    BasicOutputCollector,
    Bolt,
    Fields,
    OutputCollector,
    OutputFieldsDeclarer,
    TopologyContext,
    Tuple,
)
from stormspark.api.state import StatefulComponent
from stormspark.streamlet.context import StageContext
from stormspark.streamlet.operators import TransformOperator
from stormspark.streamlet.window import KeyValue

__all__ = [
    "FIELD",
    "OUTPUT",
    "ConsumeBolt",
    "FilterBolt",
    "FlatMapBolt",
    "LogBolt",
    "MapBolt",
    "Operation",
    "PassBolt",
    "ReduceByKeyBolt",
    "SplitBolt",
    "StatefulReduceByKeyBolt",
    "StatefulTransformBolt",
    "TransformBolt",
    "TupleBolt",
]

#: Heron's names for the stream of elements, and for its field.
OUTPUT: Final = "output"
FIELD: Final = "_output_"


@dataclass(frozen=True)
class Operation:
    """The operation of a stage, and the line of user code that declares it."""

    name: str
    where: str

    def annotate(self, error: Exception, stage: str, *of: object) -> None:
        """Add a note to ``error`` with the stage, the operation, the user's line and the element."""
        error.add_note(
            f"in stage {stage!r}, {self.name} at {self.where}" + "".join(f", of {one!r:.300}" for one in of)
        )


class ElementBolt(BasicBolt):
    """The base class of bolts that call ``process`` for every element."""

    def __init__(self, operation: Operation) -> None:
        self.operation = operation

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        """Keep the name of the stage."""
        self.stage = context.this_component_id
        self.logger = context.logger

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        """Process the element. If this raises an error, add a note that names the stage."""
        try:
            self.process(tup.values[0], collector)
        except Exception as error:
            self.operation.annotate(error, self.stage, tup.values[0])
            raise

    @abstractmethod
    def process(self, element: Any, collector: BasicOutputCollector) -> None:
        """Process one element."""

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declare one stream of elements."""
        declarer.declare_stream(OUTPUT, Fields(FIELD))


class _FunctionBolt(ElementBolt):
    def __init__(self, operation: Operation, function: Callable[[Any], Any]) -> None:
        super().__init__(operation)
        self.function = function


class MapBolt(_FunctionBolt):
    """Emits one element for each input element."""

    def process(self, element: Any, collector: BasicOutputCollector) -> None:
        """Emit the function's result."""
        collector.emit((self.function(element),), OUTPUT)


class FlatMapBolt(_FunctionBolt):
    """Emits any number of elements for each input element."""

    def process(self, element: Any, collector: BasicOutputCollector) -> None:
        """Emit the elements of the function's result. A result that can't be iterated is emitted as one element."""
        made = self.function(element)
        for one in made if isinstance(made, Iterable) else (made,):
            collector.emit((one,), OUTPUT)


class FilterBolt(_FunctionBolt):
    """Emits some of the elements."""

    def process(self, element: Any, collector: BasicOutputCollector) -> None:
        """Emit the element if the function returns true."""
        if self.function(element):
            collector.emit((element,), OUTPUT)


class PassBolt(ElementBolt):
    """Emits all elements unchanged. It serves to move elements to other partitions, or to unite two streamlets."""

    def process(self, element: Any, collector: BasicOutputCollector) -> None:
        """Emit the element."""
        collector.emit((element,), OUTPUT)


class ConsumeBolt(_FunctionBolt):
    """Calls a function and emits nothing."""

    def process(self, element: Any, collector: BasicOutputCollector) -> None:
        """Call the function."""
        self.function(element)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declare nothing: no elements leave this bolt."""


class LogBolt(ElementBolt):
    """Writes elements to the task's log."""

    def process(self, element: Any, collector: BasicOutputCollector) -> None:
        """Write the element."""
        self.logger.info("%s", element)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declare nothing: no elements leave this bolt."""


class SplitBolt(ElementBolt):
    """Emits an element on each stream whose predicate is true for the element."""

    def __init__(self, operation: Operation, predicates: Mapping[str, Callable[[Any], Any]]) -> None:
        super().__init__(operation)
        self.predicates = dict(predicates)

    def process(self, element: Any, collector: BasicOutputCollector) -> None:
        """Call all predicates, and emit the element on the stream of each that returns true."""
        for stream, predicate in self.predicates.items():
            if predicate(element):
                collector.emit((element,), stream)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declare one stream per predicate."""
        for stream in self.predicates:
            declarer.declare_stream(stream, Fields(FIELD))


class TupleBolt(BasicBolt):
    """Makes elements from the tuples of any spout."""

    def __init__(self, operation: Operation, function: Callable[[Tuple], Any]) -> None:
        self.operation = operation
        self.function = function

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        """Keep the name of the stage."""
        self.stage = context.this_component_id

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        """Emit the function's result for the tuple."""
        try:
            collector.emit((self.function(tup),), OUTPUT)
        except Exception as error:
            self.operation.annotate(error, self.stage, tup)
            raise

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declare one stream of elements."""
        declarer.declare_stream(OUTPUT, Fields(FIELD))


class ReduceByKeyBolt(ElementBolt):
    """For each pair that arrives, emits the pair's key with the key's reduced value so far."""

    def __init__(self, operation: Operation, function: Callable[[Any, Any], Any]) -> None:
        super().__init__(operation)
        self.function = function
        self.values: MutableMapping[Any, Any] = {}

    def process(self, element: Any, collector: BasicOutputCollector) -> None:
        """Reduce the key's value so far and the pair's value to one value. Emit the key with this value."""
        key, value = element
        if key in self.values:
            value = self.function(self.values[key], value)
        self.values[key] = value
        collector.emit((KeyValue(key, value),), OUTPUT)


class StatefulReduceByKeyBolt(StatefulComponent, ReduceByKeyBolt):
    """A `ReduceByKeyBolt` that keeps the values in its state."""

    def init_state(self, state: MutableMapping[Any, Any]) -> None:
        """Continue with the values in the state."""
        self.values = state

    def pre_save(self, checkpoint_id: int) -> None:
        """Do nothing, because the values are already in the state."""


class TransformBolt(Bolt):
    """Calls a `TransformOperator`, and anchors the operator's emits to the current tuple."""

    state: MutableMapping[Any, Any] | None = None

    def __init__(self, operation: Operation, operator: TransformOperator, config: Mapping[str, Any]) -> None:
        self.operation = operation
        self.operator = operator
        self.config = config

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        """Set the operator up."""
        self._collector = collector
        self._stage = context.this_component_id
        self._tuple: Tuple | None = None
        self.operator.logger = context.logger
        config = {**conf, **self.config}
        self.operator.setup(StageContext(context, config, self.state, OUTPUT, self._emit))

    def _emit(self, element: Any) -> None:
        self._collector.emit((element,), OUTPUT, () if self._tuple is None else self._tuple)

    def execute(self, tup: Tuple) -> None:
        """Transform one tuple, and ack it."""
        self._tuple = tup
        try:
            self.operator.transform(tup)
        except Exception as error:
            self.operation.annotate(error, self._stage, tup.values[0])
            raise
        finally:
            self._tuple = None
        self._collector.ack(tup)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declare one stream of elements."""
        declarer.declare_stream(OUTPUT, Fields(FIELD))


class StatefulTransformBolt(StatefulComponent, TransformBolt):
    """A `TransformBolt` whose operator has state."""

    def init_state(self, state: MutableMapping[Any, Any]) -> None:
        """Keep the state. `prepare` will pass it to the operator."""
        self.state = state

    def pre_save(self, checkpoint_id: int) -> None:
        """Do nothing, because the operator itself puts its values into the state."""
