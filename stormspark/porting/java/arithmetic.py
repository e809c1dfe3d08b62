"""Java's literals and operators, for values that are known."""

from __future__ import annotations

from typing import Any

from stormspark.porting.java.values import Const, Function, Instance, Items, Pairs, Value

__all__ = ["are_same", "calculated", "unescaped"]


def unescaped(literal: str) -> str:
    r"""The text of a literal, with its escapes resolved.

    >>> unescaped(r"a\tb\u0041")
    'a\tbA'
    """
    if "\\" not in literal:
        return literal
    simple = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "s": " ", "0": "\0"}
    result, rest = [], iter(literal)
    for letter in rest:
        if letter != "\\":
            result.append(letter)
            continue
        following = next(rest, "")
        if following == "u":
            digits = "".join(next(rest, "") for _ in range(4))
            try:
                result.append(chr(int(digits, 16)))
            except ValueError:
                result.append(digits)
        else:
            result.append(simple.get(following, following))
    return "".join(result)


def calculated(operator: str, a: Any, b: Any) -> Any:
    """The result of Java's operator; None if it is not known."""
    if operator == "+" and (isinstance(a, str) or isinstance(b, str)):
        return _shown(a) + _shown(b)
    if (
        isinstance(a, bool)
        or isinstance(b, bool)
        or not isinstance(a, int | float)
        or not isinstance(b, int | float)
    ):
        return None
    match operator:
        case "+":
            return a + b
        case "-":
            return a - b
        case "*":
            return a * b
        case "/" if b:
            # Java rounds towards zero.
            return (abs(a) // abs(b)) * (1 if (a < 0) == (b < 0) else -1) if _are_ints(a, b) else a / b
        case "%" if b and _are_ints(a, b):
            return abs(a) % abs(b) * (-1 if a < 0 else 1)
    return None


def are_same(a: Value, b: Value) -> bool | None:
    """The result of Java's ``==`` for plain values, and for an object and null; None if it is not certain."""
    for one, other in ((a, b), (b, a)):
        if isinstance(one, Const) and one.value is None and not one.unless:
            if isinstance(other, Const):
                return None if other.unless else other.value is None
            return (
                False
                if isinstance(other, Instance | Items | Pairs | Function) and not _is_given(other)
                else None
            )
    if isinstance(a, Const) and isinstance(b, Const) and not a.unless and not b.unless:
        both = (a.value, b.value)
        if all(isinstance(one, int | float | bool) for one in both):
            return bool(a.value == b.value)
    return None


def _is_given(value: Value) -> bool:
    """Whether a library's static method returned the value. Such a value may be null."""
    return isinstance(value, Instance) and value.simple_type[:1].islower()


def _are_ints(a: object, b: object) -> bool:
    return isinstance(a, int) and isinstance(b, int)


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else str(value)
