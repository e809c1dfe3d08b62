"""Chooses one of several methods with the same name, by the arguments of a call."""

from __future__ import annotations

from typing import Final

from stormspark.porting.java.source import JavaMethod, Parameter
from stormspark.porting.java.values import Const, Function, Instance, Items, Pairs, Unknown, Value

__all__ = ["fitting"]

#: Scores for how well a value fits a parameter: it has the parameter's type; Java converts it; its type is unknown; it never
#: fits.
_EXACT, _WIDER, _MAYBE, _NEVER = 3, 1, 0, -100

_ANY: Final = {"Object", "T", "V", "E", "Serializable"}
#: For each Python type of a constant: the equivalent types in Java, and the types to which Java converts the constant.
_OF_CONSTANTS: Final[dict[type, tuple[set[str], set[str]]]] = {
    str: ({"String"}, {"CharSequence", "char"}),
    bool: ({"boolean", "Boolean"}, set()),
    int: ({"int", "Integer"}, {"long", "Long", "Number", "short", "byte", "double", "float"}),
    float: ({"double", "Double", "float", "Float"}, {"Number"}),
}
_PLAIN: Final = {"String", "int", "long", "boolean", "Integer", "Long", "double", "float", "Boolean"}
_LISTS: Final = {"List", "Collection", "Set", "Iterable"}
_MAPS: Final = {"Map", "Config", "HashMap", "Properties"}


def fitting(methods: list[JavaMethod], arguments: list[Value] | int | None) -> JavaMethod | None:
    """Return the method that takes these arguments.

    If only one method takes this number of arguments, return it without regard to types. If ``arguments`` is only the number of
    arguments, return the first method that takes this number. If ``arguments`` is None, return the first method.

    Return None if no method fits. Also return None if several methods fit equally well, because a guess could be wrong.
    """
    if arguments is None:
        return methods[0] if methods else None
    count = arguments if isinstance(arguments, int) else len(arguments)
    candidates = [one for one in methods if _takes(one, count)]
    if len(candidates) <= 1 or isinstance(arguments, int):
        return candidates[0] if candidates else None
    scores = [(_score(one, arguments), one) for one in candidates]
    best = max(score for score, _ in scores)
    winners = [one for score, one in scores if score == best]
    return winners[0] if len(winners) == 1 and best > _NEVER else None


def _takes(method: JavaMethod, count: int) -> bool:
    wanted = len(method.parameters)
    rest = bool(method.parameters) and method.parameters[-1].rest
    return count == wanted or (rest and count >= wanted - 1)


def _score(method: JavaMethod, arguments: list[Value]) -> float:
    # Java prefers methods that have no parameter for all further arguments (such as ``int... n``).
    score = -0.5 if method.parameters and method.parameters[-1].rest else 0.0
    for position, value in enumerate(arguments):
        parameter = method.parameters[min(position, len(method.parameters) - 1)]
        if parameter.rest:
            alone = position == len(method.parameters) - 1 == len(arguments) - 1
            as_array = _fit(Parameter(f"{parameter.type}[]", ""), value) if alone else _NEVER
            score += max(as_array, _fit(parameter, value))
        else:
            score += _fit(parameter, value)
    return score


def _fit(parameter: Parameter, value: Value) -> int:
    kind = parameter.type.rpartition(".")[2]
    if kind in _ANY:
        return _WIDER
    match value:
        case Const():
            if value.value is None:
                return _NEVER if kind in ("int", "long", "boolean", "double", "float") else _MAYBE
            same, wider = _OF_CONSTANTS[type(value.value)]
            return _EXACT if kind in same else _WIDER if kind in wider else _NEVER
        case Instance():
            return (
                _EXACT
                if value.simple_type == kind
                else _NEVER
                if kind in _PLAIN or kind.endswith("[]")
                else _MAYBE
            )
        case Items():
            return _EXACT if kind.endswith("[]") or kind in _LISTS else _NEVER
        case Pairs():
            return _EXACT if kind in _MAPS else _NEVER
        case Function():
            return _NEVER if kind in _PLAIN or kind.endswith("[]") else _MAYBE
        case Unknown() if value.type:
            given = value.type.rpartition(".")[2]
            sure = given in _PLAIN or given.endswith("[]") or kind in _PLAIN or kind.endswith("[]")
            return _EXACT if given == kind else _NEVER if sure else _MAYBE
    return _MAYBE
