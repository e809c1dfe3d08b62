"""A reader for pickles in which some values can't be unpickled. It reads all other values.

A frame holds many tuples in one pickle, because one call for all of them is cheap. If one value raises while it is unpickled,
no tuple of the frame would arrive. So this module reads the same bytes once more, with the pure Python unpickler of the
standard library. Some steps of an unpickler run code of a value's class. The module catches the errors of these steps, and puts
a `Damaged` in place of the object that a step would have made.

Values may share parts, because a pickle contains each object only once. So this reader remembers which objects contain which
other objects. An object that contains a damaged object is damaged itself. The order in which objects were made does not matter,
and objects may refer to each other.

As long as all values can be read, this module is not used and costs nothing.
"""

from __future__ import annotations

import copyreg
import io
import pickle
from collections.abc import Callable, Collection, Iterable
from typing import Any, ClassVar

__all__ = ["Damaged", "Salvage", "error_text", "salvage"]

#: Types whose objects contain no other objects. Many values may share an object of such a type.
_ATOMS = frozenset({type(None), bool, int, float, complex, str, bytes})
_MOST = 500


class Damaged:
    """A stand-in for an object that could not be made. ``kind`` is its class, or the function that should have made it.

    If the failed call should have filled another object, ``meant_for`` is that object.
    """

    def __init__(self, kind: str, meant_for: Any = None) -> None:
        self.kind, self.meant_for = kind, meant_for


class Salvage:
    """The result of a read. ``whole`` is the object that was pickled; None if the reader could not read the pickle to its end."""

    def __init__(self, whole: Any, damage: dict[int, str], alive: list[Any]) -> None:
        self.whole = whole
        self._damage = damage
        self._alive = alive  # keeps damaged objects alive, so that no other object gets the id of one of them

    def damage_of(self, value: Any) -> str | None:
        """Return why ``value``, a part of the result, differs from the pickled object; None if it does not differ.

        >>> read = salvage(pickle.dumps(["fine", range(2)]))
        >>> read.whole, read.damage_of(read.whole)
        (['fine', range(0, 2)], None)
        """
        return None if type(value) in _ATOMS else self._damage.get(id(value))


def error_text(error: object) -> str:
    """Return the type and message of an error, even if its class can't make the message.

    >>> error_text(KeyError("price"))
    "KeyError: 'price'"
    """
    try:
        text = f"{type(error).__name__}: {error}"
    except Exception as second:
        text = f"{type(error).__name__} (its message can't be made: {type(second).__name__})"
    return text[:_MOST]


def salvage(data: bytes | memoryview, keep: Collection[type] = ()) -> Salvage:
    """Read a pickle, with a `Damaged` in place of each object that can't be made. Objects of classes in ``keep`` are made even if
    their parts are damaged.

    Raises nothing but `KeyboardInterrupt`.
    """
    reader = _Reader(data, frozenset(keep))
    try:
        whole = reader.load()
    except KeyboardInterrupt:
        raise
    except BaseException:  # the data is no pickle, or it is cut off, so nothing in it can be trusted
        whole = None
    return Salvage(whole, reader.damage, reader.alive)


def _name_of(thing: Any) -> str:
    module, name = getattr(thing, "__module__", None), getattr(thing, "__qualname__", None)
    if name is None:
        return thing.kind if isinstance(thing, Damaged) else type(thing).__qualname__
    return name if module in (None, "builtins") else f"{module}.{name}"


_Unpickler: Any = pickle._Unpickler  # the standard library's, written in Python; dill and others build on it


