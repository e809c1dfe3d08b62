"""Checks whether values from YAML fit a Python function, and converts them as Flux converts them for Java (K14).

The number of values must fit the function's parameters. If a parameter's annotation is an enum, a string is converted to a member
of the enum. If the annotation is ``float``, an int is converted to a float. If it is ``int``, a float that is a whole number is
converted to an int. A value that does not fit is rejected. Annotations that are not simple types are ignored.
"""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any

__all__ = ["Unfit", "fitted", "fitted_value"]


class Unfit(Exception):  # noqa: N818 - its callers raise an error with its message
    """Raised if a value does not fit. The message begins with a verb, because the caller puts the function's name before it."""


def fitted(function: Callable[..., Any], values: Sequence[Any]) -> list[Any]:
    """Return ``values``, converted to the types of the parameters of ``function``. Raises `Unfit` if a value does not fit.

    >>> def rotate(count: float, unit: str = "MB"): ...
    >>> fitted(rotate, [5, "KB"])
    [5.0, 'KB']
    >>> fitted(rotate, [])
    Traceback (most recent call last):
    stormspark.flux.arguments.Unfit: takes (count, unit='MB'), got no arguments
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return list(values)  # a C function without a signature; only calling it shows whether the values fit
    try:
        signature.bind(*values)
    except TypeError:
        got = ", ".join(f"{value!r:.60}" for value in values) or "no arguments"
        raise Unfit(f"takes {_parameters(signature)}, got {got}") from None  # noqa: EM102
    positional = [p for p in signature.parameters.values() if p.kind not in (p.KEYWORD_ONLY, p.VAR_KEYWORD)]
    hints = _hints(function)
    if positional and positional[-1].kind is inspect.Parameter.VAR_POSITIONAL:
        # In YAML, the values for a parameter like Java's ``String... names`` may be one list.
        named = len(positional) - 1
        if len(values) == named + 1 and isinstance(values[-1], list):
            values = [*values[:-1], *values[-1]]
        positional += [positional[-1]] * (len(values) - len(positional))
    result = []
    for parameter, value in zip(positional, values, strict=False):
        try:
            result.append(_as(hints.get(parameter.name, Any), value))
        except Unfit as error:
            raise Unfit(f"takes {_parameters(signature)}: {parameter.name} {error}") from None  # noqa: EM102
    return result


def fitted_value(owner: type, attribute: str, value: Any) -> Any:
    """Return ``value``, converted to the annotated type of an attribute of a class. Raises `Unfit` if the value does not fit."""
    return _as(_hints_of(owner).get(attribute, Any), value)


def _hints(function: Callable[..., Any]) -> Mapping[str, Any]:
    if isinstance(function, type):
        own_init = inspect.getattr_static(function, "__init__") is not object.__init__
        return _hints_of(getattr(function, "__init__" if own_init else "__new__"))
    return _hints_of(function)


def _hints_of(owner: Any) -> Mapping[str, Any]:
    try:
        return typing.get_type_hints(owner)
    except Exception:  # an annotation names something that only type checkers import
        return {}


def _as(hint: Any, value: Any) -> Any:
    """Return ``value``, converted to the type ``hint``. A hint that is not a simple type accepts every value."""
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        options = typing.get_args(hint)
        problems = []
        # The annotation is a union. Try the value's own type first, before enums and floats.
        for option in sorted(options, key=lambda one: not (isinstance(one, type) and type(value) is one)):
            try:
                return _as(option, value)
            except Unfit as error:
                problems.append(error)
        raise problems[0]
    kind = typing.get_origin(hint) or hint
    if not isinstance(kind, type) or kind is object:
        return value
    if issubclass(kind, Enum):
        return _member(kind, value)
    if kind is float and type(value) is int:
        return float(value)
    if kind is int and type(value) is float and value.is_integer():
        return int(value)
    if kind in _CHECKED and not _is(kind, value):
        raise Unfit(f"must be {_CHECKED[kind]}, got {value!r:.80}")  # noqa: EM102
    return value


_CHECKED: dict[type, str] = {
    str: "a string",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    list: "a list",
    dict: "a mapping",
    Sequence: "a list",
    Mapping: "a mapping",
    type(None): "nothing",
}


def _is(kind: type, value: Any) -> bool:
    if isinstance(value, bool):
        return kind is bool
    if kind is Sequence and isinstance(value, str | bytes):
        return False
    return isinstance(value, kind)


def _member(kind: type[Enum], value: Any) -> Any:
    if isinstance(value, kind):
        return value
    if isinstance(value, str) and value in kind.__members__:
        return kind[value]
    raise Unfit(f"must be one of {', '.join(kind.__members__)}, got {value!r:.80}")  # noqa: EM102


def _parameters(signature: inspect.Signature) -> str:
    """Return the parameters as a string, without annotations, which would not help users of YAML."""
    shown = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    return str(signature.replace(parameters=shown, return_annotation=signature.empty))
