"""Operations on windows: reducing and joining (G23, G24).

A `Reduction`, `KeyedReduction` or `Join` computes the results of a window from its elements. `WindowBolt`, an ordinary windowed
bolt, decides which elements a window has. With ATLEAST_ONCE, elements are acked when they leave their last window, and results
are anchored to all elements of the window. So no element is lost when a worker dies. With EFFECTIVELY_ONCE, batches are
transactions, and the elements in the windows are the task's state.

In Heron's Python, an element stays in a window of n seconds for n + 1 seconds, so tumbling windows overlap. In stormspark,
tumbling windows do not overlap.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple

from stormspark.api import (
    Fields,
    GlobalStreamId,
    OutputCollector,
    OutputFieldsDeclarer,
    TopologyContext,
    Tuple,
    TupleWindow,
    WindowedBolt,
)
from stormspark.streamlet.bolts import FIELD, OUTPUT, Operation
from stormspark.streamlet.keys import is_pair
from stormspark.streamlet.window import KeyedWindow, Window
from stormspark.streamlet.window_config import WindowConfig

__all__ = [
    "Element",
    "Join",
    "JoinType",
    "KeyedReduction",
    "Reduction",
    "WindowBolt",
    "WindowOperation",
]


class Element(NamedTuple):
    """An element in a window, and whether it came from the right side of a join."""

    value: Any
    right: bool = False


class WindowOperation(ABC):
    """Computes the results of a window from its elements."""

    @abstractmethod
    def results(self, elements: Sequence[Element], window: Window) -> Iterator[Any]:
        """Yield the results of a window. ``elements`` is never empty."""


class Reduction(WindowOperation):
    """Yields one pair (window, value) for each window. The value is ``function(function(initial, first), second)`` and so on.

    >>> longest = Reduction(lambda longest, word: max(longest or "", word, key=len), None)
    >>> list(longest.results([Element("a"), Element("storm")], Window(0, 10)))
    [(Window {start_time: 0, end_time: 10}, 'storm')]
    """

    def __init__(self, function: Callable[[Any, Any], Any], initial: Any) -> None:
        self.function = function
        self.initial = initial

    def results(self, elements: Sequence[Element], window: Window) -> Iterator[Any]:
        """Reduce all elements to one."""
        value = self.initial
        for element in elements:
            value = self.function(value, element.value)
        yield window, value


class KeyedReduction(WindowOperation):
    """Yields one pair (KeyedWindow, value) for each key of a window.

    The value is ``function(function(first, second), third)`` and so on.

    >>> sums = KeyedReduction(lambda one, other: one + other)
    >>> pairs = [Element(("storm", 1)), Element(("spark", 1)), Element(("storm", 1))]
    >>> [(key.key, value) for key, value in sums.results(pairs, Window(0, 10))]
    [('storm', 2), ('spark', 1)]
    """

    def __init__(self, function: Callable[[Any, Any], Any]) -> None:
        self.function = function

    def results(self, elements: Sequence[Element], window: Window) -> Iterator[Any]:
        """Reduce the values of each key. The order of the keys is the order in which they first arrived."""
        values: dict[Any, Any] = {}
        for element in elements:
            key, value = _pair(element.value)
            values[key] = self.function(values[key], value) if key in values else value
        for key, value in values.items():
            yield KeyedWindow(key, window), value


class JoinType(Enum):
    """The kinds of join. An inner join keeps the keys that both sides have.

    A left outer join also keeps the keys that only the left side has, and a right outer join those that only the right side has.
    A full outer join keeps all keys.
    """

    INNER = "join"
    OUTER_LEFT = "outer_left_join"
    OUTER_RIGHT = "outer_right_join"
    OUTER = "outer_join"

    @property
    def keeps_left(self) -> bool:
        """Whether the join keeps values whose keys are only on the left side."""
        return self in (JoinType.OUTER_LEFT, JoinType.OUTER)

    @property
    def keeps_right(self) -> bool:
        """Whether the join keeps values whose keys are only on the right side."""
        return self in (JoinType.OUTER_RIGHT, JoinType.OUTER)


class Join(WindowOperation):
    """Yields (KeyedWindow, ``function(left, right)``) for each left value and each right value with the same key.

    If a key has values on one side only, the kind of join says whether they are dropped, or each is joined with None.

    >>> join = Join(JoinType.OUTER_LEFT, lambda left, right: (left, right))
    >>> elements = [Element(("a", 1)), Element(("b", 2)), Element(("a", 3), right=True)]
    >>> [(key.key, value) for key, value in join.results(elements, Window(0, 10))]
    [('a', (1, 3)), ('b', (2, None))]
    """

    def __init__(self, kind: JoinType, function: Callable[[Any, Any], Any]) -> None:
        self.function = function
        # The values to use if a side lacks a key: first for the left side, then for the right. Without any, the key is dropped.
        self._missing = ([None] if kind.keeps_right else [], [None] if kind.keeps_left else [])

    def results(self, elements: Sequence[Element], window: Window) -> Iterator[Any]:
        """Join the values of each key. The order of the keys is the order in which they first arrived."""
        sides: dict[Any, tuple[list[Any], list[Any]]] = {}
        for element in elements:
            key, value = _pair(element.value)
            sides.setdefault(key, ([], []))[element.right].append(value)
        for key, (lefts, rights) in sides.items():
            keyed = KeyedWindow(key, window)
            for left in lefts or self._missing[0]:
                for right in rights or self._missing[1]:
                    yield keyed, self.function(left, right)


def _pair(element: Any) -> tuple[Any, Any]:
    if not is_pair(element):
        msg = f"expected a pair of a key and a value, got {element!r:.200} of type {type(element).__name__}"
        raise TypeError(msg)
    return element[0], element[1]


class WindowBolt(WindowedBolt):
    """Collects the elements of each window, and calls the operation. In a join, ``right`` is the right side's stream."""

    def __init__(
        self,
        operation: Operation,
        windows: WindowConfig,
        makes: WindowOperation,
        right: GlobalStreamId | None = None,
    ) -> None:
        self.operation = operation
        self.makes = makes
        self.right = right
        self.with_window(windows.length, windows.slide)

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        """Keep the collector and the name of the stage."""
        self._collector = collector
        self._stage = context.this_component_id

    def execute(self, window: TupleWindow) -> None:
        """Emit the results of the window. If this raises an error, add a note that names the stage."""
        elements = [_element(tup, self.right) for tup in window]
        time = _seconds(window.start_timestamp, window.end_timestamp)
        try:
            for made in self.makes.results(elements, time):
                self._collector.emit((made,), OUTPUT)
        except Exception as error:
            self.operation.annotate(error, self._stage, time)
            raise

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declare one stream of elements."""
        declarer.declare_stream(OUTPUT, Fields(FIELD))


def _element(tup: Tuple, right: GlobalStreamId | None) -> Element:
    return Element(tup.values[0], (tup.source_component, tup.source_stream) == right)


def _seconds(start_ms: int | None, end_ms: int) -> Window:
    """Return the time of a window.

    In the engine, a window ends a millisecond before it fires, because more elements may arrive in the millisecond in which it
    fires. So one millisecond is added to both times.
    """
    start = None if start_ms is None else (start_ms + 1) / 1000
    return Window(start, (end_ms + 1) / 1000)
