"""The functions of clojure.core, and the static methods of Java, that topologies use to compute names, numbers and settings.

Each takes and returns the values that `values` describes. A function that gets a wrong value raises TypeError or another usual
exception, and the evaluation makes an `Unknown` of it.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from functools import reduce
from itertools import pairwise
from typing import Any

from stormspark.compat.streamparse.clojure.values import Keyword, printed

__all__ = ["CORE", "call_plain", "truthy"]

#: ``range`` without an end, and long ones, are cut here. No topology has so many components.
_MOST = 10_000


def truthy(value: Any) -> bool:
    """Return whether a value counts as true: all but nil and false do."""
    return value is not None and value is not False


def call_plain(function: Any, *args: Any) -> Any:
    """Call a function, or look something up in a map or set, or by a keyword.

    >>> call_plain(Keyword("p"), {Keyword("p"): 2}), call_plain({"a": 1}, "b", 0)
    (2, 0)
    """
    if isinstance(function, Keyword):
        return _get(args[0], function, *args[1:])
    if isinstance(function, dict | frozenset):
        return _get(function, *args)
    if isinstance(function, tuple):
        return function[args[0]]
    if not callable(function):
        msg = f"{printed(function)} is not a function"
        raise TypeError(msg)
    return function(*args)


def _text(*values: Any) -> str:
    return "".join(
        "" if value is None else value if isinstance(value, str) else printed(value) for value in values
    )


def _get(where: Any, key: Any, otherwise: Any = None) -> Any:
    if isinstance(where, dict):
        return where.get(key, otherwise)
    if isinstance(where, frozenset):
        return key if key in where else otherwise
    if isinstance(where, tuple | str) and isinstance(key, int):
        return where[key] if 0 <= key < len(where) else otherwise
    return otherwise


def _seq(value: Any) -> tuple[Any, ...]:
    if value is None:
        return ()
    if isinstance(value, dict):
        return tuple(value.items())
    return tuple(value)


def _conj(where: Any, *values: Any) -> Any:
    if isinstance(where, dict):
        return {**where, **_merged(*(dict([one]) if isinstance(one, tuple) else one for one in values))}
    if isinstance(where, frozenset):
        return where | set(values)
    return (*_seq(where), *values)


def _into(where: Any, values: Any) -> Any:
    return _conj(where, *_seq(values))


def _merged(*maps: Mapping[Any, Any] | None) -> dict[Any, Any]:
    merged: dict[Any, Any] = {}
    for one in maps:
        merged.update(one or {})
    return merged


def _assoc(where: Any, *pairs: Any) -> Any:
    if isinstance(where, tuple):
        items = list(where)
        for at, value in zip(pairs[::2], pairs[1::2], strict=True):
            items[at : at + 1] = [value]
        return tuple(items)
    return {**(where or {}), **dict(zip(pairs[::2], pairs[1::2], strict=True))}


def _hash_map(*pairs: Any) -> dict[Any, Any]:
    return dict(zip(pairs[::2], pairs[1::2], strict=True))


def _name(value: Any) -> str:
    return value.name.rpartition("/")[2] if isinstance(value, Keyword) else str(value)


def _number(text: Any) -> int:
    return int(str(text))


def _divided(first: Any, *others: Any) -> Any:
    if not others:
        first, others = 1, (first,)
    result = first
    for one in others:
        exact = isinstance(result, int | Fraction) and isinstance(one, int | Fraction)
        result = Fraction(result) / one if exact else result / one
    return int(result) if isinstance(result, Fraction) and result.denominator == 1 else result


def _pairwise(test: Callable[[Any, Any], bool]) -> Callable[..., bool]:
    return lambda *values: all(test(a, b) for a, b in pairwise(values))


def _map(function: Any, *collections: Any) -> tuple[Any, ...]:
    return tuple(call_plain(function, *args) for args in zip(*map(_seq, collections), strict=False))


def _apply(function: Any, *args: Any) -> Any:
    return call_plain(function, *args[:-1], *_seq(args[-1]))


def _reduce(function: Any, *args: Any) -> Any:
    *first, values = args
    return reduce(lambda a, b: call_plain(function, a, b), _seq(values), *first)


def _range(*bounds: int) -> tuple[int, ...]:
    return tuple(range(*bounds)[:_MOST]) if bounds else tuple(range(_MOST))


def _joined(*args: Any) -> str:
    between, values = args if len(args) == 2 else ("", args[0])
    return _text(between).join(_text(one) for one in _seq(values))


def _split(text: str, pattern: Any, most: int = 0) -> tuple[str, ...]:
    return tuple(pattern.split(text, most - 1 if most else 0))


def _update(where: Any, key: Any, function: Any, *args: Any) -> Any:
    return {**(where or {}), key: call_plain(function, _get(where, key), *args)}


def _get_in(where: Any, keys: Iterable[Any], otherwise: Any = None) -> Any:
    for key in keys:
        where = _get(where, key)
    return otherwise if where is None else where


#: Functions by name. A name with a namespace or a class is found by both parts, a name of clojure.core by the second alone.
CORE: Mapping[str, Callable[..., Any]] = {
    "str": _text,
    "name": _name,
    "keyword": lambda name: Keyword(_name(name)),
    "format": lambda pattern, *args: pattern % args,
    "get": _get,
    "get-in": _get_in,
    "assoc": _assoc,
    "dissoc": lambda where, *keys: {key: value for key, value in where.items() if key not in keys},
    "update": _update,
    "merge": _merged,
    "select-keys": lambda where, keys: {key: where[key] for key in keys if key in where},
    "hash-map": _hash_map,
    "array-map": _hash_map,
    "vector": lambda *values: values,
    "vec": _seq,
    "list": lambda *values: values,
    "seq": lambda value: _seq(value) or None,
    "set": lambda values: frozenset(_seq(values)),
    "concat": lambda *parts: tuple(one for part in parts for one in _seq(part)),
    "conj": _conj,
    "cons": lambda first, rest: (first, *_seq(rest)),
    "into": _into,
    "zipmap": lambda keys, values: dict(zip(_seq(keys), _seq(values), strict=False)),
    "keys": tuple,
    "vals": lambda where: tuple(where.values()),
    "count": lambda value: len(_seq(value)),
    "first": lambda values: next(iter(_seq(values)), None),
    "second": lambda values: _get(_seq(values), 1),
    "last": lambda values: _seq(values)[-1] if _seq(values) else None,
    "rest": lambda values: _seq(values)[1:],
    "next": lambda values: _seq(values)[1:] or None,
    "nth": lambda values, at: _seq(values)[at],
    "take": lambda n, values: _seq(values)[:n],
    "drop": lambda n, values: _seq(values)[n:],
    "range": _range,
    "repeat": lambda n, value: (value,) * min(n, _MOST),
    "map": _map,
    "mapv": _map,
    "filter": lambda test, values: tuple(one for one in _seq(values) if truthy(call_plain(test, one))),
    "remove": lambda test, values: tuple(one for one in _seq(values) if not truthy(call_plain(test, one))),
    "reduce": _reduce,
    "apply": _apply,
    "identity": lambda value: value,
    "not": lambda value: not truthy(value),
    "nil?": lambda value: value is None,
    "some?": lambda value: value is not None,
    "empty?": lambda values: not _seq(values),
    "contains?": lambda where, key: key in where,
    "string?": lambda value: isinstance(value, str),
    "number?": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "=": _pairwise(lambda a, b: a == b),
    "==": _pairwise(lambda a, b: a == b),
    "not=": lambda *values: not _pairwise(lambda a, b: a == b)(*values),
    "<": _pairwise(lambda a, b: a < b),
    ">": _pairwise(lambda a, b: a > b),
    "<=": _pairwise(lambda a, b: a <= b),
    ">=": _pairwise(lambda a, b: a >= b),
    "+": lambda *values: sum(values),
    "-": lambda first, *others: first - sum(others) if others else -first,
    "*": lambda *values: math.prod(values),
    "/": _divided,
    "quot": lambda a, b: math.trunc(Fraction(a) / b),
    "rem": lambda a, b: int(math.fmod(a, b)),
    "mod": lambda a, b: a % b,
    "inc": lambda value: value + 1,
    "dec": lambda value: value - 1,
    "max": max,
    "min": min,
    "int": int,
    "long": int,
    "double": float,
    "boolean": truthy,
    "Integer/parseInt": _number,
    "Integer/valueOf": _number,
    "Long/parseLong": _number,
    "Long/valueOf": _number,
    "Integer.": _number,
    "Long.": _number,
    "Boolean/parseBoolean": lambda text: str(text).lower() == "true",
    "Math/max": max,
    "Math/min": min,
    "System/getenv": lambda *name: os.environ.get(name[0]) if name else dict(os.environ),
    "string/join": _joined,
    "string/split": _split,
    "string/upper-case": lambda text: text.upper(),
    "string/lower-case": lambda text: text.lower(),
    "string/trim": lambda text: text.strip(),
    "string/replace": lambda text, old, new: text.replace(old, new),
    "string/blank?": lambda text: not (text or "").strip(),
}
