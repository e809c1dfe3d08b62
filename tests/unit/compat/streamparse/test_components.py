"""What single components do in their task, tested as users test them (W10)."""

# ruff: noqa: RUF012 - class attributes are written as users write them
from __future__ import annotations

import logging
import pickle
from pathlib import Path
from typing import Any

import pytest

from stormspark.compat.streamparse import lower
from stormspark.compat.streamparse.storm import BatchingBolt, Bolt, Spout, TicklessBatchingBolt
from stormspark.compat.streamparse.streams import Stream
from stormspark.compat.streamparse.task_log import task_logger
from stormspark.compat.streamparse.topology import Topology
from stormspark.compat.streamparse.tuples import Tuple, values_type
from stormspark.compat.streamparse.values import copied
from stormspark.errors import ComponentError
from stormspark.local import InProcessWorkers, LocalTopology, SimulatedClock
from stormspark.plan import plan_topology
from stormspark.testing import complete_topology
from tests.unit.compat.streamparse import witness


class Once(Spout):
    """Emits what its config says, once."""

    outputs = ["x"]

    def initialize(self, storm_conf: Any, context: Any) -> None:
        self.todo = list(storm_conf["todo"])

    def next_tuple(self) -> None:
        if self.todo:
            value = self.todo.pop(0)
            self.emit([value], tup_id=str(value))


def run(bolt: type[Bolt], *values: Any, conf: Any = None) -> Any:
    """Run a bolt behind a spout that emits these values; gives what it emitted and the statistics."""

    class T(Topology):
        once = Once.spec(config={"todo": list(values)})
        bolt_ = bolt.spec(name="bolt", inputs=[once])

    return complete_topology(lower(T, "t", conf or {}))


@pytest.fixture(autouse=True)
def _nothing_seen() -> None:
    witness.seen.clear()


def test_what_a_component_knows_of_itself() -> None:
    """A37, B16, C12, C19, I2: the configuration with the topology's name, the context as in the handshake, name, task, logger."""

    class Knows(Bolt):
        outputs = ["a", "b"]

        def initialize(self, storm_conf: Any, context: Any) -> None:
            assert self.storm_conf is storm_conf and self.context is context
            witness.seen.append(
                (self.topology_name, self.component_name, self.task_id, self.debug, self.logger.name)
            )
            witness.seen.append(context)

        def process(self, tup: Any) -> None:
            pass

    run(Knows, 1, conf={"mine": 1})
    assert witness.seen[0] == ("t", "bolt", 2, False, "pystorm.component.bolt")
    assert witness.seen[1]["task->component"] == {"2": "bolt", "3": "once"}
    assert witness.seen[1]["source->stream->fields"] == {"once": {"default": ["x"]}}
    assert witness.seen[1]["source->stream->grouping"] == {"once": {"default": {"type": "SHUFFLE"}}}
    assert witness.seen[1]["stream->outputfields"] == {"default": ["a", "b"]}
    assert (witness.seen[1]["taskid"], witness.seen[1]["componentid"]) == (2, "bolt")


def test_emit_takes_lists_and_tuples() -> None:
    """C12: anything else is a TypeError that shows it."""

    class Emits(Bolt):
        outputs = ["x"]

        def process(self, tup: Any) -> None:
            for values in ("x", {"x": 1}, iter([1])):
                with pytest.raises(TypeError, match="All Tuples must be either lists or tuples"):
                    self.emit(values)  # type: ignore[arg-type]
            assert self.emit(("a",)) is None
            assert self.emit(["b"], need_task_ids=True) == []
            with pytest.raises(ValueError, match="Unknown stream ID 'y'"):
                self.emit(["a"], stream="y")
            witness.seen.append("done")

    done = run(Emits, 1)
    assert witness.seen == ["done"]
    assert done.read_tuples("bolt") == [("a",), ("b",)]


def test_a_wrong_number_of_values_raises_where_a_bolt_subscribes() -> None:
    """A12: only the default stream has a subscriber here."""

    class Emits(Bolt):
        outputs = [Stream(fields=["x"]), Stream(fields=["x"], name="unread")]

        def process(self, tup: Any) -> None:
            self.emit(["a", "b"], stream="unread")
            with pytest.raises(ValueError, match="wrong number of fields"):
                self.emit(["a", "b"])
            witness.seen.append("done")

    class Sees(Bolt):
        def process(self, tup: Any) -> None: ...

    class T(Topology):
        once = Once.spec(config={"todo": [1]})
        emits = Emits.spec(inputs=[once])
        sees = Sees.spec(inputs=[emits])

    complete_topology(lower(T, "t", {}))
    assert witness.seen == ["done"]