class _Reader(_Unpickler):  # type: ignore[misc]
    """An unpickler that catches errors. Its methods replace steps of `pickle` that may run user code, or that fill containers."""

    def __init__(self, data: bytes | memoryview, keep: frozenset[type]) -> None:
        super().__init__(io.BytesIO(data))
        self.damage: dict[int, str] = {}
        self.alive: list[Any] = []
        self._keep = keep
        self._containers: dict[int, list[int]] = {}  # for the id of each part, the ids of its containers

    # -- containers and parts --------------------------------------------------------------------------------

    def _contains(self, container: Any, parts: Iterable[Any]) -> None:
        if type(container) in _ATOMS:
            return
        self.alive.append(container)
        for part in parts:
            if type(part) not in _ATOMS and part is not container:
                self.alive.append(part)
                self._containers.setdefault(id(part), []).append(id(container))
                if (reason := self.damage.get(id(part))) is not None:
                    self._is_damaged(container, reason)

    def _is_damaged(self, damaged: Any, reason: str) -> None:
        """Mark an object as damaged, and every object that contains it."""
        self.alive.append(damaged)
        found = [id(damaged)]
        while found:
            one = found.pop()
            if one not in self.damage:
                self.damage[one] = reason
                found += self._containers.get(one, ())

    def _made(self, maker: Any, parts: tuple[Any, ...], make: Callable[[], Any]) -> Any:
        """Return the object that ``make`` makes of ``parts``, or a `Damaged` in its place."""
        reason = self.damage.get(id(maker))
        if reason is None and not (isinstance(maker, type) and maker in self._keep):
            reason = next((why for part in parts if (why := self._damage_of(part))), None)
        if reason is None:
            try:
                made = make()
            except KeyboardInterrupt:
                raise
            except BaseException as error:
                reason = f"{_name_of(maker)}: {error_text(error)}"
        if reason is not None:
            # To fill an object, pickle may call a function with the object and its state, and drop the result; see `load_pop`.
            fills = len(parts) == 2 and not isinstance(maker, type)
            made = Damaged(_kind(maker, parts), parts[0] if fills else None)
            self._is_damaged(made, reason)
        self._contains(made, (maker, *parts))
        return made

    def _damage_of(self, part: Any) -> str | None:
        return None if type(part) in _ATOMS else self.damage.get(id(part))

    def _filled(self, container: Any, parts: Iterable[Any], fill: Callable[[], Any]) -> None:
        """Let ``fill`` put ``parts`` into a container that exists already."""
        if not isinstance(container, Damaged):
            try:
                fill()
            except KeyboardInterrupt:
                raise
            except BaseException as error:
                self._is_damaged(container, f"{_name_of(type(container))}: {error_text(error)}")
        self._contains(container, parts)

    # -- steps -----------------------------------------------------------------------------------------------

    def find_class(self, module: str, name: str) -> Any:
        return self._found(f"{module}.{name}", lambda: super(_Reader, self).find_class(module, name))

    def get_extension(self, code: int) -> None:
        registered = copyreg._inverted_registry.get(code)  # type: ignore[attr-defined]
        self.append(self.find_class(*(registered or ("copyreg", f"extension {code}"))))

    def load_pop(self) -> None:
        top = self.stack[-1] if self.stack else None
        super().load_pop()
        if isinstance(top, Damaged) and top.meant_for is not None:
            self._is_damaged(top.meant_for, self.damage[id(top)])

    def _found(self, name: str, find: Callable[[], Any]) -> Any:
        try:
            return find()
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            missing = Damaged(name)
            self._is_damaged(missing, f"{name}: {error_text(error)}")
            return missing

    def load_reduce(self) -> None:
        args, function = self.stack.pop(), self.stack[-1]
        parts = args if type(args) is tuple else (args,)
        self.stack[-1] = self._made(function, parts, lambda: function(*args))

    def load_newobj(self) -> None:
        args, kind = self.stack.pop(), self.stack.pop()
        parts = args if type(args) is tuple else (args,)
        self.append(self._made(kind, parts, lambda: kind.__new__(kind, *args)))

    def load_newobj_ex(self) -> None:
        kwargs, args, kind = self.stack.pop(), self.stack.pop(), self.stack.pop()
        self.append(self._made(kind, (args, kwargs), lambda: kind.__new__(kind, *args, **kwargs)))

    def load_build(self) -> None:
        state, built = self.stack[-1], self.stack[-2]
        build = super().load_build
        reason = None if type(built) in self._keep else self._damage_of(state) or self._damage_of(built)
        if reason is not None:
            self.stack.pop()
            self._is_damaged(built, reason)
            self._contains(built, (state,))
            return
        self._filled(built, (state,), build)  # `build` first takes the state off the stack

    def _load_tuple(self, load: str) -> None:
        getattr(super(), load)()
        self._contains(self.stack[-1], self.stack[-1])

    def load_tuple1(self) -> None:
        self._load_tuple("load_tuple1")

    def load_tuple2(self) -> None:
        self._load_tuple("load_tuple2")

    def load_tuple3(self) -> None:
        self._load_tuple("load_tuple3")

    def load_tuple(self) -> None:
        self._load_tuple("load_tuple")

    def load_frozenset(self) -> None:
        items = self.pop_mark()
        self.append(self._made(frozenset, tuple(items), lambda: frozenset(items)))

    def load_append(self) -> None:
        item, to = self.stack.pop(), self.stack[-1]
        self._filled(to, (item,), lambda: to.append(item))

    def load_appends(self) -> None:
        items, to = self.pop_mark(), self.stack[-1]
        # A list has `extend`; another class has at least `append`.
        self._filled(
            to, items, lambda: to.extend(items) if hasattr(to, "extend") else [to.append(i) for i in items]
        )

    def load_setitem(self) -> None:
        value, key = self.stack.pop(), self.stack.pop()
        to = self.stack[-1]
        self._filled(to, (key, value), lambda: to.__setitem__(key, value))

    def load_setitems(self) -> None:
        items, to = self.pop_mark(), self.stack[-1]
        self._filled(
            to, items, lambda: [to.__setitem__(*pair) for pair in zip(items[::2], items[1::2], strict=True)]
        )

    def load_additems(self) -> None:
        items, to = self.pop_mark(), self.stack[-1]
        self._filled(
            to, items, lambda: to.update(items) if isinstance(to, set) else [to.add(i) for i in items]
        )

    dispatch: ClassVar[dict[int, Callable[[Any], None]]] = {
        **_Unpickler.dispatch,
        pickle.POP[0]: load_pop,
        pickle.REDUCE[0]: load_reduce,
        pickle.NEWOBJ[0]: load_newobj,
        pickle.NEWOBJ_EX[0]: load_newobj_ex,
        pickle.BUILD[0]: load_build,
        pickle.TUPLE1[0]: load_tuple1,
        pickle.TUPLE2[0]: load_tuple2,
        pickle.TUPLE3[0]: load_tuple3,
        pickle.TUPLE[0]: load_tuple,
        pickle.FROZENSET[0]: load_frozenset,
        pickle.APPEND[0]: load_append,
        pickle.APPENDS[0]: load_appends,
        pickle.SETITEM[0]: load_setitem,
        pickle.SETITEMS[0]: load_setitems,
        pickle.ADDITEMS[0]: load_additems,
    }


def _kind(maker: Any, parts: tuple[Any, ...]) -> str:
    """Return a name for the object that could not be made: the name of its maker. If the maker is one of pickle's own
    functions, return the name of the class in its first argument.
    """
    if getattr(maker, "__module__", None) == "copyreg" and parts:
        return _name_of(parts[0])
    return _name_of(maker)
