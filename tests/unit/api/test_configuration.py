"""`Config`, the dict with Storm's setters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from stormspark import Config, TopologyBuilder
from stormspark.config import KNOWN_KEYS, conf_problems
from stormspark.errors import InvalidTopologyError
from stormspark.plan import plan_topology
from stormspark.testing import TestWordSpout


class Consumer:
    """A class that can be registered."""


SETTERS: list[tuple[Callable[[Config], Config], dict[str, Any]]] = [
    (lambda c: c.set_debug(True), {"topology.debug": True}),
    (lambda c: c.set_num_workers(3), {"topology.workers": 3}),
    (lambda c: c.set_num_ackers(0), {"topology.acker.executors": 0}),
    (lambda c: c.set_num_event_loggers(2), {"topology.eventlogger.executors": 2}),
    (lambda c: c.set_message_timeout_secs(5), {"topology.message.timeout.secs": 5}),
    (lambda c: c.set_max_spout_pending(7), {"topology.max.spout.pending": 7}),
    (lambda c: c.set_max_task_parallelism(2), {"topology.max.task.parallelism": 2}),
    (lambda c: c.set_stats_sample_rate(1.0), {"topology.stats.sample.rate": 1.0}),
    (lambda c: c.set_topology_version("1.2"), {"topology.version": "1.2"}),
    (lambda c: c.set_topology_priority(9), {"topology.priority": 9}),
    (lambda c: c.set_topology_strategy("x.Y"), {"topology.scheduler.strategy": "x.Y"}),
    (lambda c: c.set_kryo_factory("x.Y"), {"topology.kryo.factory": "x.Y"}),
    (lambda c: c.register_decorator("x.Y"), {"topology.kryo.decorators": ["x.Y"]}),
    (lambda c: c.set_environment({"A": "b"}), {"topology.environment": {"A": "b"}}),
    (lambda c: c.set_classpath("x.jar"), {"topology.classpath": "x.jar"}),
    (lambda c: c.set_topology_worker_max_heap_size(768), {"topology.worker.max.heap.size.mb": 768}),
    (
        lambda c: c.set_skip_missing_kryo_registrations(True),
        {"topology.skip.missing.kryo.registrations": True},
    ),
    (
        lambda c: c.set_fall_back_on_java_serialization(True),
        {"topology.fall.back.on.java.serialization": True},
    ),
    (
        lambda c: c.set_topology_component_memory(128, 64).set_topology_component_cpu(10),
        {
            "topology.component.resources.onheap.memory.mb": 128,
            "topology.component.resources.offheap.memory.mb": 64,
            "topology.component.cpu.pcore.percent": 10,
        },
    ),
    (
        lambda c: c.register_serialization("a.B").register_serialization("c.D", "e.F"),
        {"topology.kryo.register": ["a.B", {"c.D": "e.F"}]},
    ),
    (
        lambda c: c.register_metrics_consumer("a.B").register_metrics_consumer(Consumer, {"x": 1}, 2),
        {
            "topology.metrics.consumer.register": [
                {"class": "a.B", "parallelism.hint": 1, "argument": None},
                {"class": f"{__name__}:Consumer", "parallelism.hint": 2, "argument": {"x": 1}},
            ]
        },
    ),
    (
        lambda c: c.register_event_logger(Consumer, {"x": 1}),
        {"topology.event.logger.register": [{"class": f"{__name__}:Consumer", "arguments": {"x": 1}}]},
    ),
]


@pytest.mark.parametrize(("set_it", "conf"), SETTERS)
def test_setters_write_storms_keys(set_it: Callable[[Config], Config], conf: dict[str, Any]) -> None:
    """A23: each writes a key that is known, with a value that is right."""
    written = set_it(Config())
    assert written == conf
    assert set(written) <= KNOWN_KEYS and conf_problems(written) == []


@pytest.mark.parametrize(
    "set_it",
    [
        lambda c: c.set_debug("true"),
        lambda c: c.set_num_workers(0),
        lambda c: c.set_num_ackers(-1),
        lambda c: c.set_message_timeout_secs("30"),
        lambda c: c.set_stats_sample_rate("all"),
        lambda c: c.set_kryo_factory("ok") and c.set_topology_priority(-1),
        lambda c: c.register_metrics_consumer("a.B", parallelism=0),
        lambda c: c.register_metrics_consumer("a.B", argument=object()),
    ],
)
def test_a_value_of_a_wrong_type_is_refused_by_name(set_it: Callable[[Config], Config]) -> None:
    """A setter of `Config` rejects a wrong value with the name of the setting (A23, A24, J5)."""
    with pytest.raises(InvalidTopologyError, match=r"topology\.[a-z.]+'? (must|is not JSON)"):
        set_it(Config())


@pytest.mark.parametrize("conf", [Config, "a=b", [("a", 1)]])
def test_what_is_no_configuration_is_refused_at_the_users_line(conf: Any) -> None:
    """A24: a class, a text, pairs."""
    with pytest.raises(
        InvalidTopologyError, match=r"test_configuration\.py:\d+: the configuration of topology 't' must"
    ):
        TopologyBuilder().create_topology("t", conf)


def test_it_goes_where_a_mapping_does() -> None:
    """A23, A20: for the topology, for a component, and as what lies over both."""
    builder = TopologyBuilder()
    builder.set_spout("words", TestWordSpout()).add_configurations(Config().set_max_spout_pending(5))
    topology = builder.create_topology("t", Config({"mine": 1}).set_num_workers(2))
    plan = plan_topology(topology, Config().set_num_workers(3))
    assert (plan.workers, plan.conf["mine"]) == (3, 1)
    assert plan.components["words"].conf == {"topology.max.spout.pending": 5}
