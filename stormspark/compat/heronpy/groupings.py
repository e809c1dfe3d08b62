"""Turns Heron's groupings into groupings of stormspark (D4, D7-D10, D13, D14)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from io import BytesIO
from typing import Any

import cloudpickle

from stormspark.compat.heronpy.contexts import GroupingTopologyContext
from stormspark.compat.heronpy.custom_grouping import ICustomGrouping
from stormspark.compat.heronpy.delegates import load_class, serializer_of
from stormspark.compat.heronpy.serializer import default_serializer
from stormspark.compat.heronpy.stream import Grouping
from stormspark.coroutines import problem_with_coroutine
from stormspark.errors import ComponentError, InvalidTopologyError, ValueNotHashableError
from stormspark.grouping import (
    AllGrouping,
    CustomGrouping,
    CustomStreamGrouping,
    DirectGrouping,
    FieldsGrouping,
    GlobalGrouping,
    GlobalStreamId,
    GroupingContext,
    ShuffleGrouping,
)
from stormspark.grouping import Grouping as EngineGrouping

__all__ = ["AnyFieldsGrouping", "HeronCustomGrouping", "engine_grouping", "protocol_number"]


class AnyFieldsGrouping(FieldsGrouping):
    """A fields grouping for keys of any type.

    Tuples with equal keys go to the same task if Storm's hash covers the types of the key. For any other key, this grouping
    hashes the key's pickled bytes, because Heron compares these bytes (D4). It may choose another task for a key than Heron does.
    """

    def chooser(self, context: GroupingContext) -> Callable[[Sequence[Any]], int]:
        """Return a chooser that uses Storm's hash of the key. If Storm has none, it uses the hash of the key's pickled bytes."""
        choose = super().chooser(context)
        positions = [context.fields.index(name) for name in self.fields]
        targets = context.targets

        def choose_any(values: Sequence[Any]) -> int:
            try:
                return choose(values)
            except ValueNotHashableError:
                key = _key_bytes([values[position] for position in positions])
                return targets[int.from_bytes(blake2b(key, digest_size=8).digest()) % len(targets)]

        return choose_any


class _KeyPickler(cloudpickle.Pickler):  # type: ignore[misc]  # cloudpickle has no types
    """A pickler that gives equal keys equal bytes.

    With pickle's memo, two equal keys have different bytes if an object occurs twice in one of them. Equal sets and dicts may
    list their contents in different orders.
    """

    def __init__(self, out: BytesIO) -> None:
        super().__init__(out)
        self.fast = True

    def persistent_id(self, thing: Any) -> Any:
        if isinstance(thing, set | frozenset):
            return "set", sorted(map(_key_bytes, thing))
        if isinstance(thing, dict):
            return "dict", sorted(map(_key_bytes, thing.items()))
        return None


def _key_bytes(key: Any) -> bytes:
    out = BytesIO()
    try:
        _KeyPickler(out).dump(key)
    except Exception:  # for example because the key contains itself, which needs the memo
        data: bytes = cloudpickle.dumps(key)
        return data
    return out.getvalue()


class HeronCustomGrouping(CustomStreamGrouping):
    """Runs a user's `ICustomGrouping`. The user passes an object, or the dotted name of its class."""

    def __init__(
        self,
        grouping: ICustomGrouping | str,
        topology: str,
        config: Mapping[str, Any],
        sources: Mapping[str, Mapping[tuple[str, str], int]],
    ) -> None:
        self._grouping = grouping
        # Nothing uses this but the search for code that waits, which does not follow names.
        self._class = _class_named(grouping) if isinstance(grouping, str) else None
        self._topology, self._config, self._sources = topology, dict(config), sources

    def prepare(self, context: GroupingContext, stream: GlobalStreamId, target_tasks: list[int]) -> None:
        """Load and prepare the user's grouping."""
        grouping: Any = self._grouping
        if isinstance(grouping, str):
            grouping = load_class(grouping, "the custom grouping")()
        self._user = grouping
        self._serializer = serializer_of(self._config)
        known = GroupingTopologyContext(context, self._topology, self._config, self._sources)
        grouping.prepare(known, stream.component, stream.stream, target_tasks)

    def choose_tasks(self, task: int, values: Sequence[Any]) -> list[int]:
        """Return the tasks that the user's grouping chooses. The engine checks that they are target tasks (D13)."""
        if self._serializer is not None:
            values = [self._serializer.deserialize(value) for value in values]
        chosen: list[int] = self._user.choose_tasks(list(values))
        return chosen


def _class_named(path: str) -> Any:
    """Return the class at ``path``; None if it can't be loaded here. Then it is loaded in the worker, which reports an error."""
    try:
        return load_class(path, "the custom grouping")
    except ComponentError:
        return None


def protocol_number(grouping: Any) -> int:
    """Return the number of a grouping in Heron's protocol."""
    number: int = getattr(grouping, "gtype", grouping)
    return number


def engine_grouping(
    grouping: Any,
    place: str,
    topology: str,
    config: Mapping[str, Any],
    sources: Mapping[str, Mapping[tuple[str, str], int]],
) -> EngineGrouping:
    """Return the grouping of stormspark for one of Heron's. ``config`` is the configuration of the emitting component.

    Raises `InvalidTopologyError` if a custom grouping has the wrong type. The error's message begins with ``place``.
    """
    if isinstance(grouping, Grouping.FIELDS):
        return AnyFieldsGrouping(grouping.fields)
    if isinstance(grouping, Grouping.CUSTOM):
        user = default_serializer.deserialize(grouping.python_serialized)
        if not isinstance(user, ICustomGrouping | str):
            msg = f"{place}: a custom grouping must be an ICustomGrouping, or its path, given: {user!r}"
            raise InvalidTopologyError(msg)
        called = _class_named(user) if isinstance(user, str) else user
        problem = problem_with_coroutine(called, ("prepare", "choose_tasks"))
        if problem is not None:
            msg = f"{place}: the custom grouping {user!r}: {problem}"
            raise InvalidTopologyError(msg)
        return CustomGrouping(HeronCustomGrouping(user, topology, config, sources))
    # Heron's grouping NONE is a shuffle grouping (D8).
    kinds: dict[int, EngineGrouping] = {
        Grouping.SHUFFLE: ShuffleGrouping(),
        Grouping.NONE: ShuffleGrouping(),
        Grouping.ALL: AllGrouping(),
        Grouping.LOWEST: GlobalGrouping(),
        Grouping.DIRECT: DirectGrouping(),
    }
    return kinds[grouping]
