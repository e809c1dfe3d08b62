"""Pickles users' objects, such as each component that is declared (A3), and says which part of an object can't be pickled.
Unpickles them on any thread.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from threading import RLock
from typing import Any

import cloudpickle

from stormspark.errors import SerializationError

__all__ = ["pickled", "unpickled"]

#: How long one `unpickled` waits for another, in seconds. An object whose unpickling never ends must not hold up all others.
TURN_SECS = 10.0

_TURN = RLock()


def pickled(thing: object, place: str, instead: str) -> bytes:
    """Pickle ``thing``. Raises `SerializationError` if that fails (A2).

    The error names the attributes of ``thing`` that can't be pickled. If ``thing`` is a function, the error names the variables
    that the function uses and that can't be pickled. In the message, ``place`` says what ``thing`` is and where it was declared,
    and ``instead`` says what to do.

    >>> import threading
    >>> def counting(lock=threading.Lock()):
    ...     return lambda: lock.acquire()
    >>> pickled(counting(), "topology.py:3: spout 'n'", "make it in open()")
    Traceback (most recent call last):
    ...
    stormspark.errors.SerializationError: topology.py:3: spout 'n' can't be pickled because of 'lock' in function <lambda>: \
cannot pickle '_thread.lock' object; make it in open() (A2, A3)
    """
    try:
        done: bytes = cloudpickle.dumps(thing)
    except Exception as error:
        culprits = list(_culprits(thing))
        because = f" because of {', '.join(culprits)}" if culprits else ""
        msg = f"{place} can't be pickled{because}: {error}; {instead} (A2, A3)"
        raise SerializationError(msg) from error
    return done


def unpickled(data: bytes) -> Any:
    """Unpickle what `pickled` has made. Only one thread does so at a time.

    Unpickling imports the modules of an object's classes. If two threads import modules of one package at the same time, where
    the package imports these modules itself, each thread may wait for the other one. Python then raises an error in one of them,
    "deadlock detected by _ModuleLock", and executors start on threads of their own (A16).

    >>> unpickled(pickled([1, 2], "a list", "use another one"))
    [1, 2]
    """
    has_turn = _TURN.acquire(timeout=TURN_SECS)
    try:
        return cloudpickle.loads(data)
    finally:
        if has_turn:
            _TURN.release()


def _culprits(thing: object) -> Iterator[str]:
    if inspect.isfunction(thing):
        used = inspect.getclosurevars(thing)
        for name, value in {**used.globals, **used.nonlocals}.items():
            if not _can_pickle(value):
                yield f"{name!r} in function {thing.__name__}"
        return
    for name, value in getattr(thing, "__dict__", {}).items():
        if not _can_pickle(value):
            yield from list(_culprits(value)) if inspect.isfunction(value) else [f"attribute {name!r}"]


def _can_pickle(value: object) -> bool:
    try:
        cloudpickle.dumps(value)
    except Exception:
        return False
    return True
