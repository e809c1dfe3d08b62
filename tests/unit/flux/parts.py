"""Classes that the tests' YAML names."""

from __future__ import annotations

from enum import Enum
from typing import Any

from stormspark import BasicBolt, Topology, TopologyBuilder, WorkerHook
from stormspark.grouping import CustomStreamGrouping
from stormspark.testing import TestWordCounter, TestWordSpout


class Color(Enum):
    RED = 1
    BLUE = 2


class Thing:
    public: Color | None = None

    def __init__(self, name: str = "", share: float = 0.0, on: bool = False, *rest: object) -> None:
        self.made_of = (name, share, on, *rest)
        self.called: list[object] = []
        self.camelCase = None

    @classmethod
    def of_color(cls, color: Color) -> Thing:
        return cls(color.name)

    @staticmethod
    def newNumber(number: int) -> Thing:  # noqa: N802 - as Java spells it
        return Thing(str(number))

    def with_color(self, color: Color) -> Thing:
        self.called.append(color)
        return self

    def with_none(self) -> None:
        self.called.append("none")

    def with_both(self, one: str, other: int) -> None:
        self.called.append((one, other))

    def with_several(self, *several: object) -> None:
        self.called.append(several)

    def set_size(self, size: float) -> None:
        self.called.append(size)

    def fails(self) -> None:
        raise LookupError("it is not there")


class Keeper(BasicBolt):
    """A bolt that keeps what it was made of where a test finds it."""

    kept: object = None

    def __init__(self, made_of: object) -> None:
        type(self).kept = made_of

    def execute(self, tup, collector): ...


class Hook(WorkerHook):
    def __init__(self, what: str = "") -> None:
        self.what = what


class First(CustomStreamGrouping):
    def __init__(self, count: int) -> None:
        self.count = count

    def prepare(self, context, stream, target_tasks):
        self.tasks = target_tasks

    def choose_tasks(self, task, values):
        return self.tasks[: self.count]


def _builder() -> TopologyBuilder:
    builder = TopologyBuilder()
    builder.set_spout("words", TestWordSpout())
    builder.set_bolt("count", TestWordCounter()).shuffle_grouping("words")
    return builder


class Source:
    """A topology source with methods of all kinds."""

    asked: list[Any]

    def __init__(self, one: str = "", other: str = "") -> None:
        self.made_of = (one, other)
        Source.asked = []

    def getTopology(self, conf):  # noqa: N802 - as Java spells it
        Source.asked.append((self.made_of, dict(conf), type(conf).__name__))
        return _builder()

    def other_one(self, conf):
        return _builder().create_topology("other", {"of.its.own": 1, "topology.workers": 3})

    def gives_nothing(self, conf): ...

    def takes_nothing(self): ...

    def raises(self, conf):
        raise OSError("no such table")


def topology() -> Topology:
    return _builder().create_topology("by-function")


NOT_CALLABLE = 7