def test_emit_may_be_overridden() -> None:
    """C12: a class that overrides ``emit`` is asked first, as in Python everywhere."""

    class Shouts(Bolt):
        outputs = ["x"]

        def emit(self, tup: Any, *args: Any, **kwargs: Any) -> Any:
            return super().emit([str(tup[0]).upper()], *args, **kwargs)

        def process(self, tup: Any) -> None:
            self.emit([tup.values.x])

    assert run(Shouts, "a").read_tuples("bolt") == [("A",)]


def test_an_ack_too_many() -> None:
    """C13, E14: an ack by hand before the one that comes by itself is honoured; of unknown tuples it is reported."""

    class Twice(Bolt):
        def process(self, tup: Any) -> None:
            self.ack(tup)
            witness.seen.append(tup.id)
            if len(witness.seen) == 2:
                self.ack(witness.seen[0])
                self.fail("never given")

    done = run(Twice, "a", "b")
    assert done.statistics.components["once"].acked == 2
    assert done.statistics.components["bolt"].acked == 2
    assert done.statistics.components["bolt"].errors == 2


def test_anchors_that_are_gone() -> None:
    """C13, I12: an emit anchored to what is acked already raises, and says what to do."""

    class Late(Bolt):
        outputs = ["x"]

        def process(self, tup: Any) -> None:
            if witness.seen:
                with pytest.raises(ValueError, match=r"acked or failed already.* emit first, then ack"):
                    self.emit(["x"], anchors=[witness.seen[0]])
            witness.seen.append(tup)

    run(Late, "a", "b")
    assert len(witness.seen) == 2
    assert witness.seen[0].id != witness.seen[1].id


@pytest.mark.slow
def test_metrics_and_logs(caplog: pytest.LogCaptureFixture) -> None:
    """C19: report_metric shows in the statistics, log writes whatever the level is, raise_exception reports."""
    caplog.set_level(logging.DEBUG)

    class Tells(Bolt):
        def process(self, tup: Any) -> None:
            self.report_metric("x", tup.values.x)
            self.log("a note")
            self.log("a warning", "warn")
            self.logger.debug("a detail")
            self.logger.info("some news")
            try:
                raise KeyError("x")
            except KeyError as error:
                self.raise_exception(error, tup)

    class T(Topology):
        once = Once.spec(config={"todo": [7]})
        bolt = Tells.spec(inputs=[once])

    clock = SimulatedClock()
    running = LocalTopology(plan_topology(lower(T, "t")), clock)
    for _ in range(3):
        running.advance_time(61)
    statistics = running.statistics()
    running.stop()
    assert statistics.components["bolt"].errors == 1
    lines = {record.getMessage(): record.levelname for record in caplog.records}
    assert (lines["a note"], lines["a warning"], lines["some news"]) == ("INFO", "WARNING", "INFO")
    assert "a detail" not in lines
    assert any("Python KeyError raised while processing Tuple" in line for line in lines)
    assert statistics.components["bolt"].metrics["pystorm"][2].value == {"x": 7}


def test_a_spout_that_goes_on_after_an_exception() -> None:
    """B20, C14: with ``exit_on_exception = False`` a spout's exceptions are reported, and it goes on."""

    class GoesOn(Once):
        exit_on_exception = False

        def next_tuple(self) -> None:
            super().next_tuple()
            if self.todo == ["b"]:
                self.todo = ["c", "d"]
                raise ValueError("once")

        def ack(self, tup_id: Any) -> None:
            witness.seen.append(tup_id)
            raise KeyError(tup_id)

    class Sink(Bolt):
        def process(self, tup: Any) -> None:
            pass

    class T(Topology):
        once = GoesOn.spec(config={"todo": ["a", "b"]})
        bolt = Sink.spec(inputs=[once])

    spout = complete_topology(lower(T, "t")).statistics.components["once"]
    assert witness.seen == ["a", "c", "d"]
    assert (spout.restarts, spout.acked, spout.errors) == (0, 3, 4)


