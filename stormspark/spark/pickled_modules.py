"""Finds the modules that somebody who loads a pickle has to import, without loading it."""

from __future__ import annotations

import pickletools
from collections.abc import Iterator
from itertools import islice

__all__ = ["modules_in"]

#: A pickle with large values has millions of steps, nearly all of them for values. The classes are named near its beginning.
_MOST_STEPS = 200_000
_STRINGS = {"SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8", "UNICODE"}
_PUTS = {"PUT", "BINPUT", "LONG_BINPUT"}
_GETS = {"GET", "BINGET", "LONG_BINGET"}
_SUBIMPORT = "subimport"


def modules_in(data: bytes) -> set[str]:
    """Return the names of the modules of all classes and functions that a pickle refers to, and of pickles inside of it.

    >>> import cloudpickle, decimal, fractions
    >>> sorted(modules_in(cloudpickle.dumps([cloudpickle.dumps(fractions.Fraction), decimal.Decimal])))
    ['decimal', 'fractions']
    >>> "fractions" in modules_in(cloudpickle.dumps(lambda: fractions.Fraction(1)))
    True
    """
    return set(_named(data))


def _named(data: bytes) -> Iterator[str]:
    strings: list[str] = []  # in the order in which they came on the stack
    memo: dict[int, object] = {}
    top: object = None  # what is on top of the stack, if it is a string
    imports = False  # whether the next string names a module that cloudpickle imports
    for step, argument, _ in islice(pickletools.genops(data), _MOST_STEPS):
        if step.name in ("FRAME", "PROTO"):
            continue
        if step.name == "MEMOIZE":
            memo[len(memo)] = top
            continue
        if step.name in _PUTS:
            memo[int(argument or 0)] = top
            continue
        top = memo.get(int(argument or 0)) if step.name in _GETS else None
        if step.name in _STRINGS:
            top = argument
        if isinstance(top, str):
            strings.append(top)
            if imports:
                yield top
            imports = False
        elif step.name == "STACK_GLOBAL" and len(strings) >= 2:
            imports = strings[-1] == _SUBIMPORT
            yield strings[-2]
        elif step.name == "GLOBAL":
            module, _, name = str(argument).partition(" ")
            imports = name == _SUBIMPORT
            yield module
        elif isinstance(argument, bytes | bytearray) and argument[:1] == b"\x80":
            try:
                yield from _named(bytes(argument))
            except ValueError:
                continue  # these bytes are no pickle
