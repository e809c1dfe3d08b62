"""What a component says by ``waits``: mistakes are named, and contradictions to its code are reported (A16)."""

from __future__ import annotations

import re
import socket
import time
from functools import cached_property
from typing import Any

import pytest

from stormspark import AsyncBolt, BasicBolt, CustomStreamGrouping, Fields, TopologyBuilder
from stormspark.compat.heronpy.components import Bolt as HeronBolt
from stormspark.compat.streamparse.bolt import Bolt as PystormBolt
from stormspark.compat.streamparse.bolt_adapter import BoltAdapter
from stormspark.compat.streamparse.lowering import lower
from stormspark.compat.streamparse.native import native
from stormspark.compat.streamparse.topology import Topology as StreamparseTopology
from stormspark.errors import InvalidTopologyError
from stormspark.plan import advice, plan_topology
from stormspark.testing import FixedTupleSpout, TestWordSpout
from stormspark.waiting_code import WaitsValueError, declared_waits, look_through


class Plain(BasicBolt):
    """Does nothing."""

    def execute(self, tup: Any, collector: Any) -> None:
        """Do nothing."""


class Wrong(Plain):
    """Says it with a string."""

    other = 1
    waits = "yes"


class Inherits(Wrong):
    """Has it from its base."""


class Number(Plain):
    """Says it with a number."""

    waits: Any = 1


class WrongSpout(TestWordSpout):
    """Says it with a word, too."""

    waits: Any = "never"


class WrongAsync(AsyncBolt):
    """Has an event loop, and no choice."""

    waits = "no"

    async def execute(self, tup: Any) -> None:
        """Do nothing."""


def builder_with(bolt: Any, **conf: Any) -> TopologyBuilder:
    """Return a topology with this bolt."""
    builder = TopologyBuilder()
    builder.set_spout("words", TestWordSpout())
    declarer = builder.set_bolt("mine", bolt).shuffle_grouping("words")
    declarer.add_configurations(conf)
    return builder


def line_of(text: str) -> int:
    """Return the number of the line of this file that has ``text``, and is no part of a test."""
    with open(__file__, encoding="utf-8") as file:
        return next(number for number, line in enumerate(file, 1) if line.strip() == text)


@pytest.mark.parametrize(
    ("bolt", "of", "line", "got"),
    [
        (Wrong(), "Wrong", 'waits = "yes"', "'yes' of type str"),
        (Inherits(), "Wrong", 'waits = "yes"', "'yes' of type str"),
        (Number(), "Number", "waits: Any = 1", "1 of type int"),
        (WrongAsync(), "WrongAsync", 'waits = "no"', "'no' of type str"),
    ],
)
def test_another_value_is_an_error_that_names_component_class_and_line(
    bolt: Any, of: str, line: str, got: str
) -> None:
    with pytest.raises(InvalidTopologyError) as caught:
        builder_with(bolt).create_topology("wrong")
    text = str(caught.value)
    assert re.match(r".*test_declared\.py:\d+: bolt 'mine': ", text)
    assert f"{__file__}:{line_of(line)}: waits of class {of} must be True, False or None, got {got}" in text


class Rule(CustomStreamGrouping):
    """A grouping, which a component holds."""

    waits = "yes"

    def choose_tasks(self, task: int, values: Any) -> list[int]:
        """Choose nobody."""
        return []


class Chooses(CustomStreamGrouping):
    """Says nothing."""

    def choose_tasks(self, task: int, values: Any) -> list[int]:
        """Choose nobody."""
        return []


def test_a_class_of_stormspark_that_a_component_holds_is_checked_too() -> None:
    holds: Any = Plain()
    holds.held = Rule()
    with pytest.raises(WaitsValueError, match=r"waits of class .*Rule must be"):
        look_through(holds)


@pytest.mark.parametrize("value", ["yes", 0.5, True, False])
def test_legacy_code_means_something_else_by_waits(value: Any) -> None:
    """It runs unmodified, so it can't know what stormspark means by it."""

    class OfPystorm(PystormBolt):
        waits = value

    class OfHeron(HeronBolt):
        waits = value

    class Sleeps(PystormBolt):
        waits = value

        def process(self, tup: Any) -> None:
            time.sleep(0.5)

    assert declared_waits(OfPystorm) is None and declared_waits(OfHeron) is None
    assert look_through(BoltAdapter(OfPystorm, {})) == (None, None)
    assert "time.sleep" in str(look_through(BoltAdapter(Sleeps, {})).reason)


def test_a_mistake_in_a_topology_of_streamparse_names_its_line() -> None:
    """The message does not name the line of the command line that builds the topology."""

    class Mixed(StreamparseTopology):
        words = native(WrongSpout())

    with pytest.raises(
        InvalidTopologyError, match=rf"^{re.escape(Mixed.specs[0].declared_at)}: spout 'words'"
    ):
        lower(Mixed, "mixed")


def with_waits(one: Any, value: Any) -> Any:
    """Set the attribute of an object, and return the object."""
    one.waits = value
    return one


class OfEach(Plain):
    """Says it in each object."""

    def __init__(self, said: Any) -> None:
        self.waits = said


