"""Operations on one element at a time, sources, and delivery: on the local engine, in simulated time."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

import pytest

from stormspark.errors import ComponentError, FailedException
from stormspark.local import LocalCluster, SimulatedClock
from stormspark.metrics import TopologyStatistics
from stormspark.streamlet import (
    ArrayLooper,
    Builder,
    Config,
    Generator,
    KeyValue,
    TextFileGenerator,
    TransformOperator,
)
from stormspark.testing import TestWordSpout
from tests.unit.streamlet.fed import (
    SEMANTICS,
    Once,
    begin,
    collect,
    collected,
    done,
    from_left,
    from_right,
    run,
    running,
)

every_semantics = pytest.mark.parametrize("semantics", SEMANTICS)


@every_semantics
def test_map_flat_map_filter(semantics):
    """G24: what can't be iterated is one element of a flat_map, and a text is its letters."""
    begin(["ab", 3, [4, 5], ()])
    builder = Builder()
    source = builder.new_source(from_left)
    source.map(lambda element: ("map", element)).consume(collect)
    source.flat_map(lambda element: element).consume(collect)
    source.filter(lambda element: element).consume(collect)
    assert Counter(map(repr, run(builder, semantics))) == Counter(
        map(
            repr,
            [("map", "ab"), ("map", 3), ("map", [4, 5]), ("map", ()), "a", "b", 3, 4, 5, "ab", 3, [4, 5]],
        )
    )


@every_semantics
@pytest.mark.parametrize("workers", [1, 2])
def test_union_clone_and_repartition_lose_nothing(semantics, workers):
    """Union, clone and repartition pass on each element the right number of times (G24)."""
    begin(range(50), range(50, 80))
    builder = Builder()
    one, other = builder.new_source(from_left), builder.new_source(from_right)
    for streamlet in one.union(other).set_num_partitions(2).clone(2):
        streamlet.repartition(3).consume(collect)
    assert Counter(run(builder, semantics, topology_workers=workers)) == Counter([*range(80)] * 2)


class Where(TransformOperator):
    """Emits the partition before each element, twice."""

    def setup(self, context):
        self.context = context
        context.emit(("set up", context.get_partition_index()))

    def transform(self, tup):
        for _ in range(2):
            self.context.emit((self.context.get_partition_index(), tup.values[0]))


def test_repartition_by_a_function():
    """G24: one partition, several, or none."""
    begin(range(12))
    builder = Builder()
    routed = builder.new_source(from_left).repartition(
        3, lambda n, partitions: [] if n % 4 == 3 else [n % 4, 0]
    )
    routed.transform(Where()).set_name("where")
    # One task sends, and each transform has one sender alone: what is dealt out is what was routed.
    routed.map(lambda n: n).consume(collect)
    assert Counter(run(builder)) == Counter(n for n in range(12) if n % 4 != 3 for _ in range(2))


@every_semantics
def test_transform_is_set_up_in_each_task_and_emits_what_it_likes(semantics):
    """G24: in Heron's Python it has never run, for a name that is misspelt there."""
    begin(range(6))
    builder = Builder()
    builder.new_source(from_left).set_num_partitions(1).transform(Where()).set_num_partitions(2).consume(
        collect
    )
    out = run(builder, semantics)
    assert sorted(element for where, element in out if where == "set up") == [0, 1]
    assert Counter(element for where, element in out if where != "set up") == Counter([*range(6)] * 2)


class About(Generator):
    """Gives what its context says."""

    def setup(self, context):
        self.logger.info("set up")
        self.said: list[Any] | None = [
            context.get_num_partitions(),
            context.get_partition_index(),
            context.get_stream_name(),
            context.get_config()["mine"],
            context.get_state() is not None,
        ]

    def get(self):
        said, self.said = self.said, None
        return said


@every_semantics
def test_what_a_context_says(semantics):
    """G24: a state there is with EFFECTIVELY_ONCE alone, as in Heron."""
    begin()
    builder = Builder()
    builder.new_source(About()).set_num_partitions(2).consume(collect)
    out = run(builder, semantics, mine=7)
    assert sorted(out) == [[2, n, "output", 7, semantics == Config.EFFECTIVELY_ONCE] for n in range(2)]


class Reads(TransformOperator):
    """Emits a value of the configuration."""

    def setup(self, context):
        self.context = context

    def transform(self, tup):
        self.context.emit(self.context.get_config()[tup.values[0]])


def test_a_configuration_may_hold_anything():
    """G24, A44: texts of Heron's keys are numbers and truth values again; what is no JSON goes with the components."""
    begin(["topology.debug", "topology.message.timeout.secs", "mine", "set", "function"])
    builder = Builder()
    builder.new_source(from_left).transform(Reads()).consume(collect)
    config = Config({"topology.debug": "false", "topology.message.timeout.secs": "45", "mine": "45"})
    config.set_user_config("set", {1, 2})
    config.set_user_config("function", abs)
    with LocalCluster(simulated_time=True) as cluster:
        cluster.submit_topology("anything", {}, builder.build("anything", config)).run_until_idle()
    assert collected == [False, 45, "45", {1, 2}, abs]


