"""The spouts for two kinds of sources: functions and generators (G24).

With ATLEAST_ONCE and EFFECTIVELY_ONCE, every element has an id, and the spout keeps the element until it is acked. The spout
emits a failed element again. In Heron's Python, elements have no ids, so nothing is ever emitted again.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Hashable, Mapping, MutableMapping
from typing import Any

from stormspark.api import Fields, OutputFieldsDeclarer, Spout, SpoutOutputCollector, TopologyContext
from stormspark.api.state import StatefulComponent
from stormspark.streamlet.bolts import FIELD, OUTPUT, Operation
from stormspark.streamlet.context import StageContext
from stormspark.streamlet.operators import Generator

__all__ = ["GeneratorSpout", "StatefulGeneratorSpout", "SupplierSpout"]


class _ElementSpout(Spout):
    def __init__(self, operation: Operation, *, tracked: bool) -> None:
        self.operation = operation
        self.tracked = tracked

    def open(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector
    ) -> None:
        """Keep the collector, and begin without open elements."""
        self._collector = collector
        self._stage = context.this_component_id
        self._emitted = 0
        self._open: dict[Hashable, Any] = {}
        self._failed: deque[Any] = deque()

    @abstractmethod
    def take(self) -> Any:
        """Return the next element, or None if there is no element now."""

    def next_tuple(self) -> None:
        """Emit a failed element, or else a new one. If this raises an error, add a note that names the stage."""
        if self._failed:
            self.emit(self._failed.popleft())
            return
        try:
            element = self.take()
        except Exception as error:
            self.operation.annotate(error, self._stage)
            raise
        if element is not None:
            self.emit(element)

    def emit(self, element: Any) -> None:
        """Emit one element."""
        if self.tracked:
            self._emitted += 1
            self._open[self._emitted] = element
            self._collector.emit((element,), OUTPUT, self._emitted)
        else:
            self._collector.emit((element,), OUTPUT)

    def ack(self, message_id: Hashable) -> None:
        """Forget the element."""
        self._open.pop(message_id, None)

    def fail(self, message_id: Hashable) -> None:
        """Mark the element, so that `next_tuple` emits it again."""
        if message_id in self._open:
            self._failed.append(self._open.pop(message_id))

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declare one stream of elements."""
        declarer.declare_stream(OUTPUT, Fields(FIELD))


class SupplierSpout(_ElementSpout):
    """Emits the results of a function without arguments."""

    def __init__(self, operation: Operation, function: Callable[[], Any], *, tracked: bool) -> None:
        super().__init__(operation, tracked=tracked)
        self.function = function

    def take(self) -> Any:
        """Return the function's result. None means that there is no element now."""
        return self.function()


class GeneratorSpout(_ElementSpout):
    """Emits the elements of a `Generator`."""

    state: MutableMapping[Any, Any] | None = None

    def __init__(
        self, operation: Operation, generator: Generator, config: Mapping[str, Any], *, tracked: bool
    ) -> None:
        super().__init__(operation, tracked=tracked)
        self.generator = generator
        self.config = config

    def open(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector
    ) -> None:
        """Set the generator up."""
        super().open(conf, context, collector)
        self.generator.logger = context.logger
        self.generator.setup(StageContext(context, {**conf, **self.config}, self.state, OUTPUT, self.emit))

    def take(self) -> Any:
        """Return the generator's next element."""
        return self.generator.get()


class StatefulGeneratorSpout(StatefulComponent, GeneratorSpout):
    """A `GeneratorSpout` whose generator has state."""

    def init_state(self, state: MutableMapping[Any, Any]) -> None:
        """Keep the state. `open` will pass it to the generator."""
        self.state = state

    def pre_save(self, checkpoint_id: int) -> None:
        """Do nothing, because the generator itself puts its values into the state."""