def test_what_initialize_raises_stops_the_topology() -> None:
    """B20, W22: as for any component, with its name."""

    class Broken(Bolt):
        def initialize(self, storm_conf: Any, context: Any) -> None:
            raise OSError("no database")

    with pytest.raises(ComponentError, match=r"bolt 'bolt'.*raised in prepare: OSError: no database"):
        run(Broken, 1)


def test_tuples_are_named_tuples() -> None:
    """C16: a namedtuple, whose values are one too; names that are no identifiers get others."""
    kind = values_type("word-spout 2", "my.stream", ("word", "user-id", "class"))
    assert kind.__name__ == "Word_Spout_2My_StreamTuple"
    values = kind._make(("dog", 1, 2))  # type: ignore[attr-defined]
    assert (values.word, values._1, values._2) == ("dog", 1, 2)  # type: ignore[attr-defined]
    tup = Tuple("1", "spout", "default", 4, values)
    id, component, stream, task, same = tup
    assert (id, component, stream, task, same) == ("1", "spout", "default", 4, ("dog", 1, 2))
    assert tup == Tuple(id="1", component="spout", stream="default", task=4, values=values)


def test_tuples_are_what_namedtuples_are() -> None:
    """C16: as a dictionary, with something replaced, pickled, equal by what they hold."""
    tup = Tuple("1", "spout", "default", 4, values_type("spout", "default", ("word",))(("dog",)))
    assert Tuple._fields == ("id", "component", "stream", "task", "values") and len(tup) == 5
    assert tup._asdict() == {
        "id": "1",
        "component": "spout",
        "stream": "default",
        "task": 4,
        "values": ("dog",),
    }
    assert tup._replace(id="2").id == "2" and tup._replace(id="2") != tup
    assert Tuple._make(tup) == tup == ("1", "spout", "default", 4, ("dog",))
    again = pickle.loads(pickle.dumps(tup))
    assert again == tup and again.values.word == "dog"
    assert pickle.loads(pickle.dumps(tup.values)) == ("dog",)


def test_a_tuple_that_is_kept_stays_what_it_was() -> None:
    """C13, C16: the engine uses a tuple's object again, but not that of one that the bolt keeps; each id is one tuple's."""

    class Keeps(Bolt):
        def initialize(self, storm_conf: Any, context: Any) -> None:
            self.kept: list[Any] = []
            self.ids: list[str] = []

        def process(self, tup: Any) -> None:
            if tup.values.x % 2:
                self.kept.append(tup)
            self.ids.append(tup.id)
            witness.seen[:] = [[one.values.x for one in self.kept], len(set(self.ids)), self.kept]

    done = run(Keeps, *range(10))
    assert witness.seen[:2] == [[1, 3, 5, 7, 9], 10]
    assert done.statistics.components["once"].acked == 10


def test_values_that_are_kept_stay_what_they_were() -> None:
    """C16: the object of the values is used again too, but not where anything still leads to it."""

    class Keeps(Bolt):
        outputs = ["x", "y"]

        def initialize(self, storm_conf: Any, context: Any) -> None:
            self.kept: dict[Any, Any] = {}

        def process(self, tup: Any) -> None:
            x, values = tup.values.x, tup.values
            if x % 5 == 0:
                self.kept[x] = values
            elif x % 5 == 1:
                self.kept[x] = iter(values)
            elif x % 5 == 2:
                self.kept[x] = tup
            elif x % 5 == 3:
                self.kept[values] = x
            self.emit([values, tup.values])
            kept = {one: list(self.kept[one]) for one in self.kept if isinstance(one, int) and one % 5 == 0}
            witness.seen[:] = [kept, dict(self.kept), type(values)._fields]

    done = run(Keeps, *range(20))
    kept, everything, fields = witness.seen
    assert kept == {x: [x] for x in range(0, 20, 5)} and fields == ("x",)
    for x in range(0, 20, 5):
        assert next(everything[x + 1]) == x + 1 and everything[x + 2].values == (x + 2,)
        assert everything[(x + 3,)] == x + 3
    assert list(done.read_tuples("bolt")) == [([x], [x]) for x in range(20)]


