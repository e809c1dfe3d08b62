"""The query language of Heron's tracker, with the rules of its own tests (J12)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from stormspark.operations.heron_query import QueryError, Series, evaluate

SERIES: Mapping[tuple[str, str], Sequence[Series]] = {
    ("a", "emits"): [Series("a1", {60: 1.0, 120: 4.0}), Series("a2", {60: 3.0, 120: 0.0, 180: 9.0})],
    ("a", "acks"): [Series("a1", {60: 2.0, 120: 2.0}), Series("a3", {60: 5.0})],
    ("b", "emits"): [Series("b1", {60: 2.0, 120: 0.0})],
}


def asked(query: str, start: int = 60, end: int = 180) -> dict[str, dict[int, float]]:
    def fetch(component: str, instance: str, metric: str, first: int, last: int) -> list[Series]:
        found = SERIES.get((component, metric), ())
        return [one for one in found if instance in ("*", one.instance)]

    return {one.instance: dict(one.values) for one in evaluate(query, fetch, start, end)}


@pytest.mark.parametrize(
    ("query", "answer"),
    [
        ("TS(a, *, emits)", {"a1": {60: 1, 120: 4}, "a2": {60: 3, 120: 0, 180: 9}}),
        (" ( TS ( a , a1 , emits ) ) ", {"a1": {60: 1, 120: 4}}),
        ("TS(nobody, *, emits)", {}),
        ("DEFAULT(7, TS(a, a2, emits))", {"a2": {60: 3, 120: 7, 180: 9}}),
        ("SUM(TS(a, *, emits), TS(b, *, emits), 10)", {"": {60: 16, 120: 14, 180: 19}}),
        ("MAX(TS(a, *, emits), 2)", {"": {60: 3, 120: 4, 180: 9}}),
        ("MAX(TS(a, a1, emits))", {"": {60: 1, 120: 4}}),
        ("PERCENTILE(0, TS(a, *, emits))", {"": {60: 1, 120: 0, 180: 9}}),
        ("PERCENTILE(100, TS(a, *, emits))", {"": {60: 3, 120: 4, 180: 9}}),
        ("MULTIPLY(10, TS(a, a1, emits))", {"a1": {60: 10, 120: 40}}),
        ("SUBTRACT(TS(a, *, emits), TS(a, *, acks))", {"a1": {60: -1, 120: 2}}),
        ("DIVIDE(TS(a, *, emits), SUM(TS(b, *, emits)))", {"a1": {60: 0.5}, "a2": {60: 1.5}}),
        ("DIVIDE(4, 2)", {"": {60: 2, 120: 2, 180: 2}}),
        ("RATE(TS(a, *, emits))", {"a1": {120: 3}, "a2": {120: -3, 180: 9}}),
    ],
)
def test_operators(query: str, answer: dict[str, dict[int, float]]) -> None:
    assert asked(query) == answer


def test_a_rate_begins_with_the_minute_before() -> None:
    assert asked("RATE(TS(a, a1, emits))", 120, 120) == {"a1": {120: 3}}


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("", "ends too early"),
        ("5", "must be one operator"),
        ("TS(a, *)", "TS takes a component"),
        ("TS(a, *, emits", "lacks '\\)'"),
        ("TS(a, *, emits))", "must be one operator"),
        ("TS(a, *, emits) TS(a, *, emits)", "must be one operator"),
        ("NOPE(TS(a, *, emits))", "'NOPE', which is no operator"),
        ("SUM(words)", "'words' where an operator should be"),
        ("SUM()", "where an operator, a number or a name should be"),
        ("RATE(5)", "RATE takes one series"),
        ("DIVIDE(TS(a, *, emits))", "DIVIDE takes two operands"),
        ("DEFAULT(TS(a, *, emits), 1)", "DEFAULT takes a number"),
        ("PERCENTILE(101, TS(a, *, emits))", "PERCENTILE takes a number from 0 to 100"),
        ("PERCENTILE(nan, TS(a, *, emits))", "PERCENTILE takes a number from 0 to 100"),
        ("(" * 5000, "nested too deeply"),
    ],
)
def test_what_is_wrong_is_named(query: str, problem: str) -> None:
    with pytest.raises(QueryError, match=problem):
        asked(query)
