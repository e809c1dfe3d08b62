"""The tuples that a bolt's ``process`` gets (C16)."""

from __future__ import annotations

import re
from collections import namedtuple
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import count
from typing import TYPE_CHECKING, Any, ClassVar, cast

from stormspark.api import Fields, TupleSource
from stormspark.api import Tuple as ApiTuple

if TYPE_CHECKING:
    from stormspark.compat.streamparse.passage import Passage

__all__ = ["Tuple", "values_type"]

_NO_IDENTIFIER = re.compile(r"\W|^(?=\d)")
_next_id = map(str, count(1)).__next__


class Tuple(ApiTuple):
    """A tuple in pystorm's form: values, and their source. The values can be accessed by the names of their fields (C16).

    The tuple behaves like pystorm's namedtuple. But it is the engine's own object, so no second object is needed per tuple. The
    tuple's ``id`` is made when somebody first reads it.

    >>> tup = Tuple("7", "word_spout", "default", 3, values_type("word_spout", "default", ("word", "n"))(("dog", 1)))
    >>> tup.values.word, tup.values[1], tup.values
    ('dog', 1, Word_SpoutDefaultTuple(word='dog', n=1))
    >>> id, component, stream, task, values = tup
    >>> id, tup.component, tup[3], tup._replace(values=["cat"])
    ('7', 'word_spout', 3, Tuple(id='7', component='word_spout', stream='default', task=3, values=['cat']))
    """

    __slots__ = ("_id", "_passage")

    _fields: ClassVar[tuple[str, ...]] = ("id", "component", "stream", "task", "values")

    def __init__(self, id: str, component: str, stream: str, task: int, values: Any) -> None:
        """Make a tuple without a task. Users' tests do this."""
        fields = Fields(*getattr(values, "_fields", ()))
        super().__init__(values, TupleSource(component, task, stream, fields))
        self.state = 1  # it belongs to no tree, and can't be acked
        self._id: str | None = id
        self._passage: Passage | None = None

    @staticmethod
    def maker(passage: Passage) -> Callable[[tuple[Any, ...], TupleSource, Any], Tuple]:
        """Return a function that makes a task's tuples. ``passage`` is notified when the id of a tuple is read."""

        def arrived(values: tuple[Any, ...], source: TupleSource, roots: Any) -> Tuple:
            tup = Tuple.__new__(Tuple)
            ApiTuple.__init__(tup, values, source, roots)
            tup._id = None
            tup._passage = passage
            return tup

        return arrived

    @property
    def id(self) -> str:
        """The tuple's id. It is a string that no other tuple of this process has."""
        id = self._id
        if id is None:
            id = self._id = _next_id()
            if self._passage is not None:
                self._passage.has_id(self, id)
        return id

    @property
    def component(self) -> str:
        """The id of the component that emitted the tuple."""
        return self._source.component

    @property
    def stream(self) -> str:
        """The stream on which the tuple was emitted."""
        return self._source.stream

    @property
    def task(self) -> int:
        """The id of the task that emitted the tuple."""
        return self._source.task

    # -- as a namedtuple ---------------------------------------------------------------------------------------

    def _as_tuple(self) -> tuple[str, str, str, int, Any]:
        source = self._source
        return self.id, source.component, source.stream, source.task, self.values

    def _asdict(self) -> dict[str, Any]:
        return dict(zip(self._fields, self._as_tuple(), strict=True))

    def _replace(self, **others: Any) -> Tuple:
        return Tuple(**{**self._asdict(), **others})

    @classmethod
    def _make(cls, five: Iterable[Any]) -> Tuple:
        return cls(*five)

    def __getitem__(self, key: Any) -> Any:
        return self._as_tuple()[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._as_tuple())

    def __len__(self) -> int:
        return len(self._fields)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tuple | tuple) and self._as_tuple() == tuple(other)

    # Hashing must not read the id. Otherwise a bolt that only puts tuples into a set would count as having read their ids.
    __hash__ = object.__hash__

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (*self._as_tuple()[:4], tuple(self.values), tuple(self._source.fields))

    def __repr__(self) -> str:
        return f"Tuple({', '.join(f'{name}={value!r}' for name, value in self._asdict().items())})"


def _restored(
    id: str, component: str, stream: str, task: int, values: tuple[Any, ...], fields: tuple[str, ...]
) -> Tuple:
    named = len(fields) == len(values)
    return Tuple(
        id, component, stream, task, values_type(component, stream, fields)(values) if named else values
    )


@cache
def values_type(component: str, stream: str, fields: Sequence[str]) -> type[tuple[Any, ...]]:
    """Return the type of one stream's values, named after the stream.

    A field whose name is not an identifier is called by its position, ``_0``, ``_1`` and so on. The type is like a namedtuple,
    but its constructor takes one iterable, as ``tuple(...)`` does. The constructor is called once per tuple, and is twice as fast
    as a namedtuple's.
    """
    name = "".join(_NO_IDENTIFIER.sub("_", text.title()) for text in (component, stream)) + "Tuple"
    # No module has an attribute with this type, so pickle can't refer to the type by a name. Instead, values are pickled as plain
    # tuples, and the receiver makes the type again.
    named = vars(cast("Any", namedtuple(name, fields, rename=True)))
    members = {member: named[member] for member in named if member != "__new__"}
    members["__reduce__"] = lambda values: (tuple, (tuple(values),))
    return type(name, (tuple,), members)
