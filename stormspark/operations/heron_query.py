"""The query language of Heron's tracker (J12): TS, DEFAULT, SUM, MAX, PERCENTILE, DIVIDE, MULTIPLY, SUBTRACT and RATE.

It follows Heron's ``query.py`` and ``query_operators.py``. Times are in seconds since 1970, and series have a value per minute.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from stormspark.errors import StormsparkError

__all__ = ["Fetch", "QueryError", "Series", "evaluate"]


class QueryError(StormsparkError):
    """A query that is wrong."""


@dataclass(frozen=True)
class Series:
    """A value per minute. ``instance`` is the instance that the values belong to; empty for what is computed of several."""

    instance: str
    values: Mapping[int, float]


#: A function that returns the series of the instances of a component. It takes the component, the instance or ``*``, the name of
#: the metric, and the first and last time.
Fetch: TypeAlias = Callable[[str, str, str, int, int], Sequence[Series]]

_TOKEN = re.compile(r"\s*([(),]|[^(),]+)")
#: A query that is nested deeper is no question of a person.
_DEEPEST = 50


def evaluate(query: str, fetch: Fetch, start: int, end: int) -> list[Series]:
    """Return the answer to a query. Raises `QueryError`.

    >>> words = Series("container_1_count_3", {60: 6.0, 120: 9.0})
    >>> found = evaluate("DIVIDE(TS(count, *, __emit-count), 3)", lambda *asked: [words], 60, 120)
    >>> dict(found[0].values)
    {60: 2.0, 120: 3.0}
    """
    tree, rest = _parsed(_tokens(query), 0)
    if rest or not isinstance(tree, _Call):
        msg = f"the query {query[:200]!r} must be one operator, such as SUM(TS(component, *, __emit-count/default))"
        raise QueryError(msg)
    return _Evaluation(fetch).of(tree, start, end)


@dataclass(frozen=True)
class _Call:
    name: str
    arguments: tuple[_Node, ...]


#: A call, a number, or a word, which is an argument of TS.
_Node: TypeAlias = "_Call | float | str"


def _tokens(query: str) -> list[str]:
    return [token for one in _TOKEN.findall(query) if (token := one.strip())]


def _parsed(tokens: list[str], depth: int) -> tuple[_Node, list[str]]:
    if depth > _DEEPEST:
        msg = "the query is nested too deeply"
        raise QueryError(msg)
    if not tokens:
        msg = "the query ends too early"
        raise QueryError(msg)
    word, rest = tokens[0], tokens[1:]
    if word == "(":  # mere brackets
        node, rest = _parsed(rest, depth + 1)
        return node, _after(")", rest)
    if word in "),":
        msg = f"the query has {word!r} where an operator, a number or a name should be"
        raise QueryError(msg)
    if rest[:1] != ["("]:
        return _number_or_word(word), rest
    arguments: list[_Node] = []
    while True:
        node, rest = _parsed(rest[1:], depth + 1)
        arguments.append(node)
        if rest[:1] != [","]:
            return _Call(word, tuple(arguments)), _after(")", rest)


def _after(token: str, tokens: list[str]) -> list[str]:
    if tokens[:1] != [token]:
        msg = f"the query lacks {token!r}"
        raise QueryError(msg)
    return tokens[1:]


def _number_or_word(word: str) -> float | str:
    try:
        number = float(word)
    except ValueError:
        return word
    return number if math.isfinite(number) else word


class _Evaluation:
    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch
        self._operators: Mapping[str, Callable[[_Call, int, int], list[Series]]] = {
            "TS": self._series,
            "DEFAULT": self._default,
            "SUM": self._sum,
            "MAX": self._max,
            "PERCENTILE": self._percentile,
            "DIVIDE": lambda call, start, end: self._pairs(call, start, end, _divided),
            "MULTIPLY": lambda call, start, end: self._pairs(call, start, end, lambda a, b: a * b),
            "SUBTRACT": lambda call, start, end: self._pairs(call, start, end, lambda a, b: a - b),
            "RATE": self._rate,
        }

    def of(self, call: _Call, start: int, end: int) -> list[Series]:
        operator = self._operators.get(call.name)
        if operator is None:
            msg = f"the query has {call.name!r}, which is no operator; there are {', '.join(self._operators)}"
            raise QueryError(msg)
        return operator(call, start, end)

    def _series(self, call: _Call, start: int, end: int) -> list[Series]:
        if len(call.arguments) != 3 or any(isinstance(one, _Call) for one in call.arguments):
            msg = "TS takes a component, an instance or *, and the name of a metric"
            raise QueryError(msg)
        component, instance, metric = (
            f"{one:g}" if isinstance(one, float) else str(one) for one in call.arguments
        )
        return [
            Series(one.instance, {at: value for at, value in one.values.items() if start <= at <= end})
            for one in self._fetch(component, instance, metric, start, end)
        ]

    def _default(self, call: _Call, start: int, end: int) -> list[Series]:
        if len(call.arguments) != 2 or not isinstance(constant := call.arguments[0], float):
            msg = "DEFAULT takes a number and a series"
            raise QueryError(msg)
        return [
            # As in Heron, zeros are replaced, too.
            Series(one.instance, {at: one.values.get(at) or constant for at in _minutes(start, end)})
            for one in self._operand(call.arguments[1], start, end)
        ]

    def _sum(self, call: _Call, start: int, end: int) -> list[Series]:
        constants, series = self._constants(call), self._all_series(call, start, end)
        total = dict.fromkeys(_minutes(start, end), sum(constants))
        for one in series:
            for at, value in one.values.items():
                if at in total:
                    total[at] += value
        return [Series("", total)]

    def _max(self, call: _Call, start: int, end: int) -> list[Series]:
        constants = self._constants(call)
        greatest = dict.fromkeys(_minutes(start, end), max(constants)) if constants else {}
        for one in self._all_series(call, start, end):
            for at, value in one.values.items():
                greatest[at] = max(value, greatest.get(at, value))
        return [Series("", greatest)]

    def _percentile(self, call: _Call, start: int, end: int) -> list[Series]:
        quantile = call.arguments[0]
        if not isinstance(quantile, float) or not 0 <= quantile <= 100 or len(call.arguments) < 2:
            msg = "PERCENTILE takes a number from 0 to 100, and series"
            raise QueryError(msg)
        at_once: dict[int, list[float]] = {}
        for one in self._all_series(_Call(call.name, call.arguments[1:]), start, end):
            for at, value in one.values.items():
                at_once.setdefault(at, []).append(value)
        return [
            Series(
                "",
                {
                    at: sorted(values)[int(quantile * (len(values) - 1) / 100)]
                    for at, values in at_once.items()
                },
            )
        ]

    def _rate(self, call: _Call, start: int, end: int) -> list[Series]:
        if len(call.arguments) != 1 or not isinstance(call.arguments[0], _Call):
            msg = "RATE takes one series"
            raise QueryError(msg)
        return [
            Series(
                one.instance,
                {
                    at: value - one.values[at - 60]
                    for at, value in one.values.items()
                    if start <= at <= end and at - 60 in one.values
                },
            )
            for one in self.of(call.arguments[0], start - 60, end)
        ]

    def _pairs(
        self, call: _Call, start: int, end: int, operation: Callable[[float, float], float | None]
    ) -> list[Series]:
        """Combine two operands, minute by minute. If both have instances, those that both have are combined."""
        if len(call.arguments) != 2:
            msg = f"{call.name} takes two operands"
            raise QueryError(msg)
        left, right = (self._by_instance(one, start, end) for one in call.arguments)
        alone = [set(one) == {""} for one in (left, right)]
        if not alone[0] and not alone[1]:
            pairs = [(name, left[name], right[name]) for name in left if name in right]
        elif alone[0]:
            pairs = [(name, left[""], one) for name, one in right.items()]
        else:
            pairs = [(name, one, right[""]) for name, one in left.items()]
        return [
            Series(
                name,
                {
                    at: result
                    for at in first
                    if at in second and (result := operation(first[at], second[at])) is not None
                },
            )
            for name, first, second in pairs
        ]

    def _by_instance(self, node: _Node, start: int, end: int) -> dict[str, Mapping[int, float]]:
        if isinstance(node, float):
            return {"": dict.fromkeys(_minutes(start, end), node)}
        return {one.instance: one.values for one in self._operand(node, start, end)}

    def _operand(self, node: _Node, start: int, end: int) -> list[Series]:
        if not isinstance(node, _Call):
            msg = f"the query has {node!r} where an operator should be, such as TS(component, *, __emit-count/default)"
            raise QueryError(msg)
        return self.of(node, start, end)

    def _all_series(self, call: _Call, start: int, end: int) -> list[Series]:
        operands = [one for one in call.arguments if not isinstance(one, float)]
        return [series for one in operands for series in self._operand(one, start, end)]

    def _constants(self, call: _Call) -> list[float]:
        return [one for one in call.arguments if isinstance(one, float)]


def _divided(one: float, other: float) -> float | None:
    return one / other if other else None


def _minutes(start: int, end: int) -> range:
    return range(-(-start // 60) * 60, end // 60 * 60 + 1, 60)
