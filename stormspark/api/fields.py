"""The field names of a stream (A11)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import overload

from stormspark.errors import InvalidTopologyError

__all__ = ["Fields"]


class Fields(Sequence[str]):
    """The ordered names of a stream's values, as in ``declarer.declare(Fields("word", "count"))`` (A11).

    Raises `InvalidTopologyError` for a repeated name, an empty name, or a name that is not a string.

    >>> fields = Fields("word", "count")
    >>> fields.index_of("count"), "word" in fields, list(fields)
    (1, True, ['word', 'count'])
    """

    __slots__ = ("_index", "_names")

    def __init__(self, *names: str | Iterable[str]) -> None:
        flat: list[str] = []
        for name in names:
            flat.extend(name if isinstance(name, Iterable) and not isinstance(name, str) else [name])
        for name in flat:
            if not isinstance(name, str) or not name:
                msg = f"a field's name must be a string that is not empty, got {name!r} in {flat!r}"
                raise InvalidTopologyError(msg)
        self._names = tuple(flat)
        self._index = {name: position for position, name in enumerate(flat)}
        if len(self._index) < len(flat):
            twice = sorted({name for name in flat if flat.count(name) > 1})
            msg = f"field names must differ, but {', '.join(map(repr, twice))} occurs more than once in {flat!r}"
            raise InvalidTopologyError(msg)

    def index_of(self, name: str) -> int:
        """Return the position of ``name``; raise a KeyError that lists the fields if there is no such field (A11)."""
        try:
            return self._index[name]
        except KeyError:
            msg = f"no field {name!r}; there are {', '.join(map(repr, self._names)) or 'none'}"
            raise KeyError(msg) from None

    @overload
    def __getitem__(self, position: int) -> str: ...
    @overload
    def __getitem__(self, position: slice) -> tuple[str, ...]: ...
    def __getitem__(self, position: int | slice) -> str | tuple[str, ...]:
        return self._names[position]

    def __len__(self) -> int:
        return len(self._names)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __contains__(self, name: object) -> bool:
        return name in self._index

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Fields) and self._names == other._names

    def __hash__(self) -> int:
        return hash(self._names)

    def __repr__(self) -> str:
        return f"Fields({', '.join(map(repr, self._names))})"