def test_ids_are_good_for_tuples_that_wait() -> None:
    """C12: asked for at any time, also long after ``process``; a bolt may keep nothing but the id."""

    class Late(Bolt):
        outputs = ["x"]
        auto_ack = auto_anchor = False

        def initialize(self, storm_conf: Any, context: Any) -> None:
            self.kept: list[Any] = []
            self.ids: list[str] = []

        def process(self, tup: Any) -> None:
            if tup.values.x < 3:
                self.kept.append(tup)
                return
            if self.kept:
                self.ids = [one.id for one in self.kept]
                self.kept = []
            self.ack(tup.id)
            for id in self.ids:
                self.emit([id], anchors=[id])
                self.ack(id)
                with pytest.raises(ValueError, match="acked or failed already"):
                    self.emit([id], anchors=[id])
            self.ids = []

    done = run(Late, *range(5))
    assert done.statistics.components["once"].acked == 5 and len(done.read_tuples("bolt")) == 3


class Timed(TicklessBatchingBolt):
    """Notes which batches it has processed."""

    secs_between_batches = 0.3

    def process_batch(self, key: Any, tups: list[Any]) -> None:
        witness.seen.append([tup.values[0] for tup in tups])


def test_batches_come_as_often_as_secs_between_batches_says() -> None:
    """C18: not before the time has passed, and all that has come by then together."""

    class T(Topology):
        once = Once.spec(config={"todo": ["a", "b"]})
        timed = Timed.spec(inputs=[once])

    clock = SimulatedClock()
    workers = InProcessWorkers(plan_topology(lower(T, "t", {})), clock)
    workers.open()
    for seconds, batches in ((0.0, []), (0.29, []), (0.02, [["a", "b"]]), (0.3, [["a", "b"]])):
        clock.advance(seconds)
        workers.run_batch()
        assert witness.seen == batches, f"after {clock()} s"
    workers.close()


class ByTicks(BatchingBolt):
    """Notes which batches it has processed; the second tick would process them."""

    def group_key(self, tup: Any) -> Any:
        return tup.values[0]

    process_batch = Timed.process_batch


@pytest.mark.parametrize("bolt", [Timed, ByTicks])
def test_batches_are_processed_at_the_end_of_the_input(bolt: type[Bolt]) -> None:
    """C17, C18: no tick, and no timer."""

    class T(Topology):
        once = Once.spec(config={"todo": ["a", "b"]})
        batching = bolt.spec(name="batching", inputs=[once])

    topology = LocalTopology(plan_topology(lower(T, "t", {})), SimulatedClock())
    topology.run_batch()
    topology.end_input()
    while not topology.wait(0):
        topology.run_batch()
    assert sorted(value for batch in witness.seen for value in batch) == ["a", "b"]
    assert topology.statistics().components["once"].acked == 2


class Settled(Bolt):
    """Fails the tuple before this one, which changes nothing if that was acked; acks the last one."""

    def initialize(self, storm_conf: Any, context: Any) -> None:
        self.before: Any = None

    def process(self, tup: Any) -> None:
        if self.before is not None:
            self.fail(self.before)
        self.before = tup
        if tup.values.x == 3:
            self.ack(tup)
        self.turn(tup.values.x)

    def turn(self, x: int) -> None:
        """Nothing."""


class NoAcks:
    auto_ack = False


def test_switches_are_turned_where_one_likes() -> None:
    """C13: of a class, of one that it is made of too, of an object, at any time, or by a property."""

    class TurnsItOff(Settled):
        def turn(self, x: int) -> None:
            self.auto_ack = x != 1

    class Off(Settled):
        auto_ack = False

    class OnAgain(Off):
        def initialize(self, storm_conf: Any, context: Any) -> None:
            super().initialize(storm_conf, context)
            self.auto_ack = True

    class MixedIn(NoAcks, Settled):
        pass

    class OffLater(Settled):
        pass

    OffLater.auto_ack = False

    class Computed(Settled):
        @property
        def auto_ack(self) -> bool:  # type: ignore[override]
            return bool(self.before.values.x != 1)

    assert Bolt.auto_ack is True and Off.auto_ack is False and OnAgain().auto_ack is False
    bolts = (Settled, TurnsItOff, Off, OnAgain, MixedIn, OffLater, Computed)
    found = {bolt.__name__: run(bolt, *range(4)).statistics.components["once"] for bolt in bolts}
    assert {name: (once.acked, once.failed) for name, once in found.items()} == {
        "Settled": (4, 0),
        "TurnsItOff": (3, 1),
        "Off": (1, 3),
        "OnAgain": (4, 0),
        "MixedIn": (1, 3),
        "OffLater": (1, 3),
        "Computed": (3, 1),
    }


