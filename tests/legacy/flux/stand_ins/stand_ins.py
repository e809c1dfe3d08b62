"""Python with the constructors and methods of these Java classes."""

from __future__ import annotations

from collections.abc import MutableMapping
from datetime import timedelta
from enum import Enum
from typing import Any

from stormspark import (
    BasicBolt,
    Fields,
    KeyValueState,
    Spout,
    StatefulComponent,
    StatefulWindowedBolt,
    TopologyBuilder,
)
from stormspark.flux.samples import TestPrintBolt, TestWindowBolt, only_value
from stormspark.flux.storm_components import LogInfoBolt, TestWordSpout
from stormspark.testing import TestWordCounter

__all__ = ["LogInfoBolt", "TestPrintBolt", "TestWindowBolt"]

OnlyValueRecordTranslator = only_value
TestNameSpout, TestNameCounter = TestWordSpout, TestWordCounter


class SimpleTopology:
    def __init__(self, one: str = "", other: str = "") -> None:
        self.given = (one, other)

    def getTopology(self, conf: dict[str, Any]) -> TopologyBuilder:  # noqa: N802 - Java's name
        builder = TopologyBuilder()
        builder.set_spout("words", TestWordSpout())
        builder.set_bolt("log", LogInfoBolt()).shuffle_grouping("words")
        return builder

    def get_topology_with_different_method_name(self, conf: dict[str, Any]) -> TopologyBuilder:
        return self.getTopology(conf)


SimpleTopologySource = SimpleTopologyWithConfigParam = SimpleTopology


class Which(Enum):
    FOO = 1
    BAR = 2


class TestClass:
    def __init__(self, field: str) -> None:
        self.field = field


class TestBolt(LogInfoBolt):
    def __init__(self, which: Which | int, share: float = 0.0, on: bool = False, *things: TestClass) -> None:
        self.time: timedelta | None = None

    @staticmethod
    def new_instance(which: Which = Which.FOO) -> TestBolt:
        return TestBolt(which)

    @staticmethod
    def new_long_instance(number: int) -> TestBolt:
        return TestBolt(number)

    def with_foo(self, foo: str) -> None: ...

    def with_bar(self, bar: str) -> None: ...

    def with_none(self) -> None: ...

    def with_foo_bar(self, foo: str, bar: str) -> None: ...

    def with_classes(self, *things: TestClass) -> None: ...

    def with_duration(self, time: timedelta) -> None: ...

    def with_duration_arr(self, times: list[timedelta]) -> None: ...

    def set_time_len(self, time: timedelta) -> None: ...

    def set_time_len_arr(self, times: list[timedelta]) -> None: ...


class TestPropertyHolder:
    publicProperty: str = ""  # noqa: N815 - Java's name

    def __init__(self, text: str) -> None:
        self.number = 0

    def set_number_property(self, number: int) -> None:
        self.number = number


class TestFibonacciSpout(Spout):
    def __init__(self, holder: TestPropertyHolder) -> None:
        assert (holder.number, holder.publicProperty) == (11, "This is public property")

    def open(self, conf, context, collector):
        self.collector, self.last = collector, (0, 1)

    def next_tuple(self):
        if self.last[1] < 10**12:
            self.last = (self.last[1], sum(self.last))
            self.collector.emit((self.last[0],))

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("number"))


class EvenAndOddBolt(BasicBolt):
    def execute(self, tup, collector):
        collector.emit(tup.values, stream="odds" if tup[0] % 2 else "evens")

    def declare_output_fields(self, declarer):
        declarer.declare_stream("evens", Fields("evens"))
        declarer.declare_stream("odds", Fields("odds"))


class Unit(Enum):
    MB = 1
    GB = 2


class TestIBasicPrintBolt(LogInfoBolt):
    def sample_configuration_method(self, text: str, unit: Unit) -> None:
        assert text == "thisValueWasSetFromAPropertiesFile"


class StatefulNumberSpout(StatefulComponent, Spout):
    """Numbers that go on after a restart."""

    def init_state(self, state: MutableMapping[Any, Any]) -> None:
        self.state = state

    def pre_save(self, checkpoint_id: int) -> None: ...

    def open(self, conf, context, collector):
        self.collector = collector

    def next_tuple(self):
        number = self.state.get("next", 0)
        if number < 1000:
            self.state["next"] = number + 1
            self.collector.emit((number,))

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("value"))


StatefulRandomIntSpout = StatefulNumberSpout


class StatefulWindowSumBolt(StatefulWindowedBolt[KeyValueState[str, int]]):
    def init_state(self, state: KeyValueState[str, int]) -> None:
        self.state = state

    def execute(self, window):
        self.state["sum"] = self.state.get("sum", 0) + sum(tup[0] for tup in window)


class StatefulConsumerBolt(StatefulComponent, BasicBolt):
    def init_state(self, state: MutableMapping[Any, Any]) -> None:
        self.state = state

    def pre_save(self, checkpoint_id: int) -> None: ...

    def execute(self, tup, collector):
        self.state[tup[0]] = self.state.get(tup[0], 0) + 1
