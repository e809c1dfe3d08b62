"""What declarers write into a component's configuration."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from stormspark import BasicBolt, BasicOutputCollector, TopologyBuilder, Tuple
from stormspark.api import BoltDeclarer
from stormspark.errors import InvalidTopologyError
from stormspark.testing import TestWordCounter


class Configured(BasicBolt):
    """Has a configuration of its own."""

    def __init__(self, conf: Any) -> None:
        self.conf = conf

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        pass

    def get_component_configuration(self) -> Mapping[str, Any] | None:
        if isinstance(self.conf, Exception):
            raise self.conf
        return self.conf  # type: ignore[no-any-return]


def bolt(component: BasicBolt | None = None) -> BoltDeclarer:
    return TopologyBuilder().set_bolt("count", component or TestWordCounter())


@pytest.mark.parametrize(
    ("declare", "conf"),
    [
        (lambda b: b.set_debug(True), {"topology.debug": True}),
        (lambda b: b.set_num_tasks(3), {"topology.tasks": 3}),
        (lambda b: b.set_max_task_parallelism(3), {"topology.max.task.parallelism": 3}),
        (lambda b: b.set_max_task_parallelism(None), {"topology.max.task.parallelism": None}),
        (lambda b: b.set_max_spout_pending(9), {"topology.max.spout.pending": 9}),
        (
            lambda b: b.add_configuration("mine", 1).add_configurations({"mine": 2, "y": 3}),
            {"mine": 2, "y": 3},
        ),
        (
            lambda b: b.set_memory_load(512),
            {
                "topology.component.resources.map": {"topology.component.resources.onheap.memory.mb": 512.0},
                "topology.component.resources.onheap.memory.mb": 512.0,
            },
        ),
        (
            lambda b: b.set_memory_load(512, 64).set_cpu_load(50).add_resource("gpu", 1),
            {
                "topology.component.resources.map": {
                    "topology.component.resources.onheap.memory.mb": 512.0,
                    "topology.component.resources.offheap.memory.mb": 64.0,
                    "topology.component.cpu.pcore.percent": 50.0,
                    "gpu": 1.0,
                },
                "topology.component.resources.onheap.memory.mb": 512.0,
                "topology.component.resources.offheap.memory.mb": 64.0,
                "topology.component.cpu.pcore.percent": 50.0,
            },
        ),
        (
            lambda b: b.add_resources({"a": 1, "b": 2}).add_resource("a", 3),
            {"topology.component.resources.map": {"a": 3.0, "b": 2.0}},
        ),
        (
            lambda b: b.add_shared_memory("cache", on_heap_mb=64).add_shared_memory(
                "disk", off_heap_node_mb=1
            ),
            {
                "stormspark.component.shared.memory": {
                    "cache": {"on-heap": 64, "off-heap-worker": 0, "off-heap-node": 0},
                    "disk": {"on-heap": 0, "off-heap-worker": 0, "off-heap-node": 1},
                }
            },
        ),
    ],
)
def test_declarers_write_storms_keys(
    declare: Callable[[BoltDeclarer], BoltDeclarer], conf: dict[str, Any]
) -> None:
    """Each method of a declarer writes the setting that Storm's method writes (A9)."""
    assert declare(bolt()).declaration().conf == conf


@pytest.mark.parametrize(
    ("declare", "text"),
    [
        (lambda b: b.set_debug("yes"), r"topology\.debug must be bool, got 'yes' of type str"),
        (lambda b: b.set_num_tasks(0), r"number of tasks must be a positive integer, got 0"),
        (lambda b: b.set_max_task_parallelism(0), r"topology\.max\.task\.parallelism must be at least 1"),
        (lambda b: b.set_max_spout_pending("9"), r"topology\.max\.spout\.pending must be int"),
        (lambda b: b.add_configuration(7, 1), r"a key must be a string, got 7 of type int"),
        (lambda b: b.add_configuration("mine", object()), r"'mine' is not JSON-serialisable"),
        (lambda b: b.add_configurations([("a", 1)]), r"a configuration must be a mapping"),
        (
            lambda b: b.add_configuration("topology.kryo.register", []),
            r"can only be set for the topology",
        ),
        (lambda b: b.set_memory_load("512"), r"a resource must be a name and a number of at least 0.*'512'"),
        (lambda b: b.set_memory_load(1, -1), r"topology\.component\.resources\.offheap\.memory\.mb.*: -1"),
        (lambda b: b.set_cpu_load(True), r"a number of at least 0, got .*: True"),
        (lambda b: b.add_resource("", None), r"a resource must be a name and a number"),
        (
            lambda b: b.add_shared_memory("cache", on_heap_mb=-1),
            r"shared memory must be a name and numbers of at least 0",
        ),
    ],
)
def test_a_wrong_setting_is_refused_at_the_users_line(declare: Callable[[Any], Any], text: str) -> None:
    """A wrong value for a component's setting is rejected, with the user's line and the component (A9, J5)."""
    with pytest.raises(
        InvalidTopologyError, match=r"test_component_configuration\.py:\d+: bolt 'count': .*" + text
    ):
        declare(bolt())


def test_the_declarer_wins_over_the_component() -> None:
    """A20: get_component_configuration, then add_configuration."""
    declared = bolt(Configured({"mine": "component", "other": 1})).add_configuration("mine", "declarer")
    assert declared.declaration().conf == {"mine": "declarer", "other": 1}


@pytest.mark.parametrize("given", [["a"], 7, "conf"])
def test_a_component_configuration_is_a_mapping(given: object) -> None:
    """`get_component_configuration` must return a mapping (A20, J5)."""
    with pytest.raises(
        InvalidTopologyError, match=r"bolt 'count': get_component_configuration must return a mapping"
    ):
        bolt(Configured(given)).declaration()


def test_what_a_component_raises_while_it_is_built_is_reported_with_its_line() -> None:
    """J5: the line that raised."""
    with pytest.raises(
        InvalidTopologyError,
        match=r"test_component_configuration\.py:\d+: bolt 'count': get_component_configuration raised KeyError: 'x'",
    ):
        bolt(Configured(KeyError("x"))).declaration()
