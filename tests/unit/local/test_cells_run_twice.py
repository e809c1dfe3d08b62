"""A notebook's cells, run twice: topologies of one name, and classes that are defined again."""

from __future__ import annotations

import sys
import threading

import pytest

from stormspark import Fields, Topology, TopologyBuilder
from stormspark.engine import AliveTopologies
from stormspark.errors import ComponentError, TopologyAlreadyRunningError
from stormspark.local import running_topologies, submit
from stormspark.testing import FeederSpout, FixedTupleSpout, TestWordCounter

CELL = """
class Say(BasicBolt):
    def execute(self, tup, collector):
        sys.said.append("{word}")

builder = TopologyBuilder()
builder.set_spout("words", FixedTupleSpout([("a",)], Fields("word")))
builder.set_bolt("say", Say()).shuffle_grouping("words")
with submit(builder.create_topology("says")) as running:
    running.run_until_idle()
"""


def named(name: str) -> Topology:
    builder = TopologyBuilder()
    builder.set_spout("words", FeederSpout(Fields("word")))
    builder.set_bolt("count", TestWordCounter()).shuffle_grouping("words")
    return builder.create_topology(name)


def test_the_error_says_what_to_type():
    with submit(named("again")) as running:
        with pytest.raises(TopologyAlreadyRunningError) as caught:
            submit(named("again"))
        assert "stormspark.local.running_topologies()['again'].stop()" in str(caught.value)
        assert "submit(..., replace=True)" in str(caught.value)
        assert running_topologies()["again"] is running
    assert "again" not in running_topologies()


def test_a_topology_is_replaced():
    first = submit(named("again"))
    with submit(named("again"), replace=True) as second:
        assert first.wait(0) and first.error is None
        assert running_topologies()["again"] is second
    with submit(named("again"), replace=True):
        pass  # none to replace


def test_a_topology_that_starts_can_not_be_replaced():
    alive: AliveTopologies = AliveTopologies()
    begun, go_on = threading.Event(), threading.Event()

    def begin():
        begun.set()
        assert go_on.wait(30)
        return submit(named("slow"))

    started = []
    first = threading.Thread(target=lambda: started.append(alive.start("slow", begin)))
    first.start()
    assert begun.wait(30)
    with pytest.raises(TopologyAlreadyRunningError, match="it starts just now, in another thread"):
        alive.start("slow", lambda: submit(named("never")), lambda old: old.stop())
    go_on.set()
    first.join()
    started[0].stop()


def test_a_topology_that_can_not_start_frees_the_name():
    def interrupted():
        raise KeyboardInterrupt

    alive: AliveTopologies = AliveTopologies()
    with pytest.raises(KeyboardInterrupt):
        alive.start("name", interrupted)
    alive.start("name", lambda: submit(named("name"))).stop()


def test_a_class_that_is_defined_again_is_the_new_one(monkeypatch):
    said: list[str] = []
    monkeypatch.setattr(
        sys, "said", said, raising=False
    )  # bolts are pickled, and a module is pickled by its name
    names = {
        "sys": sys,
        "submit": submit,
        "Fields": Fields,
        "FixedTupleSpout": FixedTupleSpout,
        "TopologyBuilder": TopologyBuilder,
        "__name__": "__main__",
    }
    exec("from stormspark import BasicBolt", names)
    for word in ("old", "new"):
        exec(CELL.format(word=word), names)
    assert said == ["old", "new"]


def test_the_topologys_error_is_raised_by_its_block():
    class Raises(TestWordCounter):
        def execute(self, tup, collector):
            raise ValueError(tup["word"])

    builder = TopologyBuilder()
    builder.set_spout("words", FixedTupleSpout([(f"word {number}",) for number in range(20)], Fields("word")))
    builder.set_bolt("raises", Raises()).shuffle_grouping("words")
    with pytest.raises(ComponentError, match="raises"), submit(builder.create_topology("raises")) as running:
        assert running.wait(60)
