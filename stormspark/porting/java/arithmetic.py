"""Evaluates Java's literals and operators, as far as the values are known."""

from __future__ import annotations

import re
from typing import Any

from stormspark.porting.java.values import Const, Function, Instance, Items, Pairs, Value

__all__ = ["Char", "are_same", "calculated", "text_of_block", "unescaped"]


#: Java's escape sequences: a Unicode number, an octal number, the end of a line in a text block, or a single character.
_ESCAPE = re.compile(r"\\(?:u+([0-9a-fA-F]{4})|([0-3]?[0-7]{1,2})|(\n)|(.))", re.DOTALL)
_LETTERS = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "s": " "}


class Char(str):
    """A char of Java. In arithmetic it counts as a number.

    >>> calculated("+", Char("a"), 1), calculated("+", Char("a"), "b"), calculated("-", Char("c"), Char("a"))
    (98, 'ab', 2)
    """

    __slots__ = ()


def unescaped(literal: str) -> str:
    r"""Return the text of a literal, with its escapes resolved.

    >>> unescaped(r"a\tb\u0041\101\0")
    'a\tbAA\x00'
    """

    def resolved(found: re.Match[str]) -> str:
        digits, octal, end_of_line, letter = found.groups()
        if digits or octal:
            return chr(int(digits, 16) if digits else int(octal, 8))
        return "" if end_of_line else _LETTERS.get(letter, letter)

    return _ESCAPE.sub(resolved, literal)


def text_of_block(literal: str) -> str:
    r"""Return the text of a text block without its quotes. The indentation that all its lines share is removed.

    >>> text_of_block("\n    a\n      b \n    ")
    'a\n  b\n'
    """
    lines = literal.replace("\r\n", "\n").partition("\n")[2].split("\n")
    # The last line counts even if it is blank, because its closing quotes also limit the indentation that is removed.
    indents = [len(line) - len(line.lstrip()) for line in [*filter(str.strip, lines[:-1]), lines[-1]]]
    return unescaped("\n".join(line[min(indents) :].rstrip() for line in lines))


def calculated(operator: str, a: Any, b: Any) -> Any:
    """Return the result of a Java operator for two values; None if the result is not known."""
    if operator == "+" and (_is_string(a) or _is_string(b)):
        return _shown(a) + _shown(b)
    a, b = (ord(one) if isinstance(one, Char) else one for one in (a, b))
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
    """Return the result of Java's ``==`` for two plain values, or for an object and null. Returns None if it is not certain."""
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
    """Return whether a static method of a library has returned the value. Such a value may be null."""
    return isinstance(value, Instance) and value.simple_type[:1].islower()


def _is_string(value: object) -> bool:
    return isinstance(value, str) and not isinstance(value, Char)


def _are_ints(a: object, b: object) -> bool:
    return isinstance(a, int) and isinstance(b, int)


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else str(value)
