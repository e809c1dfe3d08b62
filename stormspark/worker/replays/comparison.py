"""The comparison of a replay with the recorded batch. It compares the emits, and the state after the batch."""

from __future__ import annotations

import contextlib
import heapq
import io
import pickle
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from operator import itemgetter
from typing import Any

import cloudpickle

from stormspark.checkpoint.ordered_keys import decode_key
from stormspark.checkpoint.recorded_inputs import Unpicklable
from stormspark.checkpoint.state_table import StateTable
from stormspark.plan.physical import ComponentPlan
from stormspark.worker.replays.result import MISSING, Change, Emitted, Executed, Replay

__all__ = ["compare_emits", "compare_emits_of_calls", "compare_states"]

#: The key under which a state has the pickled attributes of a component (``topology.state.pickle``).
_ATTRIBUTES = "attributes"


def compare_emits(
    kind: str, then: list[Emitted], now: list[Emitted], numbers: list[int] | None
) -> Iterator[str]:
    """Describe the first difference between ``then``, the recorded emits, and ``now``, the emits of the replay.

    Most other differences follow from the first. A difference in the number of emits is described, too. The description calls
    the emits ``kind``. ``numbers``: for each emit in ``now``, the number of its input. ``numbers`` is None if the emits belong
    to no input.
    """
    for position, (old, new) in enumerate(zip(then, now, strict=False)):
        if not _same_emit(old, new):
            where = f" (input {numbers[position]})" if numbers else ""
            yield f"{kind} {position + 1}{where} {_was_and_is(old, new)}"
            break
    if len(then) != len(now):
        yield f"{kind}: {len(then)} were recorded, and there are {len(now)}"


def compare_emits_of_calls(then: Mapping[int, list[Emitted]], now: list[Executed]) -> Iterator[str]:
    """Describe the first differences as `compare_emits` does, for an `AsyncBolt`, whose calls may end in any order.

    ``then`` has the recorded emits of each call, by the number of its input. Only emits of one and the same call have an order.
    """
    pairs = [(executed, then.get(executed.number, [])) for executed in now]
    for executed, recorded in pairs:
        for position, (old, new) in enumerate(zip(recorded, executed.emitted, strict=False)):
            if not _same_emit(old, new):
                yield f"emit {position + 1} of input {executed.number} {_was_and_is(old, new)}"
                break
        else:
            continue
        break
    for executed, recorded in pairs:
        if len(recorded) != len(executed.emitted):
            yield (
                f"emit: {len(recorded)} of input {executed.number} were recorded, and there are {len(executed.emitted)}"
            )
            break


def _same_emit(old: Emitted, new: Emitted) -> bool:
    if old.stream != new.stream:
        return False
    return isinstance(old.values, Unpicklable) or _same(old.values, new.values)


def _was_and_is(old: Emitted, new: Emitted) -> str:
    return f"was {old.values!r} on {old.stream}, and is {new.values!r} on {new.stream}"


def compare_states(
    done: Replay, component: ComponentPlan, table: StateTable, changed: dict[bytes, bytes | None]
) -> None:
    """Add to ``done`` the keys that the replay has changed, and the differences between its result and the state table.

    A row has version 0 before the batch, 1 after the recorded batch, and 2 after the replay.
    """

    def rows(as_of: int, version: int) -> Iterator[tuple[bytes, int, bytes | None]]:
        for found in table.restore(component.id, done.task, as_of):
            for row in found.to_pylist():
                yield row["key"], version, row["value"]

    before = rows(done.batch - 1, 0) if done.batch > table.oldest_txid else iter(())
    then = rows(done.batch, 1)
    now = ((key, 2, value) for key, value in sorted(changed.items()))
    for key, same_key in groupby(heapq.merge(before, then, now), key=itemgetter(0)):
        found = {version: value for _, version, value in same_key}
        was, became = found.get(0), found.get(1)
        is_now = found.get(2, was)
        for name, old, recorded, new in _taken_apart(component, key, was, became, is_now):
            if not _same(old, new):
                done.changes.append(Change(name, old, new))
            if not _same(recorded, new):
                done.differences.append(
                    f"state of key {name!r} became {_shown(recorded)}, and becomes {_shown(new)}"
                )


def _taken_apart(
    component: ComponentPlan, key: bytes, *pickled: bytes | None
) -> Iterable[tuple[Any, Any, Any, Any]]:
    """Return a key with its unpickled values. If the values are pickled attributes, return each attribute with its values
    instead.
    """
    name = decode_key(key)
    values = [MISSING if one is None else _loaded(one) for one in pickled]
    if component.kind_of_state == "pickle" and name == _ATTRIBUTES:
        parts = [_loaded(one) if isinstance(one, bytes) else {} for one in values]
        if all(isinstance(one, dict) for one in parts):
            attributes = dict.fromkeys(
                attribute
                for one in parts
                for attribute, value in one.items()
                if not isinstance(value, _Surrounding)
            )
            return [(f".{one}", *(part.get(one, MISSING) for part in parts)) for one in attributes]
    return [(name, *values)]


class _Surrounding(str):
    """A stand-in for an object that belongs to the process and not to the state."""

    __slots__ = ()


class _WithoutSurroundings(pickle.Unpickler):
    def persistent_load(self, name: str) -> _Surrounding:
        """Return a stand-in for a bolt's collector or context, by its name."""
        return _Surrounding(f"<{name}>")


def _loaded(data: bytes) -> Any:
    try:
        return _WithoutSurroundings(io.BytesIO(data)).load()
    except Exception:
        return data


def _same(one: Any, other: Any) -> bool:
    """Return whether two values are equal, or equal when pickled.

    Some values don't compare as equal although they are: NaN, arrays, and objects without ``__eq__``.
    """
    if one is MISSING or other is MISSING:
        return one is other
    with contextlib.suppress(Exception):
        if bool(one == other):
            return True
    with contextlib.suppress(Exception):
        return cloudpickle.dumps(one) == cloudpickle.dumps(other)  # type: ignore[no-any-return]
    return False


def _shown(value: Any) -> str:
    return "nothing" if value is MISSING else repr(value)