def test_an_array_looper_begins_anew_at_the_end_and_keeps_its_pace(monkeypatch):
    """G24: without sleeping, which would hold up other tasks."""
    now = [100.0]
    monkeypatch.setattr("stormspark.streamlet.operators.time.monotonic", lambda: now[0])
    quick = ArrayLooper("ab")
    quick.setup(None)  # type: ignore[arg-type]
    assert [quick.get() for _ in range(5)] == ["a", "b", "a", "b", "a"]
    paced = ArrayLooper([1, 2], sleep=1)
    paced.setup(None)  # type: ignore[arg-type]
    got = []
    for now[0] in (100.5, 101.0, 101.5, 102.0, 105.0, 105.0, 106.0):
        got.append(paced.get())
    assert got == [None, 1, None, 2, 1, 2, 1]
    with pytest.raises(ValueError, match="must be given an iterable"):
        ArrayLooper(3)  # type: ignore[arg-type]


def test_lines_of_files_are_shared_out(tmp_path):
    """G24: heronpy.connectors.textfiles."""
    begin()
    for name in "abc":
        (tmp_path / f"{name}.txt").write_text("".join(f"{name}{n}\n" for n in range(3)))
    builder = Builder()
    builder.new_source(TextFileGenerator(str(tmp_path / "*.txt"))).set_num_partitions(2).consume(collect)
    assert sorted(run(builder)) == [f"{name}{n}\n" for name in "abc" for n in range(3)]


@pytest.mark.slow
def test_any_spout_is_a_source():
    """Any spout can be a source, with a function that makes elements of its tuples (G23)."""
    begin()
    builder = Builder()
    builder.new_source(TestWordSpout(), lambda tup: tup["word"].upper()).consume(collect)
    with running(builder) as topology:
        topology.run_batch()
    assert collected and all(word.isupper() for word in collected)


def test_split():
    """G23: to each stream whose predicate is true."""
    begin(range(10))
    builder = Builder()
    parts = builder.new_source(from_left).split({"odd": lambda n: n % 2, "big": lambda n: n > 5})
    parts.with_stream("odd").map(lambda n: ("odd", n)).consume(collect)
    parts.with_stream("big").map(lambda n: ("big", n)).consume(collect)
    assert sorted(run(builder)) == [
        *(("big", n) for n in range(6, 10)),
        *(("odd", n) for n in range(1, 10, 2)),
    ]


@every_semantics
@pytest.mark.parametrize("partitions", [1, 3])
def test_running_counts_and_reductions(semantics, partitions):
    """G23: one element for each element, the key's value so far."""
    words = ["a", "b", "a", "c", "a", "b"]
    begin(words)
    builder = Builder()
    source = builder.new_source(from_left)
    source.count_by_key(lambda word: word).set_num_partitions(partitions).consume(collect)
    source.key_by(lambda word: word, lambda word: word * 2).set_num_partitions(partitions).consume(collect)
    source.reduce_by_key(len, None, lambda one, other: one + other).consume(collect)
    out = run(builder, semantics)
    assert all(type(one) is KeyValue for one in out)
    counts = [("a", 1), ("b", 1), ("a", 2), ("c", 1), ("a", 3), ("b", 2)]
    sums = [(1, "abacab"[:n]) for n in range(1, 7)]
    assert Counter(out) == Counter([*counts, *((word, word * 2) for word in words), *sums])


def test_the_log_is_the_tasks(caplog):
    """`log` writes each element to the log of its task (G24)."""
    begin([{"a": 1}, "100 %s"])
    builder = Builder()
    builder.new_source(from_left).log()
    with caplog.at_level("INFO", logger="stormspark.task.log-1"):
        run(builder)
    assert [one.getMessage() for one in caplog.records if one.name == "stormspark.task.log-1"] == [
        "{'a': 1}",
        "100 %s",
    ]


clocks: list[SimulatedClock] = []


def blocking(name):
    clocks[0].advance(5)
    collected.append(name)
    return name


def test_a_source_that_blocks_keeps_no_other_from_its_turn():
    """G24, B1: generators of Heron's often sleep, each in a process of its own there."""
    begin()
    builder = Builder()
    for name in "abc":
        builder.new_source(partial(blocking, name)).log()
    with running(builder) as topology:
        clocks.append(topology.simulated_clock)
        for _ in range(4):
            topology.run_batch()
    clocks.clear()
    assert Counter(collected) == dict.fromkeys("abc", 4)


# -- delivery ------------------------------------------------------------------------------------------------------


def statistics(builder: Builder, semantics: int, **conf: object) -> TopologyStatistics:
    with running(builder, semantics, **conf) as topology:
        topology.run_until_idle()
        return topology.statistics()


