"""Partial key grouping: a key has two tasks, and each tuple goes to the one of them that received fewer tuples (D12)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from stormspark.errors import InvalidTopologyError, ValueNotHashableError
from stormspark.grouping.base import Grouping, GroupingContext
from stormspark.grouping.java_hash import byte_array_hash, to_int32
from stormspark.grouping.java_random import JavaRandom
from stormspark.grouping.key import MemoLookup, checked_names
from stormspark.grouping.key_memo import KeyMemo, shared_memo
from stormspark.grouping.repartitioning import ByChooser

__all__ = ["PartialKeyGrouping", "two_tasks"]


@dataclass(frozen=True, init=False)
class PartialKeyGrouping(Grouping):
    """The grouping with two tasks per key. A tuple goes to the one to which fewer tuples were sent so far (D12).

    The key is the values in ``fields``. Two tasks share a frequent key's load, so all tasks receive nearly the same share. The
    two tasks are those that Storm 2 and 3 choose. `two_tasks` computes them from the Java hashes of the key's values, which are
    the hashes of a fields grouping. Each sender counts only its own tuples, and the first task wins if both counts are equal. If
    you want other rules, write a `CustomStreamGrouping`.

    Without fields, the key is the first value as a string. That value must be a str, an int or a bool.

    Raises the errors of `FieldsGrouping`.

    >>> from random import Random
    >>> context = GroupingContext("split", "default", ("word",), 1, (4, 5, 6), (), Random(7))
    >>> choose = PartialKeyGrouping("word").chooser(context)
    >>> [choose(["storm"]) for _ in range(4)], [choose(["spark"]) for _ in range(4)]
    ([6, 4, 6, 4], [5, 5, 5, 6])
    """

    kind: ClassVar[str] = "partial_key"
    single: ClassVar[bool] = True
    fields: tuple[str, ...]

    def __init__(self, fields: str | Iterable[str] = ()) -> None:
        object.__setattr__(self, "fields", checked_names(fields, "partial key"))

    @property
    def key_fields(self) -> tuple[str, ...]:
        """The grouping's fields."""
        return self.fields

    def chooser(self, context: GroupingContext) -> Callable[[Sequence[Any]], int]:
        """Return a chooser between the key's two tasks. If the grouping has fields, the chooser remembers the tasks of keys."""
        tasks_of: Callable[[Sequence[Any]], tuple[int, int]]
        if self.fields:
            memo = shared_memo(_TwoTasksMemo, context.targets, context.ints, len(self.fields))
            tasks_of = MemoLookup(memo, self.fields, "partial key", context)
        else:
            tasks_of = _by_first_value(context)
        sent = dict.fromkeys(context.targets, 0)

        def choose(values: Sequence[Any]) -> int:
            first, second = tasks_of(values)
            task = second if sent[second] < sent[first] else first
            sent[task] += 1
            return task

        return choose

    def repartitioning(self, targets: tuple[int, ...], ints: str = "long") -> ByChooser:
        """Return a layout that runs the chooser over the rows, because each choice depends on the choices before it."""
        return ByChooser(self, targets, ints)

    def describe(self) -> str:
        """Return ``partial_key(word, n)``, with the grouping's fields.

        >>> PartialKeyGrouping(["word", "n"]).describe(), PartialKeyGrouping().describe()
        ('partial_key(word, n)', 'partial_key(first value)')
        """
        return f"partial_key({', '.join(self.fields) or 'first value'})"


def two_tasks(targets: Sequence[int], key: bytes) -> tuple[int, int]:
    """Return the two tasks of a key, like Storm's RandomTwoTaskAssignmentCreator (D12). They differ if there are several targets.

    >>> two_tasks((4, 5, 6), b"storm"), two_tasks((4,), b"storm")
    ((4, 6), (4, 4))
    """
    random = JavaRandom(to_int32(byte_array_hash(key)))
    tasks = len(targets)
    first, second = random.next_int(tasks), random.next_int(tasks)
    if first == second:
        second = (second + 1) % tasks
    return targets[first], targets[second]


class _TwoTasksMemo(KeyMemo[tuple[int, int]]):
    """A memo that maps the key of a tuple to its two tasks."""

    def __init__(self, targets: tuple[int, ...], ints: str, fields: int) -> None:
        super().__init__(targets, ints, fields)
        # All keys with the same two tasks share one object.
        self._pairs: dict[tuple[int, int], tuple[int, int]] = {}

    def place(self, hashes: Iterable[int]) -> tuple[int, int]:
        """Return the `two_tasks` of a key. `two_tasks` gets the key as bytes: the hashes of its values, high bytes first."""
        pair = two_tasks(self._targets, b"".join((one & 0xFFFF_FFFF).to_bytes(4, "big") for one in hashes))
        return self._pairs.setdefault(pair, pair)


def _by_first_value(context: GroupingContext) -> Callable[[Sequence[Any]], tuple[int, int]]:
    place = f"stream {context.stream!r} of {context.source!r}"
    if not context.fields:
        msg = f"a partial key grouping without fields uses the first value of {place}, but that declares no fields"
        raise InvalidTopologyError(msg)

    def tasks_of(values: Sequence[Any]) -> tuple[int, int]:
        value = values[0]
        if not isinstance(value, str | int):
            msg = (
                f"field {context.fields[0]!r} of {place}: a partial key grouping without fields takes a str, an int or a "
                f"bool, got {value!r} of type {type(value).__name__}; name the fields of the key instead"
            )
            raise ValueNotHashableError(msg)
        text = value if isinstance(value, str) else str(value).lower()  # Java writes true and false.
        # As in Java, half of a surrogate pair becomes a question mark.
        return two_tasks(context.targets, text.encode("utf-8", "replace"))

    return tasks_of
