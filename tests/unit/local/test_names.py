"""A14, J5: no two topologies of one name, and none killed that is not there."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from stormspark import Fields, Topology, TopologyBuilder
from stormspark.engine import AliveTopologies
from stormspark.errors import ComponentError, TopologyAlreadyRunningError, TopologyNotAliveError
from stormspark.local import LocalCluster, LocalTopology, submit
from stormspark.testing import FeederSpout, TestWordCounter


def named(name: str, bolt: TestWordCounter | None = None) -> Topology:
    builder = TopologyBuilder()
    builder.set_spout("words", FeederSpout(Fields("word")))
    builder.set_bolt("count", bolt or TestWordCounter()).shuffle_grouping("words")
    return builder.create_topology(name)


class Broken(TestWordCounter):
    def prepare(self, conf, context):
        raise ConnectionError("no database")


@pytest.fixture
def started() -> Iterator[list[LocalTopology]]:
    running: list[LocalTopology] = []
    yield running
    for one in running:
        one.stop()


def test_a_name_that_runs_is_refused_until_its_topology_has_ended(started):
    """A14, J5: Storm's AlreadyAliveException."""
    started.append(submit(named("once")))
    with pytest.raises(
        TopologyAlreadyRunningError, match=r"a topology named 'once' is already running; end it first"
    ):
        submit(named("once"))
    started.append(submit(named("another")))
    started[0].stop()
    started.append(submit(named("once")))
    assert started[-1].name == "once"


def test_a_topology_that_could_not_start_blocks_no_name(started):
    """A topology that failed to start leaves its name free (A14)."""
    with pytest.raises(ComponentError, match="no database"):
        submit(named("starts", Broken()))
    started.append(submit(named("starts")))


def test_each_cluster_has_names_of_its_own():
    """Two clusters may run the same name, and a killed topology frees its name (A14, J25)."""
    with LocalCluster(simulated_time=True) as one, LocalCluster(simulated_time=True) as other:
        one.submit_topology("same", {}, named("x"))
        other.submit_topology("same", {}, named("x"))
        with pytest.raises(TopologyAlreadyRunningError, match="'same' is already running"):
            one.submit_topology("same", {}, named("x"))
        one.kill_topology("same")
        one.submit_topology("same", {}, named("x"))


def test_a_name_that_does_not_run_can_not_be_killed():
    """A14, J5: Storm's NotAliveException."""
    with LocalCluster(simulated_time=True) as cluster:
        with pytest.raises(
            TopologyNotAliveError, match="no topology named 'x' runs here; the running topologies are: none"
        ):
            cluster.kill_topology("x")
        cluster.submit_topology("y", {}, named("y"))
        with pytest.raises(LookupError, match="the running topologies are: 'y'"):
            cluster.deactivate("x")


def test_a_name_is_taken_from_the_moment_its_topology_begins_to_start():
    """A14: two threads that submit at once."""
    alive: AliveTopologies = AliveTopologies()
    begun, go_on = threading.Event(), threading.Event()
    started: list[LocalTopology] = []

    def begin() -> LocalTopology:
        begun.set()
        assert go_on.wait(30)
        return submit(named("slow"))

    first = threading.Thread(target=lambda: started.append(alive.start("slow", begin)))
    first.start()
    assert begun.wait(30)
    with pytest.raises(TopologyAlreadyRunningError):
        alive.start("slow", lambda: submit(named("never")))
    go_on.set()
    first.join()
    started[0].stop()