@pytest.mark.parametrize(("semantics", "times"), [*zip(SEMANTICS, (0, 1, 1), strict=True)])
def test_what_fails_is_emitted_again_unless_at_most_once_is_asked_for(semantics, times):
    """G24, C43: in Heron's Python never."""
    begin(range(10))
    builder = Builder()
    builder.new_source(from_left).map(Once(7, FailedException("not now"))).consume(collect)
    told = statistics(builder, semantics)
    assert "raised" in done
    assert collected.count(7) == times
    assert set(collected) >= set(range(10)) - {7}
    if semantics == Config.ATLEAST_ONCE:
        assert Counter(collected) == Counter(range(10))
    if semantics == Config.ATMOST_ONCE:
        assert told.components["supplier-1"].pending == 0


class Counting(Generator):
    """Its position is its state."""

    def setup(self, context):
        self.state = context.get_state()

    def get(self):
        n = self.state.get("next", 0)
        if n == 20:
            return None
        self.state["next"] = n + 1
        return n


class Sum(TransformOperator):
    """So is its sum."""

    def setup(self, context):
        self.context, self.state = context, context.get_state()

    def transform(self, tup):
        self.state["sum"] = self.state.get("sum", 0) + tup.values[0]
        self.context.emit(self.state["sum"])


@pytest.mark.parametrize("error", [KeyError("boom"), FailedException("not now")], ids=["raises", "fails"])
def test_states_are_taken_back_with_their_batch(error):
    """G24, C42, C44: whatever happens, each element counts once."""
    begin()
    builder = Builder()
    builder.new_source(Counting()).transform(Sum()).map(Once(55, error)).consume(collect)
    run(builder, Config.EFFECTIVELY_ONCE)
    assert "raised" in done
    assert collected[-1] == sum(range(20))


def test_running_counts_are_state():
    """Running counts are state: an error in a later stage does not make them count twice (G23, C44)."""
    begin()
    builder = Builder()
    source = builder.new_source(Counting()).map(lambda n: n % 3)
    source.count_by_key(lambda n: n).map(Once(KeyValue(2, 5), KeyError("boom"))).consume(collect)
    run(builder, Config.EFFECTIVELY_ONCE)
    assert "raised" in done
    assert dict(collected) == {0: 7, 1: 7, 2: 6}


# -- errors --------------------------------------------------------------------------------------------------------


class Raises(TransformOperator):
    def setup(self, context):
        pass

    def transform(self, tup):
        raise LookupError(f"no {tup.values[0]}")


def _boom(*arguments):
    raise LookupError(f"no {arguments[0] if arguments else 'more'}")


@pytest.mark.parametrize(
    ("operation", "stage", "name"),
    [
        (lambda s: s.map(_boom), "map-1", "map"),
        (lambda s: s.flat_map(lambda element: (_boom(element) for _ in range(1))), "flatmap-1", "flat_map"),
        (lambda s: s.filter(_boom), "filter-1", "filter"),
        (lambda s: s.consume(_boom), "consume-1", "consume"),
        (lambda s: s.transform(Raises()), "transform-1", "transform"),
        (lambda s: s.split({"a": _boom}), "split-1", "split"),
        (lambda s: s.key_by(_boom).log(), "keyby-1", "key_by"),
    ],
)
def test_an_error_names_the_stage_the_line_and_the_element(operation, stage, name):
    """An error in a user's function names the stage, the operation, the line and the element (G24, W22)."""
    begin(["storm"])
    builder = Builder()
    operation(builder.new_source(from_left))
    with pytest.raises(ComponentError) as caught:
        run(builder, stormspark_task_max_restarts_in_row=0)
    told = str(caught.value)
    assert f"bolt {stage!r}" in told and "LookupError: no storm" in told
    assert f"in stage {stage!r}, {name} at {__file__}:" in told and "of 'storm'" in told


def test_an_error_of_a_source_names_it_too():
    """An error in a source names the source's stage and the line (G24, W22)."""
    begin()
    builder = Builder()
    builder.new_source(_boom).set_name("numbers").log()
    with pytest.raises(ComponentError, match=rf"in stage 'numbers', supplier at {__file__}:\d+"):
        run(builder, stormspark_task_max_restarts_in_row=0)


@pytest.mark.parametrize("partitions", [1, 2])
def test_an_unhashable_key_stops_the_topology(partitions):
    """An unhashable key stops the topology, with one partition and with two (G24)."""
    begin(["storm"])
    builder = Builder()
    source = builder.new_source(from_left)
    source.reduce_by_key(lambda element: {}, None, lambda one, other: one).set_num_partitions(
        partitions
    ).log()
    with pytest.raises(ComponentError, match="unhashable type: 'dict'"):
        run(builder, stormspark_task_max_restarts_in_row=0)
