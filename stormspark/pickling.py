"""Pickles users' objects, such as each component that is declared (A3), and says which part of an object can't be pickled.
Unpickles them on any thread.
"""

from __future__ import annotations

import inspect
import io
import pickle
import sys
from collections import ChainMap
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from importlib import import_module
from threading import RLock
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any, ClassVar

import cloudpickle
from cloudpickle.cloudpickle import subimport

from stormspark.errors import SerializationError

__all__ = ["dumped", "pickled", "unpickled", "use_unfinished_imports"]

#: For how many seconds one `unpickled` waits for the imports of another. A module whose import never ends must not hold up all
#: others.
TURN_SECS = 10.0

_TURN = RLock()

#: What PySpark's error says if something that belongs to the driver is pickled.
_OF_SPARK = "CONTEXT_ONLY_VALID_ON_DRIVER"
_MADE_THERE = (
    "rows of a DataFrame are emitted by DataFrameSpout(lambda spark: ..., fields), which makes it there"
)


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
cannot pickle '_thread.lock' object; make it in open()
    """
    try:
        return dumped(thing)
    except Exception as error:
        culprits = list(_culprits(thing))
        because = f" because of {', '.join(culprits)}" if culprits else ""
        if _OF_SPARK in str(error):
            msg = f"{place} can't be pickled{because}: Spark's sessions and DataFrames stay in the driver; {_MADE_THERE}"
            raise SerializationError(msg) from error
        msg = f"{place} can't be pickled{because}: {error}; {instead}"
        raise SerializationError(msg) from error


def dumped(thing: object) -> bytes:
    """Pickle ``thing`` as cloudpickle does, but let code that is pickled by value keep the name of its file.

    cloudpickle 3.1.3 leaves the name out. Then no error of a class of a notebook or a script could name the user's line.

    >>> unpickled(dumped(lambda: 1)).__code__.co_filename == (lambda: 1).__code__.co_filename
    True
    """
    sink = io.BytesIO()
    _Pickler(sink).dump(thing)
    return sink.getvalue()


def _reduced(code: CodeType) -> tuple[Any, ...]:
    make, arguments = cloudpickle.Pickler.dispatch_table[CodeType](code)
    return make, tuple(code.co_filename if one == _NO_FILE else one for one in arguments)


#: What cloudpickle 3.1.3 writes in place of the name of the file.
_NO_FILE = "<dynamic-code>"


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    dispatch_table: ClassVar[Any] = ChainMap({CodeType: _reduced}, cloudpickle.Pickler.dispatch_table)


def unpickled(data: bytes) -> Any:
    """Unpickle what `pickled` has made. Many threads may do so at the same time, because executors start on threads of their own
    (A16).

    Unpickling imports the modules of an object's classes. Only one thread at a time imports here: if two threads import modules
    of one package, and the package imports these modules itself, each thread may wait for the other one, and Python raises
    "deadlock detected by _ModuleLock" in one of them. If another thread imports a module now, its import ends first, unless the
    module is one of those that `use_unfinished_imports` has found.

    >>> unpickled(pickled([1, 2], "a list", "use another one"))
    [1, 2]
    """
    return _Unpickler(io.BytesIO(data)).load()


def use_unfinished_imports() -> None:
    """Let `unpickled` use what the modules that the calling thread imports now have defined so far.

    A module may submit a topology while it is imported, and wait for its executors. They must not wait for the end of the import.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name = str(frame.f_globals.get("__name__"))
        if frame.f_code.co_name == "<module>" and _is_imported_now(sys.modules.get(name)):
            _UNFINISHED.add(name)
        frame = frame.f_back


#: The names of the modules that `use_unfinished_imports` has found.
_UNFINISHED: set[str] = set()


class _Unpickler(pickle.Unpickler):
    """Looks into the modules that are there before it imports."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == (subimport.__module__, subimport.__name__):
            return _imported
        found: Any = _usable(module)
        for part in name.split("."):
            found = getattr(found, part, _MISSING)
        if found is not _MISSING:
            return found
        with _one_at_a_time():
            return super().find_class(module, name)


_MISSING = object()


def _imported(name: str) -> ModuleType:
    """Return a module that a pickled function uses."""
    if (module := _usable(name)) is not None:
        return module
    with _one_at_a_time():
        return import_module(name)


def _usable(name: str) -> ModuleType | None:
    """Return a module, if it can be used without waiting for the end of its import. Otherwise return None."""
    module = sys.modules.get(name)
    return None if _is_imported_now(module) and name not in _UNFINISHED else module


def _is_imported_now(module: ModuleType | None) -> bool:
    """Return whether a module's import has begun and has not ended. Python itself asks this of the module's spec."""
    return bool(getattr(getattr(module, "__spec__", None), "_initializing", False))


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    has_turn = _TURN.acquire(timeout=TURN_SECS)
    try:
        yield
    finally:
        if has_turn:
            _TURN.release()


def _culprits(thing: object) -> Iterator[str]:
    if inspect.isfunction(thing):
        yield from _of_function(thing)
        return
    found = False
    for name, value in getattr(thing, "__dict__", {}).items():
        if not _can_pickle(value):
            found = True
            yield from list(_culprits(value)) if inspect.isfunction(value) else [f"attribute {name!r}"]
    if not found:
        yield from _of_classes(thing)


def _of_function(function: FunctionType, classes: tuple[type, ...] = ()) -> Iterator[str]:
    """Yield the variables of a function that can't be pickled. ``classes`` are none: a method often refers to its class."""
    try:
        used = inspect.getclosurevars(function)
    except ValueError:  # one of its variables has no value yet
        return
    for name, value in {**used.globals, **used.nonlocals}.items():
        if not (any(value is one for one in classes) or _can_pickle(value)):
            yield f"{name!r} in function {function.__name__}"


def _functions_in(value: object) -> list[FunctionType]:
    """Return the functions of a class attribute that is a method or a property; an empty list for anything else."""
    if isinstance(value, property):
        parts: list[Any] = [value.fget, value.fset, value.fdel]
    elif isinstance(value, cached_property):
        parts = [value.func]
    else:
        parts = [value.__func__ if isinstance(value, staticmethod | classmethod) else value]
    return [part for part in parts if inspect.isfunction(part)]


def _of_classes(thing: object) -> Iterator[str]:
    """Yield the attributes of the object's classes that can't be pickled. A class is pickled with its attributes if no worker can
    import it, such as a class of ``__main__``.
    """
    for cls in type(thing).__mro__:
        if _can_pickle(cls):
            continue
        for name, value in vars(cls).items():
            if functions := _functions_in(value):
                for function in functions:
                    yield from _of_function(function, type(thing).__mro__)
                continue
            # Pickling a class leaves these out.
            left_out = (
                name == "_abc_impl" or inspect.isgetsetdescriptor(value) or inspect.ismemberdescriptor(value)
            )
            if not (left_out or _can_pickle(value)):
                yield f"class attribute {name!r} of {cls.__qualname__}"


def _can_pickle(value: object) -> bool:
    try:
        cloudpickle.dumps(value)
    except Exception:
        return False
    return True
