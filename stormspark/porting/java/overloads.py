"""Which of several methods of a name takes the arguments at hand."""

from __future__ import annotations

from stormspark.porting.java.source import JavaMethod, Parameter
from stormspark.porting.java.values import Const, Instance, Items, Pairs, Value

__all__ = ["fitting"]


def fitting(methods: list[JavaMethod], arguments: list[Value] | int | None) -> JavaMethod | None:
    """The method that takes such arguments; without any, the first one."""
    if not methods:
        return None
    if arguments is None:
        return methods[0]
    count = arguments if isinstance(arguments, int) else len(arguments)
    by_count = [
        one
        for one in methods
        if len(one.parameters) == count and not (one.parameters and one.parameters[-1].rest)
    ]
    if not by_count:
        rest = [one for one in methods if one.parameters and one.parameters[-1].rest]
        return next((one for one in rest if count >= len(one.parameters) - 1), None)
    if isinstance(arguments, int) or len(by_count) == 1:
        return by_count[0]
    return max(by_count, key=lambda one: sum(map(_fit, one.parameters, arguments)))


def _fit(parameter: Parameter, value: Value) -> int:
    """How well a value fits a parameter's type: 1 it does, 0 nobody knows, -5 it does not."""
    kind = parameter.type.rpartition(".")[2]
    if isinstance(value, Const):
        given = type(value.value)
        fitting = {
            str: {"String", "Object", "CharSequence", "T"},
            bool: {"boolean", "Boolean", "Object", "T"},
            int: {"int", "long", "Integer", "Long", "Number", "short", "double", "float", "Object", "T"},
            float: {"double", "float", "Double", "Float", "Number", "Object", "T"},
        }.get(given)
        if fitting is None:
            return 0
        return 1 if kind in fitting else -5
    if isinstance(value, Instance):
        if value.simple_type == kind:
            return 1
        return -5 if kind in ("String", "int", "long", "boolean", "Integer", "Long", "double") else 0
    if isinstance(value, Items):
        return 1 if kind.endswith("[]") or kind in ("List", "Collection", "Set") else -5
    if isinstance(value, Pairs):
        return 1 if kind in ("Map", "Config", "HashMap") else -5
    return 0
