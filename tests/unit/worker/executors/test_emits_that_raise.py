"""An emit that raises when it is sent raises in the call that emits, on the executor's thread (B9, D2, D13)."""

from __future__ import annotations

from typing import Any

import pytest

from stormspark import CustomStreamGrouping, Fields, Spout, TopologyBuilder
from tests.unit.worker.executors.runs import Numbers, Repeat, Told, running

pytestmark = pytest.mark.slow


class Picky(CustomStreamGrouping):
    """Raises for 2."""

    def prepare(self, context: Any, stream: Any, target_tasks: Any) -> None:
        self.tasks = target_tasks

    def choose_tasks(self, task_id: int, values: Any) -> list[int]:
        if values[0] == 2:
            raise ZeroDivisionError("no rule")
        return list(self.tasks)


@pytest.mark.parametrize(
    ("grouping", "values", "error"),
    [
        ("custom", [1, 2, 3], "ZeroDivisionError: no rule"),
        ("fields", [1, [2, object], 3], "ValueNotHashable"),
    ],
)
def test_the_tuple_in_whose_execute_it_is_made_fails(grouping: str, values: list[Any], error: str) -> None:
    """Those before and after it go on."""
    told = Told("raising")
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(values, told))
    builder.set_bolt("repeat", Repeat()).shuffle_grouping("numbers")
    end = builder.set_bolt("end", Repeat())
    if grouping == "custom":
        end.custom_grouping("repeat", Picky())
    else:
        end.fields_grouping("repeat", Fields("n"))
    with running(builder.create_topology("raising"), **{"topology.enable.message.timeouts": False}) as local:
        local.run_until_idle()
    acked = {what[1] for what in told.all if what[0] == "ack"}
    ((failed, reason),) = [what[1:] for what in told.all if what[0] == "fail"]
    assert (acked, failed) == ({"1", "3"}, str(values[1]))
    assert error in reason


class InAGroup(Spout):
    """Emits a group whose second tuple nobody can route, once."""

    def __init__(self, told: Told) -> None:
        self.told = told

    def open(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector, self.done = collector, False

    def next_tuple(self) -> None:
        if self.done:
            return
        self.done = True
        try:
            with self.collector.group("group") as group:
                group.emit((1,))
                group.emit((2,))
        except Exception as error:
            self.told("raised", str(error))

    def fail(self, message_id: Any) -> None:
        self.told("fail", message_id)

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("n"))


def test_a_group_raises_as_it_ends_and_fails() -> None:
    """X68: the spout goes on."""
    told = Told("groups")
    builder = TopologyBuilder()
    builder.set_spout("group", InAGroup(told))
    builder.set_bolt("end", Repeat()).custom_grouping("group", Picky())
    with running(builder.create_topology("groups")) as local:
        local.run_until_idle()
    (first, error), second = sorted(told.all, reverse=True)
    assert (first, second) == ("raised", ("fail", "group"))
    assert "no rule" in error