def test_what_is_settled_and_what_was_never_given() -> None:
    """C12, E14: an ack by hand before the automatic one counts once; one of a tuple of the bolt's own making changes nothing."""

    class Settles(Bolt):
        def process(self, tup: Any) -> None:
            self.ack(tup)
            self.ack(tup)
            self.ack(tup.id)
            self.fail(Tuple("9", "once", "default", 1, [1]))

    done = run(Settles, 1, 2)
    assert done.statistics.components["once"].acked == 2 and done.statistics.components["once"].failed == 0


def test_copies_are_what_json_makes() -> None:
    """C12: containers are copied, keys become texts; what never can be changed stays what it is."""
    thing = object()
    values = ({None: 1, True: 2, 1.5: (3,)}, "a", b"b", thing)
    assert copied(values) == ({"null": 1, "true": 2, "1.5": [3]}, "a", b"b", thing)


def logger(conf: dict[str, Any], task: int = 3) -> logging.Logger:
    return task_logger(
        {"topology.name": "t", **conf}, "count", task, logging.getLogger("stormspark.task.count")
    )


def test_log_files(tmp_path: Path) -> None:
    """C19: with pystorm.log.path lines go to a file of each task there, and nowhere else."""
    conf = {
        "pystorm.log.path": str(tmp_path / "logs"),
        "pystorm.log.file": "{topology_name}-{component_name}-{task_id}.log",
        "pystorm.log.level": "warn",
        "pystorm.log.format": "%(levelname)s %(message)s",
    }
    one, two = logger(conf, 3), logger(conf, 4)
    one.warning("three")
    one.info("nothing")
    two.error("four")
    logger(conf, 3).warning("three again, in another life")
    assert (
        tmp_path / "logs" / "t-count-3.log"
    ).read_text() == "WARNING three\nWARNING three again, in another life\n"
    assert (tmp_path / "logs" / "t-count-4.log").read_text() == "ERROR four\n"


def test_log_format_and_level(caplog: pytest.LogCaptureFixture) -> None:
    """C19: without a path lines go to the task's log, in the format that is asked for; topology.debug is the lowest level."""
    caplog.set_level(logging.DEBUG)
    logger({"pystorm.log.format": "%(name)s says %(message)s"}).info("one")
    logger({"pystorm.log.level": "nonsense"}).debug("two")
    logger({"pystorm.log.level": "error", "topology.debug": True}).debug("three")
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("INFO", "pystorm.component.count says one"),
        ("DEBUG", "three"),
    ]


def test_acking_that_is_off(caplog: pytest.LogCaptureFixture) -> None:
    """B8, W5: without ackers a spout hears of its acks inside of emit, and is told so, once."""

    class Hears(Once):
        def ack(self, tup_id: Any) -> None:
            witness.seen.append(tup_id)

    class Sink(Bolt):
        def process(self, tup: Any) -> None:
            pass

    class T(Topology):
        once = Hears.spec(config={"todo": ["a", "b"]})
        sink = Sink.spec(inputs=[once])

    complete_topology(lower(T, "t", {"topology.acker.executors": 0}))
    assert witness.seen == ["a", "b"]
    assert sum("acking is off" in message for message in caplog.messages) == 1


def test_a_direct_emit_to_a_task_that_does_not_subscribe() -> None:
    """A34, B9, W24: it raises, and says what to do; ``topology.tasks`` says how many tasks there are."""

    class Picks(Bolt):
        outputs = ["x"]

        def process(self, tup: Any) -> None:
            tasks = [int(task) for task, name in self.context["task->component"].items() if name == "sink"]
            assert len(tasks) == 3
            with pytest.raises(ValueError, match="does not subscribe by a direct grouping"):
                self.emit(["x"], direct_task=tasks[0])
            witness.seen.append("raised")

    class Sink(Bolt):
        def process(self, tup: Any) -> None:
            pass

    class T(Topology):
        once = Once.spec(config={"todo": ["a"]})
        picks = Picks.spec(inputs=[once])
        sink = Sink.spec(inputs=[picks], config={"topology.tasks": 3})

    complete_topology(lower(T, "t"))
    assert witness.seen == ["raised"]
