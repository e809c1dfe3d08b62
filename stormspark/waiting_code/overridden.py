"""Keeps what classes override, and finds out whether code reaches it nevertheless, by ``super``. No user code runs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import chain
from types import FunctionType
from typing import Any, Generic, NamedTuple, TypeVar

from stormspark.waiting_code.known_code import Verdict, verdict
from stormspark.waiting_code.real_attributes import ids, module_of, mro, name_of, namespace
from stormspark.waiting_code.uses import ANY_PARENT, UNKNOWN, ParentOf

__all__ = ["LEADS_TO_BASES", "Overridden"]

_P = TypeVar("_P")

#: Names by which code gets at the base classes of a class that it need not name.
LEADS_TO_BASES = frozenset("__base__ __bases__ __mro__ get_original_bases getmro mro super".split())

#: If code takes such a member from a class, Python gives it the member, and the class itself plays no part.
_TAKEN_ALONE = ids(FunctionType, staticmethod, property)


class _Member(NamedTuple, Generic[_P]):
    """A member of a base class that another class overrides."""

    value: object
    place: _P
    #: The ids of the classes from which ``super`` reaches this member: the one that overrides it, and all those between.
    reached_from: frozenset[int]


class Overridden(Generic[_P]):
    """The members that are overridden in the classes that were read so far, each with its place in messages.

    >>> class Base:
    ...     def fetch(self): ...
    >>> class Mine(Base):
    ...     def fetch(self): ...
    >>> overridden = Overridden()
    >>> overridden.reads(Mine)
    >>> overridden.add("fetch", Base.fetch, "the place", [Mine])
    False
    >>> [member is Base.fetch for member, place in overridden.reached(ParentOf(Mine), "fetch")]
    [True]
    """

    def __init__(self) -> None:
        self._members: dict[str, list[_Member[_P]]] = defaultdict(list)
        #: What code reaches by ``super``: the id of the class that ``super`` is told, and the name. None stands for any class and
        #: any name.
        self._reached: set[tuple[int | None, str | None]] = set()
        #: The ids of all classes that were read, and of their bases.
        self._read: set[int] = set()

    def reads(self, cls: type) -> None:
        """Learn that a class is read, with its bases."""
        self._read.update(map(id, mro(cls)))

    def add(self, name: str, value: object, place: _P, overriding: Iterable[type]) -> bool:
        """Keep a member. Return whether code that was found so far reaches it.

        ``overriding`` has the class that overrides it, and all classes between this class and the member's class.
        """
        member = _Member(value, place, frozenset(map(id, overriding)))
        self._members[name].append(member)
        return any(
            (cls, one) in self._reached for cls in (None, *member.reached_from) for one in (None, name)
        )

    def reached(self, parent: object, name: str) -> Iterator[tuple[object, _P]]:
        """Yield the members, with their places, that code reaches which takes ``name`` of ``parent``.

        ``parent`` is a `ParentOf`, or `ANY_PARENT`, which stands for any class and any name.
        """
        cls = parent.cls if type(parent) is ParentOf else UNKNOWN
        told = id(cls) if id(cls) in self._read else None
        asked = None if parent is ANY_PARENT else name
        if (told, asked) in self._reached:
            return
        self._reached.add((told, asked))
        for member in chain(*self._members.values()) if asked is None else self._members.get(asked, ()):
            if told is None or told in member.reached_from:
                yield member.value, member.place

    def named(self, cls: Any, name: str) -> object:
        """Return what code uses that names ``cls.name``: the function, if ``cls`` is read already, or is a base of such a class.

        In all other cases it is the class itself, so that all of it is read.
        """
        meta = type(cls)
        if id(cls) in self._read and verdict(module_of(meta), name_of(meta)) is Verdict.COMPUTES:
            value = next((namespace(one)[name] for one in mro(cls) if name in namespace(one)), None)
            if id(type(value)) in _TAKEN_ALONE:
                return value
        return cls
