"""Spouts and bolts that `TopologyBuilder` makes from one function each (A1).

A function is pickled like any component, and every task has a copy of its own (A3).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from stormspark.api.collector import BasicOutputCollector, SpoutOutputCollector
from stormspark.api.components import BasicBolt, Spout
from stormspark.api.context import TopologyContext
from stormspark.api.fields import Fields
from stormspark.api.streams import OutputFieldsDeclarer
from stormspark.api.tuples import Tuple
from stormspark.coroutines import kind_of_coroutine
from stormspark.errors import InvalidTopologyError

__all__ = ["LambdaBolt", "LambdaSink", "LambdaSpout", "bolt_of", "spout_of"]


class LambdaSpout(Spout):
    """A spout that emits each value that ``supplier()`` returns, as (value,) on field ``lambda``.

    The emits have no message id. None is not a value: it means that there is nothing to emit now.
    """

    def __init__(self, supplier: Callable[[], Any]) -> None:
        self.supplier = supplier

    def open(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector
    ) -> None:
        """Keep the collector."""
        self._collector = collector

    def next_tuple(self) -> None:
        """Call the supplier and emit its value."""
        value = self.supplier()
        if value is not None:
            self._collector.emit((value,))

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declare one field, ``lambda``."""
        declarer.declare(Fields("lambda"))


class LambdaBolt(BasicBolt):
    """A `BasicBolt` that calls ``function(tup, collector)`` for every tuple. The function emits tuples with ``fields``."""

    def __init__(self, function: Callable[[Tuple, BasicOutputCollector], Any], fields: Fields) -> None:
        self.function = function
        self.fields = fields

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        """Call the function."""
        self.function(tup, collector)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declare the given fields, on the default stream."""
        declarer.declare(self.fields)


class LambdaSink(BasicBolt):
    """A bolt that calls ``function(tup)`` for every tuple and emits nothing."""

    def __init__(self, function: Callable[[Tuple], Any]) -> None:
        self.function = function

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        """Call the function."""
        self.function(tup)


def spout_of(supplier: Callable[[], Any]) -> LambdaSpout:
    """Make a spout from a function that can be called without arguments.

    Raises `InvalidTopologyError` for any other function, for a generator function and for a coroutine function.

    >>> spout_of(lambda tup: 1)
    Traceback (most recent call last):
    ...
    stormspark.errors.InvalidTopologyError: a spout's function is called without arguments, as <lambda>(): \
missing a required argument: 'tup'
    """
    _check(supplier, (), "a spout's function is called without arguments")
    return LambdaSpout(supplier)


def bolt_of(function: Callable[..., Any], fields: Fields | Iterable[str]) -> LambdaBolt | LambdaSink:
    """Make a bolt from ``function(tup, collector)`` if there are ``fields``, otherwise from ``function(tup)``.

    Raises `InvalidTopologyError` if the function takes other arguments, or is a generator function or a coroutine function.

    >>> type(bolt_of(print, ())).__name__, type(bolt_of(lambda tup, out: out.emit((1,)), "one")).__name__
    ('LambdaSink', 'LambdaBolt')
    """
    names = fields if isinstance(fields, Fields) else Fields(fields)
    if not names:
        _check(
            function,
            ("tup",),
            "a bolt's function without fields is a sink, called with the tuple alone (with fields=(...) also with a collector)",
        )
        return LambdaSink(function)
    _check(
        function,
        ("tup", "collector"),
        "a bolt's function with fields is called with the tuple and a collector",
    )
    return LambdaBolt(function, names)


def _check(function: Callable[..., Any], arguments: tuple[str, ...], rule: str) -> None:
    name = getattr(function, "__qualname__", type(function).__qualname__).rpartition(".")[2]
    called = (function, getattr(type(function), "__call__", None))  # noqa: B004
    generates = any(map(inspect.isgeneratorfunction, called))
    kind = "a generator function" if generates else kind_of_coroutine(function)
    if kind is not None:
        msg = f"{name} is {kind}, so a call would not run it; write it without yield and async"
        raise InvalidTopologyError(msg)
    try:
        inspect.signature(function).bind(*arguments)
    except TypeError as error:
        msg = f"{rule}, as {name}({', '.join(arguments)}): {error}"
        raise InvalidTopologyError(msg) from error
    except ValueError:
        pass  # The function is written in C and has no signature. If the arguments are wrong, its first call raises.
