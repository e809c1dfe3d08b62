"""What users hear about before a topology runs (W15, B4)."""

import logging

import pytest

from stormspark import Config, Fields, TopologyBuilder
from stormspark.api import BoltDeclarer
from stormspark.plan import advice, log_advice, plan_topology
from stormspark.testing import TestWordCounter, TestWordSpout


def said(**conf: object) -> list[str]:
    builder = TopologyBuilder()
    builder.set_spout("words", TestWordSpout(), 2)
    builder.set_bolt("count", TestWordCounter(), 2).shuffle_grouping("words")
    settings = {key.replace("_", "."): value for key, value in conf.items()}
    return advice(plan_topology(builder.create_topology("t", settings)))


def said_of(builder: TopologyBuilder, **conf: object) -> list[str]:
    settings = {key.replace("_", "."): value for key, value in conf.items()}
    return advice(plan_topology(builder.create_topology("t", settings)))


def words_and_count() -> tuple[TopologyBuilder, BoltDeclarer]:
    builder = TopologyBuilder()
    builder.set_spout("words", TestWordSpout())
    return builder, builder.set_bolt("count", TestWordCounter(), 4).shuffle_grouping("words")


def test_nothing_is_reported_of_a_plain_topology() -> None:
    assert said(topology_workers=2, my_own="x") == []


def test_pending_without_timeouts_can_stall_for_ever() -> None:
    """Max spout pending without timeouts gives a warning that the spout may stall for ever (W15)."""
    (one,) = said(topology_max_spout_pending=10, topology_enable_message_timeouts=False)
    assert "spout 'words'" in one and "stop the spout" in one


def test_a_small_limit_over_workers_limits_the_trees_that_cross_workers() -> None:
    """Trees whose shuffles stay in their worker while the limit holds end at once: they are not limited."""
    builder, _ = words_and_count()
    builder.set_bolt("report", TestWordCounter(), 2).fields_grouping("count", Fields("word"))
    (one,) = said_of(builder, topology_max_spout_pending=100, topology_workers=2)
    assert "trees that cross workers (count -> report) end with their round" in one and "100 per round" in one
    assert said_of(builder, topology_max_spout_pending=50_000, topology_workers=2) == []
    assert said(topology_max_spout_pending=100, topology_workers=2) == []
    assert said(topology_max_spout_pending=100, topology_workers=1) == []


def test_a_limit_without_ackers_limits_nothing() -> None:
    (one,) = said(topology_max_spout_pending=100, topology_acker_executors=0)
    assert "it limits nothing" in one


def test_a_setting_that_a_component_may_not_have_is_reported() -> None:
    """A topology's setting on a component is ignored, with a warning at the user's line (A21)."""
    builder, count = words_and_count()
    count.add_configurations({"topology.message.timeout.secs": 5, "topology.debug": True, "mine": 1})
    count.set_num_tasks(4)  # Storm plans with it and keeps it from the tasks: nothing to say
    (one,) = said_of(builder)
    assert (
        "test_advice.py:" in one and "bolt 'count': topology.message.timeout.secs can't be set for one" in one
    )
    assert "is ignored there; set it in the topology's configuration" in one


def test_a_misspelt_key_of_a_component_is_reported_with_its_place() -> None:
    """A20, A21: a key that is unknown to Storm passes, but this one is meant for it."""
    builder, count = words_and_count()
    count.add_configuration("topology.debgu", True)
    (one,) = said_of(builder)
    assert "bolt 'count': unknown setting topology.debgu: did you mean topology.debug?" in one


def test_settings_without_effect_are_reported_once_per_reason() -> None:
    """A9, A23: resources, serialisation, JVM options."""
    builder, count = words_and_count()
    count.set_memory_load(512, 128).set_cpu_load(50).add_shared_memory("cache", on_heap_mb=64)
    conf = (
        Config().set_topology_worker_max_heap_size(768).register_serialization("a.B").set_classpath("x.jar")
    )
    resources, pickled, jvm = sorted(advice(plan_topology(builder.create_topology("t", conf))), key=len)[::-1]
    assert resources.count("topology.component.") == 4 and "topology.worker.max.heap.size.mb" in resources
    assert "stormspark.component.shared.memory" in resources
    assert "change nothing here: Spark's own resources decide" in resources
    assert {pickled, jvm} == {
        "topology.kryo.register changes nothing here: values are pickled, so there is nothing to register",
        "topology.classpath changes nothing here: workers are Python processes; set spark.executorEnv.* or "
        "spark.executor.extraJavaOptions",
    }


