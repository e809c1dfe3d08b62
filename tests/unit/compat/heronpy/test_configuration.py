"""Configurations: texts where they are submitted, typed where they are read."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormspark.compat.heronpy.components import Bolt, Spout
from stormspark.compat.heronpy.configuration import checked, typed
from stormspark.compat.heronpy.topology import TopologyBuilder
from stormspark.config import Settings
from stormspark.errors import InvalidTopologyError
from stormspark.plan import advice, plan_topology
from tests.unit.compat.heronpy.rig import run


class Words(Spout):
    outputs = ("word",)

    def next_tuple(self) -> None: ...


SEEN: dict[str, Any] = {}


class Look(Bolt):
    def initialize(self, config: dict[str, Any], context: Any) -> None:
        SEEN.update(config=config, same=context.get_cluster_config() is config)

    def process(self, tup: Any) -> None: ...


def built(config: dict[str, Any], own: dict[str, Any] | None = None) -> TopologyBuilder:
    builder = TopologyBuilder("t")
    words = builder.add_spout("words", Words, 1)
    builder.add_bolt("look", Look, 2, [words], config=own)
    builder.set_config(config)
    return builder


def test_defaults() -> None:
    """A43: among them that nothing is acked unless that is asked for, and 100 open trees a spout."""
    conf = built({}).build().lowered().conf
    settings = Settings.read(conf)
    # Heron's one container has a process for each instance, so it decides nothing about our workers.
    assert (settings.workers, settings.message_timeout_secs, settings.max_spout_pending) == (None, 30, 100)
    assert (settings.debug, settings.enable_message_timeouts) == (False, True)
    assert settings.reliability_mode == "ATMOST_ONCE"
    run(built({})).batches(1)
    assert SEEN["same"]
    assert (
        SEEN["config"].items()
        >= {
            "topology.debug": False,
            "topology.stmgrs": 1,
            "topology.message.timeout.secs": 30,
            "topology.component.parallelism": 2,
            "topology.max.spout.pending": 100,
            "topology.reliability.mode": "ATMOST_ONCE",
            "topology.enable.message.timeouts": True,
        }.items()
    )


def test_values_are_typed_again() -> None:
    """A44: texts that look like numbers or truth values are these; other objects stay what they are; a component's own wins."""
    config = {"int": "12", "float": "1.5", "true": "True", "word": "x", "bool": False, "object": {1, 2}}
    run(built(config, {"word": "own", "own": 7})).batches(1)
    assert {key: SEEN["config"][key] for key in (*config, "own")} == {
        "int": 12,
        "float": 1.5,
        "true": True,
        "word": "own",
        "bool": False,
        "object": {1, 2},
        "own": 7,
    }


def test_the_command_line_wins() -> None:
    """A20, A44: over what the file says of the topology."""
    run(built({"a": 1, "b": 2}), a=3).batches(1)
    assert (SEEN["config"]["a"], SEEN["config"]["b"]) == (3, 2)


@given(st.one_of(st.integers(), st.booleans(), st.floats(allow_nan=False, allow_infinity=False)))
def test_numbers_and_truth_values_come_back(value: Any) -> None:
    """Numbers and booleans in Heron's configuration keep their value and their type (A44)."""
    back = typed(checked({"key": value}, "here"))["key"]
    assert (type(back), back) == (type(value), value)


def test_what_the_engine_gets() -> None:
    """A45, B25: containers are workers; a timeout is at most a tenth late; resources are Spark's."""
    conf = built({"topology.stmgrs": "4", "topology.container.cpu": "2"}).build().lowered().conf
    assert conf["topology.workers"] == 4 and conf["stormspark.message.timeout.buckets"] == 11
    for asked, workers in (({"topology.stmgrs": 1}, 1), ({"topology.stmgrs": 2, "topology.workers": 3}, 3)):
        assert built(asked).build().lowered().conf["topology.workers"] == workers
    plan = plan_topology(built({"topology.container.ram": 1}).build().lowered())
    assert any("topology.container.ram changes nothing here" in sentence for sentence in advice(plan))
    assert not any("unknown setting" in sentence for sentence in advice(plan))


@pytest.mark.parametrize(
    ("config", "mode"),
    [
        ({"topology.acking": True}, "ATLEAST_ONCE"),
        ({"topology.acking": "false"}, "ATMOST_ONCE"),
        ({"topology.acking": True, "topology.reliability.mode": "EFFECTIVELY_ONCE"}, "EFFECTIVELY_ONCE"),
    ],
)
def test_acking_as_it_was_asked_for_before(config: dict[str, Any], mode: str) -> None:
    """A45: topology.acking, where there is no reliability mode."""
    assert built(config).build().lowered().conf["topology.reliability.mode"] == mode


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ({"topology.reliability.mode": "EXACTLY_ONCE"}, "must be one of ATMOST_ONCE, ATLEAST_ONCE"),
        ({"topology.stateful.checkpoint.interval.seconds": 0}, "must be above 0, got 0"),
    ],
)
def test_what_is_refused(config: dict[str, Any], problem: str) -> None:
    """C43: with the key and what it may be."""
    with pytest.raises(InvalidTopologyError, match=problem):
        built(config).build().lowered()