class KnownOfEach(OfEach):
    """Extends a class that says it."""

    waits = True


class Async(AsyncBolt):
    """Has an event loop, and no choice."""

    async def execute(self, tup: Any) -> None:
        """Do nothing."""


@pytest.mark.parametrize(
    ("bolt", "said"),
    [
        (with_waits(Plain(), "yes"), "waits of an object of class Plain must be True, False or None, got 'yes' of type str"),
        (with_waits(Plain(), 0), "waits of an object of class Plain must be True, False or None, got 0 of type int"),
        (with_waits(Async(), "no"), "waits of an object of class Async must be True, False or None, got 'no' of type str"),
        (OfEach("no"), "{line}: waits of an object of class OfEach must be True, False or None, got 'no' of type str"),
        (KnownOfEach(1), "{line}: waits of an object of class KnownOfEach must be True, False or None, got 1 of type int"),
    ],
)  # fmt: skip
def test_another_value_in_an_object_is_an_error_too(bolt: Any, said: str) -> None:
    """It names the line that adds the object, and the line of its class that sets the value, if there is one."""
    with pytest.raises(InvalidTopologyError) as caught:
        builder_with(bolt).create_topology("wrong")
    said = said.format(line=f"{__file__}:{line_of('self.waits = said')}")
    assert re.match(
        rf".*test_declared\.py:\d+: bolt 'mine': {re.escape(said)}: True gives", str(caught.value)
    )


def test_a_grouping_says_it_by_the_same_values() -> None:
    with pytest.raises(
        InvalidTopologyError, match=r"waits of an object of class Chooses must be .* got 'no'"
    ):
        TopologyBuilder().set_bolt("mine", Plain()).custom_grouping("words", with_waits(Chooses(), "no"))


def test_methods_and_properties_say_nothing() -> None:
    """A component may use the name for something else."""

    class Property(Plain):
        @property
        def waits(self) -> int:
            return 1

    class Cached(Plain):
        @cached_property
        def waits(self) -> int:
            return 1

    class NotSaid(Plain):
        waits = None

    cached = Cached()
    assert cached.waits == 1  # and now the object has it, too
    for one in (
        Property(),
        Cached(),
        cached,
        NotSaid(),
        with_waits(Plain(), None),
        with_waits(Plain(), Plain().execute),
    ):
        assert look_through(one) == (None, None)


# -- waits = False, but the code waits ---------------------------------------------------------------------------


class Naps(BasicBolt):
    """Says that it only computes."""

    waits = False

    def execute(self, tup: Any, collector: Any) -> None:
        """Wait."""
        unheard_of()  # type: ignore[name-defined]  # noqa: F821
        self.context.commit()  # type: ignore[attr-defined]
        time.sleep(0.1)


class Asks(BasicBolt):
    """Says that it only computes, and leads to a socket."""

    waits = False

    def execute(self, tup: Any, collector: Any) -> None:
        """Wait."""
        ask()


def ask() -> None:
    """Wait."""
    socket.create_connection(("localhost", 1))


class PreparesOnly(Plain):
    """Waits in ``prepare`` alone."""

    waits = False

    def prepare(self, conf: Any, context: Any) -> None:
        """Wait, once."""
        with open("/dev/null", encoding="utf-8") as file:
            file.read()


class Unsure(BasicBolt):
    """Uses only what nobody knows."""

    waits = False

    def execute(self, tup: Any, collector: Any) -> None:
        """Compute."""
        tup[0].commit()
        unheard_of()  # type: ignore[name-defined]  # noqa: F821


def test_advice_names_the_line_that_waits_once_and_says_what_it_means() -> None:
    (one,) = advice(plan_topology(builder_with(Naps()).create_topology("naps")))
    assert re.match(r".*test_declared\.py:\d+: bolt 'mine' says that it only computes \(waits = False\)", one)
    assert (
        f"but execute uses time.sleep (test_declared.py:{line_of('time.sleep(0.1)')}): while that waits"
        in one
    )
    assert "remove waits = False" in one
    (one,) = advice(plan_topology(builder_with(Asks()).create_topology("asks")))
    assert "but execute leads to ask, which uses socket.create_connection (test_declared.py:" in one


@pytest.mark.parametrize("bolt", [PreparesOnly(), Unsure(), Plain()])
def test_there_is_no_advice_about_a_start_or_about_what_nobody_knows(bolt: BasicBolt) -> None:
    """`waits = False` is for such cases."""
    assert advice(plan_topology(builder_with(bolt).create_topology("fine"))) == []


def test_there_is_no_advice_about_stock_components() -> None:
    """A user can't change what they declare."""
    builder = TopologyBuilder()
    builder.set_spout("words", FixedTupleSpout([("a",)], Fields("word")))
    assert advice(plan_topology(builder.create_topology("stock"))) == []


@pytest.mark.parametrize("threads", ["never", "always"])
def test_a_setting_that_decides_ends_the_advice(threads: str) -> None:
    builder = builder_with(Naps(), **{"stormspark.executor.threads": threads})
    assert advice(plan_topology(builder.create_topology("decided"))) == []
