"""The setting ``topology.testing.always.try.serialize``, which pickles every tuple, even if the tuple stays in its worker (C8).

Inside a worker, tuples are not copied. So nobody notices that a value can't be pickled, or that pickle changes it, until a
receiver happens to be in another worker. With this setting each emit sends a copy that was pickled and unpickled, as if it came
from another worker.
"""

from __future__ import annotations

import pickle
import reprlib
from typing import Any

import cloudpickle

from stormspark.acker import Roots
from stormspark.api import TupleSource
from stormspark.errors import SerializationError
from stormspark.worker.tuples.outlets import Outlet, WrappedOutlet

__all__ = ["serializing"]

_repr = reprlib.Repr()
_repr.maxother = _repr.maxstring = 100


def serializing(outlet: Outlet) -> Outlet:
    """Wrap ``outlet`` so that it pickles every tuple.

    An emit of a tuple that can't be pickled or unpickled raises `SerializationError`, before anything is sent.
    """
    return _Serializing(outlet)


class _Serializing(WrappedOutlet):
    def as_sent(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        return _copied(values, self.source)

    def send(self, values: tuple[Any, ...], roots: Roots) -> list[int]:
        return super().send(_copied(values, self.source), roots)

    def send_direct(self, task: int, values: tuple[Any, ...], roots: Roots) -> int:
        return super().send_direct(task, _copied(values, self.source), roots)


def _copied(values: tuple[Any, ...], source: TupleSource) -> tuple[Any, ...]:
    try:
        copy: tuple[Any, ...] = pickle.loads(cloudpickle.dumps(values, 5))
    except Exception as error:
        culprit = _culprit(values, source)
        msg = (
            f"component {source.component!r}, task {source.task}, stream {source.stream!r}: {culprit} can't go to another "
            f"worker, {type(error).__name__}: {error}. Emit what can be pickled; this topology tries it with every tuple "
            f"(topology.testing.always.try.serialize)"
        )
        raise SerializationError(msg) from error
    return copy


def _culprit(values: tuple[Any, ...], source: TupleSource) -> str:
    for name, value in zip(source.fields, values, strict=True):
        try:
            pickle.loads(cloudpickle.dumps(value, 5))
        except Exception:
            return f"field {name!r} holds {_repr.repr(value)} of type {type(value).__qualname__}, which"
    return "the tuple"
