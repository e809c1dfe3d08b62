"""Makes tuples for tests of single bolts, and compares collections of tuples without regard to their order (J25)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from stormspark.api import DEFAULT_STREAM, Fields, Tuple, TupleSource
from stormspark.errors import EmitError

__all__ = ["make_tuple", "multiseteq", "test_tuple"]


def make_tuple(
    values: Sequence[Any],
    *,
    component: str = "component",
    stream: str = DEFAULT_STREAM,
    fields: Fields | Iterable[str] | None = None,
    task: int = 1,
) -> Tuple:
    """Return a new tuple as a bolt's ``execute`` receives it. The defaults are those of Storm's ``testTuple``.

    Raises `EmitError` unless there are as many ``fields`` as ``values`` (A12).

    >>> tup = make_tuple(("storm", 3), component="count", fields=["word", "n"])
    >>> tup["word"], tup.source_component, make_tuple((1, 2)).fields
    ('storm', 'count', Fields('field1', 'field2'))
    """
    if fields is None:
        fields = [f"field{position}" for position in range(1, len(values) + 1)]
    named = fields if isinstance(fields, Fields) else Fields(fields)
    if len(named) != len(values):
        msg = (
            f"Tuple created with wrong number of fields: expected {len(named)} ({', '.join(named)}), "
            f"got {len(values)}: {values!r}"
        )
        raise EmitError(msg)
    return Tuple(tuple(values), TupleSource(component, task, stream, named))


def test_tuple(values: Sequence[Any], **source: Any) -> Tuple:
    """Return a tuple as `make_tuple` does. Storm has this function under this name. pytest does not collect it."""
    return make_tuple(values, **source)


test_tuple.__test__ = False  # type: ignore[attr-defined]


def multiseteq(first: Iterable[Any], second: Iterable[Any]) -> bool:
    """Return whether both iterables have the same elements equally often, in any order. The elements need not be hashable.

    >>> multiseteq([("a", 1), ("b", 2), ("a", 1)], [("b", 2), ("a", 1), ("a", 1)])
    True
    >>> multiseteq([[1], [2]], [[1], [2], [2]])
    False
    """
    left = list(second)
    for element in first:
        try:
            left.remove(element)
        except ValueError:
            return False
    return not left
