"""The bolts of operations that look at one element at a time (G23, G24).

What they emit is anchored to what they were given, which is acked then: with ATLEAST_ONCE an element that fails anywhere is
emitted by its source again. Errors of a user's function are told with the stage, its line and the element.
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

#: The stream and the field of elements, by Heron's names.
OUTPUT: Final = "output"
FIELD: Final = "_output_"


@dataclass(frozen=True)
class Operation:
    """What a stage does, and the user's line that asks for it."""

    name: str
    where: str

    def tell(self, error: Exception, stage: str, *of: object) -> None:
        """Note in ``error`` where it came from, and which element it was of."""
        error.add_note(
            f"in stage {stage!r}, {self.name} at {self.where}" + "".join(f", of {one!r:.300}" for one in of)
        )


class ElementBolt(BasicBolt):
    """Calls ``process`` for every element."""

    def __init__(self, operation: Operation) -> None:
        self.operation = operation

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        """Keep the name of the stage."""
        self.stage = context.this_component_id
        self.logger = context.logger

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        """Process the element; errors name the stage."""
        try:
            self.process(tup.values[0], collector)
        except Exception as error:
            self.operation.tell(error, self.stage, tup.values[0])
            raise

    @abstractmethod
    def process(self, element: Any, collector: BasicOutputCollector) -> None:
        """Take one element."""

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """One stream of elements."""
        declarer.declare_stream(OUTPUT, Fields(FIELD))


class _FunctionBolt(ElementBolt):
    def __init__(self, operation: Operation, function: Callable[[Any], Any]) -> None:
        super().__init__(operation)
        self.function = function


class MapBolt(_FunctionBolt):
    """One element for each."""

    def process(self, element: Any, collector: BasicOutputCollector) -> None:
        """Emit what the function makes of it."""
        collector.emit((self.function(element),), OUTPUT)


class FlatMapBolt(_FunctionBolt):
    """Any number of elements for each."""

    def process(self, element: Any, collector: BasicOutputCollector) -> None:
        """Emit what is in what the function makes of it; what can't be iterated is one element."""
        made = self.function(element)
        for one in made if isinstance(made, Iterable) else (made,):
            collector.emit((one,), OUTPUT)


class FilterBolt(_FunctionBolt):
    """Some of the elements."""

    def process(self, element: Any, collector: BasicOutputCollector) -> None:
        """Emit it if the function says so."""
        if self.function(element):
            collector.emit((element,), OUTPUT)


class PassBolt(ElementBolt):
    """All of the elements, in other partitions or from two streamlets."""

    def process(self, element: Any, collector: BasicOutputCollector) -> None:
        """Emit it."""
        collector.emit((element,), OUTPUT)


class ConsumeBolt(_FunctionBolt):
    """Calls a function, and gives nothing."""

    def process(self, element: Any, collector: BasicOutputCollector) -> None:
        """Call it."""
        self.function(element)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Nothing comes out."""


class LogBolt(ElementBolt):
    """Writes elements to the task's log."""

    def process(self, element: Any, collector: BasicOutputCollector) -> None:
        """Write it."""
        self.logger.info("%s", element)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Nothing comes out."""


class SplitBolt(ElementBolt):
    """Emits an element on each stream whose predicate holds."""

    def __init__(self, operation: Operation, predicates: Mapping[str, Callable[[Any], Any]]) -> None:
        super().__init__(operation)
        self.predicates = dict(predicates)

    def process(self, element: Any, collector: BasicOutputCollector) -> None:
        """Ask all predicates."""
        for stream, predicate in self.predicates.items():
            if predicate(element):
                collector.emit((element,), stream)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """One stream for each predicate."""
        for stream in self.predicates:
            declarer.declare_stream(stream, Fields(FIELD))


class TupleBolt(BasicBolt):
    """Makes elements of the tuples of any spout."""

    def __init__(self, operation: Operation, function: Callable[[Tuple], Any]) -> None:
        self.operation = operation
        self.function = function

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        """Keep the name of the stage."""
        self.stage = context.this_component_id

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        """Emit what the function makes of the tuple."""
        try:
            collector.emit((self.function(tup),), OUTPUT)
        except Exception as error:
            self.operation.tell(error, self.stage, tup)
            raise

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """One stream of elements."""
        declarer.declare_stream(OUTPUT, Fields(FIELD))


class ReduceByKeyBolt(ElementBolt):
    """Emits each key with what has become of it so far, as often as there is something new."""

    def __init__(self, operation: Operation, function: Callable[[Any, Any], Any]) -> None:
        super().__init__(operation)
        self.function = function
        self.values: MutableMapping[Any, Any] = {}

    def process(self, element: Any, collector: BasicOutputCollector) -> None:
        """Reduce a pair into its key's value."""
        key, value = element
        if key in self.values:
            value = self.function(self.values[key], value)
        self.values[key] = value
        collector.emit((KeyValue(key, value),), OUTPUT)


class StatefulReduceByKeyBolt(StatefulComponent, ReduceByKeyBolt):
    """The same, with the values in its state."""

    def init_state(self, state: MutableMapping[Any, Any]) -> None:
        """Go on with the values there are."""
        self.values = state

    def pre_save(self, checkpoint_id: int) -> None:
        """They are there."""


class TransformBolt(Bolt):
    """Calls a `TransformOperator`; what it emits is anchored to the tuple at hand."""

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
            self.operation.tell(error, self._stage, tup.values[0])
            raise
        finally:
            self._tuple = None
        self._collector.ack(tup)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """One stream of elements."""
        declarer.declare_stream(OUTPUT, Fields(FIELD))


class StatefulTransformBolt(StatefulComponent, TransformBolt):
    """The same, with a state for the operator."""

    def init_state(self, state: MutableMapping[Any, Any]) -> None:
        """Keep it until the operator is set up."""
        self.state = state

    def pre_save(self, checkpoint_id: int) -> None:
        """What the operator has put into it is there."""
