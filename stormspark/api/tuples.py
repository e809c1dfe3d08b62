"""The tuple, which a bolt's ``execute`` receives (C6)."""

# tuples.pxd beside this module gives the attributes of `TupleSource` and `Tuple` and the method of `Executor` their C
# types, with which Cython compiles this module. When you add, rename or retype one of them, change both files and check
# with `make compiled`.

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from stormspark.api import tuple_state
from stormspark.api.fields import Fields
from stormspark.api.streams import SYSTEM_COMPONENT, TICK_STREAM

__all__ = ["TICK_SOURCE", "Executor", "Tuple", "TupleSource"]


class TupleSource:
    """The origin of tuples: one stream of one task. All tuples of that stream share one object."""

    __slots__ = ("component", "fields", "index", "stream", "task")

    def __init__(self, component: str, task: int, stream: str, fields: Fields) -> None:
        self.component = component
        self.task = task
        self.stream = stream
        self.fields = fields
        self.index = {name: position for position, name in enumerate(fields)}

    def __reduce__(self) -> tuple[Any, ...]:
        return TupleSource, (self.component, self.task, self.stream, self.fields)

    def __repr__(self) -> str:
        return f"{self.component}[{self.task}]:{self.stream}"


#: The source of ticks (C9).
TICK_SOURCE = TupleSource(SYSTEM_COMPONENT, -1, TICK_STREAM, Fields("rate_secs"))


class Tuple:
    """Named values together with their origin (C6). Values must not be changed in place (C7).

    >>> tup = Tuple(("storm", 3), TupleSource("count", 7, "default", Fields("word", "n")))
    >>> tup["word"], tup[1], tup.values, tup.source_component, "n" in tup.fields
    ('storm', 3, ('storm', 3), 'count', True)
    """

    # `roots` and `state` are for the acker. `roots` are the trees that this tuple belongs to: None, one, or a tuple of several.
    # `state` is `OPEN`, `SETTLED` or `HELD` of `stormspark.api.tuple_state`.
    __slots__ = ("__weakref__", "_source", "roots", "state", "values")

    def __init__(self, values: tuple[Any, ...], source: TupleSource, roots: Any = None) -> None:
        self.values = values
        self._source = source
        self.roots = roots
        self.state: int = tuple_state.OPEN

    def __getitem__(self, key: int | str) -> Any:
        """Return a value by position or by field name; raise IndexError, or a KeyError that lists the fields."""
        if type(key) is int:
            return self.values[key]
        try:
            return self.values[self._source.index[key]]  # type: ignore[index]
        except KeyError:
            source = self._source
            msg = (
                f"no field {key!r} in a tuple of stream {source.stream!r} of {source.component!r}; "
                f"it has {', '.join(map(repr, source.fields)) or 'none'}"
            )
            raise KeyError(msg) from None

    def get(self, name: str, default: Any = None) -> Any:
        """Return the value of field ``name``, or ``default`` if the stream has no such field."""
        position = self._source.index.get(name)
        return default if position is None else self.values[position]

    def select(self, fields: Fields) -> tuple[Any, ...]:
        """Return the values of ``fields``, in the order of ``fields``."""
        return tuple(self[name] for name in fields)

    def as_dict(self) -> dict[str, Any]:
        """Return the values by field name."""
        return dict(zip(self._source.fields, self.values, strict=True))

    def detached(self) -> Tuple:
        """Return a copy that belongs to no tree, to be kept or sent as a value. Pickling makes such a copy, too (C31)."""
        return Tuple(self.values, self._source)

    def __reduce__(self) -> tuple[Any, ...]:
        return Tuple, (self.values, self._source)

    def __len__(self) -> int:
        return len(self.values)

    def __bool__(self) -> bool:
        return True  # a tuple without values is an anchor like any other

    def __iter__(self) -> Iterator[Any]:
        return iter(self.values)

    @property
    def fields(self) -> Fields:
        """The names of the values."""
        return self._source.fields

    @property
    def source_component(self) -> str:
        """The id of the component that emitted this tuple."""
        return self._source.component

    @property
    def source_stream(self) -> str:
        """The id of the stream on which this tuple was emitted."""
        return self._source.stream

    @property
    def source_task(self) -> int:
        """The id of the task that emitted this tuple."""
        return self._source.task

    @property
    def is_tick(self) -> bool:
        """Whether this is a tick (C9). Ticks come every n seconds, by the component's ``topology.tick.tuple.freq.secs``.

        A tick's only value is that number of seconds. A tick belongs to no tree, so an ack is harmless and not needed (W20).
        """
        return self._source.stream == TICK_STREAM and self._source.component == SYSTEM_COMPONENT

    def __repr__(self) -> str:
        try:
            return f"Tuple({self._source!r}, {self.values!r})"
        except Exception as error:  # raised by a value's class, or because a number has too many digits
            return f"Tuple({self._source!r}, {len(self.values)} values that can't be shown ({type(error).__name__}))"


class Executor:
    """The base class of objects that execute the tuples of a front-end's bolt. Compiled code calls `execute` as a C method."""

    __slots__ = ()

    def execute(self, tup: Tuple) -> object:
        """See `AutoAckBolt.execute`."""
        raise NotImplementedError
