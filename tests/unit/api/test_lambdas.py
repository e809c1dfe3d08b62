"""Functions as spouts and bolts: what the builder makes of them, and what it refuses."""

from __future__ import annotations

import functools
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from stormspark import Fields, TopologyBuilder
from stormspark.api.lambdas import LambdaBolt, LambdaSink, LambdaSpout
from stormspark.errors import ComponentError, InvalidTopologyError, SerializationError
from stormspark.local import LocalCluster
from stormspark.testing import TestWordCounter, TestWordSpout

HERE = r"test_lambdas\.py:\d+: "


def add(tup: Any, collector: Any) -> None:
    collector.emit((tup[0] + 1,))


def numbers() -> Iterator[int]:
    yield 1


async def later() -> int:
    return 1


async def stream() -> AsyncIterator[int]:
    yield 1


class Callable_:  # noqa: N801 - what is meant is an object that can be called
    def __call__(self, tup: Any) -> None:
        pass


def set_bolt(function: Any, *args: Any) -> Any:
    return TopologyBuilder().set_bolt("b", function, *args)


def set_spout(function: Any) -> Any:
    return TopologyBuilder().set_spout("s", function)


@pytest.mark.parametrize(
    ("made", "cls", "fields"),
    [
        (lambda: set_spout(lambda: 1), LambdaSpout, ("lambda",)),
        (lambda: set_spout(functools.partial(int, "7")), LambdaSpout, ("lambda",)),
        (lambda: set_bolt(print), LambdaSink, None),
        (lambda: set_bolt(Callable_()), LambdaSink, None),
        (lambda: set_bolt(lambda tup, note="": None), LambdaSink, None),
        (lambda: set_bolt(add, 2, ("n",)), LambdaBolt, ("n",)),
        (lambda: set_bolt(add, 2, Fields("n", "m")), LambdaBolt, ("n", "m")),
        (lambda: set_bolt(add, 2, "number"), LambdaBolt, ("number",)),
        (lambda: set_bolt(lambda *both: None, 1, "n"), LambdaBolt, ("n",)),
    ],
)
def test_functions_become_components(
    made: Callable[[], Any], cls: type, fields: tuple[str, ...] | None
) -> None:
    """A1: a supplier is a spout; a function of (tuple, collector) needs fields, one of (tuple) is a sink."""
    declared = made().declaration()
    assert declared.type_name == cls.__name__
    assert {id: tuple(s.fields) for id, s in declared.streams.items()} == (
        {"default": fields} if fields else {}
    )


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (
            lambda: set_spout(lambda tup: 1),
            r"spout 's': a spout's function is called without arguments.*'tup'",
        ),
        (
            lambda: set_bolt(add),
            r"a sink, called with the tuple alone \(with fields=.*add\(tup\).*'collector'",
        ),
        (
            lambda: set_bolt(lambda tup: None, 1, "n"),
            r"with fields is called with the tuple and a collector.*too many",
        ),
        (lambda: set_bolt(lambda: None), r"bolt 'b': .*too many positional arguments"),
        (
            lambda: set_spout(numbers),
            r"spout 's': numbers is a generator function, so a call would not run it",
        ),
        (lambda: set_spout(later), r"later is a coroutine function"),
        (lambda: set_spout(stream), r"stream is an asynchronous generator function"),
        (lambda: set_bolt(lambda tup: (yield), 1), r"<lambda> is a generator function"),
        (lambda: set_spout(dict), r"got the class dict: did you forget the brackets, dict\(\)\?"),
        (lambda: set_bolt(TestWordCounter), r"got the class TestWordCounter: did you forget the brackets"),
        (
            lambda: set_spout(7),
            r"spout 's' must be an instance of Spout, SourceSpout or AsyncSpout, or a function, got 7 of type int",
        ),
        (
            lambda: set_bolt(TestWordSpout()),
            r"bolt 'b' must be an instance of Bolt.*a spout is added by set_spout",
        ),
        (
            lambda: set_spout(TestWordCounter()),
            r"spout 's' must be an instance of Spout, SourceSpout or AsyncSpout, or a function",
        ),
        (lambda: set_bolt(add, 1, ("a", "a")), r"bolt 'b': field names must differ"),
        (
            lambda: set_bolt(TestWordCounter(), 1, "n"),
            r"fields are for functions; TestWordCounter declares its own",
        ),
    ],
)
def test_a_non_component_is_refused_at_the_users_line(wrong: Callable[[], Any], text: str) -> None:
    """A1, A2: the wrong number of arguments, a class, a generator, something else."""
    with pytest.raises(InvalidTopologyError, match=HERE + r".*" + text):
        wrong()


def test_a_function_with_an_unpicklable_variable_names_the_variable() -> None:
    """A lambda that uses a value that can't be pickled is rejected, with the variable's name (A2, A3)."""
    lock = threading.Lock()
    with pytest.raises(
        SerializationError, match=r"component 'b' \(LambdaSink\).*because of 'lock' in function <lambda>"
    ):
        set_bolt(lambda tup: lock.acquire()).declaration()


def test_an_error_of_a_function_names_the_component() -> None:
    """An exception in a function that serves as a spout names the spout and the user's line (A1, W22)."""

    def refuse() -> None:
        raise LookupError("nothing today")

    builder = TopologyBuilder()
    builder.set_spout("supplier", refuse)
    conf = {"stormspark.task.max.restarts.in.row": 0}
    with LocalCluster(simulated_time=True) as cluster:
        running = cluster.submit_topology("t", conf, builder.create_topology("t"))
        with pytest.raises(ComponentError, match=r"spout 'supplier'.*test_lambdas\.py:\d+.*nothing today"):
            running.run_until_idle()