def test_consumers_and_event_loggers_have_an_effect() -> None:
    """A23, J17, J20."""
    builder, _ = words_and_count()
    conf = Config().register_metrics_consumer("a.B").register_event_logger("c.D")
    assert advice(plan_topology(builder.create_topology("t", conf))) == []


def test_a_cap_on_tasks_names_the_components_that_it_caps() -> None:
    """A cap on tasks gives a warning that names the components that it reduces, and none otherwise (A16)."""
    builder, _ = words_and_count()
    assert said_of(builder, topology_max_task_parallelism=2) == [
        "topology.max.task.parallelism caps the number of tasks: bolt 'count' has 2 instead of 4"
    ]
    assert said_of(builder, topology_max_task_parallelism=4) == []


def test_a_loop_is_named() -> None:
    """A15, J5: legal, with a warning."""
    builder, count = words_and_count()
    count.shuffle_grouping("second")
    builder.set_bolt("first", TestWordCounter()).shuffle_grouping("count")
    builder.set_bolt("second", TestWordCounter()).shuffle_grouping("first")
    (one,) = said_of(builder)
    assert one == (
        "'count' -> 'first' -> 'second' -> 'count' is a loop, which is legal; a tree that never leaves it times out"
    )
    (crossing,) = said_of(builder, topology_workers=2)
    assert crossing.startswith(one) and "each round after the first waits for the next batch" in crossing


def test_a_component_that_hears_itself_is_a_loop() -> None:
    """A bolt that subscribes to itself gives a warning about a loop (A15)."""
    builder, count = words_and_count()
    count.shuffle_grouping("count")
    (one,) = said_of(builder)
    assert one.startswith("'count' -> 'count' is a loop")


def test_advice_is_logged_where_a_program_submits(caplog: pytest.LogCaptureFixture) -> None:
    """W5, W6: not only the command line says it."""
    builder = TopologyBuilder()
    builder.set_spout("words", TestWordSpout())
    with caplog.at_level(logging.WARNING):
        log_advice(plan_topology(builder.create_topology("demo", {"topology.wrokers": 2})))
    assert "topology demo: unknown setting topology.wrokers" in caplog.text


def test_keys_of_queues_are_answered_with_what_there_is_instead() -> None:
    """F1, F2, F9, F13: wait strategies, buffers and samples have no meaning here; one sentence for each reason."""
    waiting, frames, anew = said(
        topology_backpressure_wait_strategy="x.Y",
        topology_bolt_wait_park_microsec=100,
        topology_transfer_batch_size=10,
        topology_batch_flush_interval_millis=1,
        topology_backpressure_check_millis=50,
        heron_streammgr_network_backpressure_threshold=3,
    )
    assert waiting.endswith(
        "change nothing here: no thread waits for a queue: a worker runs when there is a batch for it"
    )
    assert (
        "topology.batch.flush.interval.millis, topology.transfer.batch.size" in frames and "frames" in frames
    )
    assert "heron.streammgr.network.backpressure.threshold, topology.backpressure.check.millis" in anew
    assert said(topology_executor_receive_buffer_size=1024, topology_backpressure_enable=True) == []


def test_backpressure_can_not_be_switched_off_but_be_exchanged() -> None:
    """F7, F5, X51: what Storm would do is said, and how to have it."""
    (one,) = said(topology_backpressure_enable=False)
    assert (
        "spouts are slowed down all the same while their bolts are behind" in one
        and "strategy to drop or fail" in one
    )
    (one,) = said(topology_executor_overflow_limit=500)
    assert "no tuple is dropped: " in one and "stormspark.queue.high.mark.tuples to 500" in one
    drop = {"stormspark_backpressure_strategy": "drop"}
    assert said(topology_executor_overflow_limit=500, topology_backpressure_enable=False, **drop) == []
    assert said(topology_executor_overflow_limit=0) == []


def test_failing_without_ackers_is_dropping() -> None:
    """The backpressure strategy `fail` without ackers gives a warning that no spout hears of it (X51, B8)."""
    (one,) = said(stormspark_backpressure_strategy="fail", topology_acker_executors=0)
    assert "no spout is informed of failed tuples" in one


def test_a_bolt_without_a_subscription_gets_no_tuples() -> None:
    """Storm runs it, and says nothing. A bolt that works at ticks may mean it."""
    builder, _ = words_and_count()
    declarer = builder.set_bolt("lost", TestWordCounter())
    (one,) = said_of(builder)
    assert "bolt 'lost' subscribes to no stream, so it gets no tuples" in one
    assert "shuffle_grouping('words')" in one
    declarer.add_configuration("topology.tick.tuple.freq.secs", 5)
    assert said_of(builder) == []
