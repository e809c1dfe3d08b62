"""The stop of topologies whose batches are transactions, while calls on threads of executors are under way (C44)."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from stormspark import (
    BasicBolt,
    Fields,
    Spout,
    StatefulBolt,
    Topology,
    TopologyBuilder,
    TwoPhaseStatefulComponent,
)
from stormspark.transactional import TransactionalTopologyBuilder
from stormspark.worker.executors import executors
from tests.unit.worker.executors import test_batch_bolts as batch_bolts
from tests.unit.worker.executors.runs import Numbers, Repeat, Told, running, until

_released = threading.Event()


@pytest.fixture(autouse=True)
def _begin() -> Iterator[None]:
    """Let go of all calls at the end of a test."""
    _released.clear()
    yield
    _released.set()


class Waits(Repeat):
    """Waits until the test says so, once per tuple."""

    def __init__(self, told: Told) -> None:
        self.told = told

    def execute(self, tup: Any) -> None:
        """Wait."""
        self.told("begins")
        _released.wait(60)
        super().execute(tup)

    def cleanup(self) -> None:
        """Tell."""
        self.told("cleanup")


class Total(TwoPhaseStatefulComponent, StatefulBolt):
    """Counts tuples, and tells which count was committed."""

    def __init__(self, told: Told) -> None:
        self.told = told

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector = collector

    def init_state(self, state: Any) -> None:
        self.state = state

    def execute(self, tup: Any) -> None:
        self.state["count"] = self.state.get("count", 0) + 1
        self.collector.ack(tup)

    def pre_save(self, checkpoint_id: int) -> None:
        pass

    def pre_restore(self, checkpoint_id: int) -> None:
        pass

    def post_save(self, txid: int) -> None:
        self.told("committed", self.state.get("count", 0))

    def cleanup(self) -> None:
        self.told("cleanup of total")

    def declare_output_fields(self, declarer: Any) -> None:
        pass


def _topology(told: Told) -> Topology:
    """Return a topology in which one bolt waits and another one has state."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers([1], told))
    builder.set_bolt("waits", Waits(told)).all_grouping("numbers")
    builder.set_bolt("total", Total(told)).all_grouping("numbers")
    return builder.create_topology("stops")


_EXACTLY_ONCE = {"stormspark.exactly.once": True}


@pytest.mark.slow
def test_a_call_that_never_returns_holds_up_the_stop_of_an_exactly_once_topology_for_some_seconds_only(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """C44: the batch that could not end is taken back, and the warning names the executor."""
    monkeypatch.setattr(executors, "STOP_SECS", 0.3)
    told = Told("a stop in a transaction")
    with running(_topology(told), **_EXACTLY_ONCE) as topology:
        until(lambda: ("begins",) in told.all)
        before = time.monotonic()
    assert time.monotonic() - before < 30
    assert topology.error is None
    # Nothing of the batch was committed, and no verdict was told. The other bolt ends as usual.
    assert ("committed", 1) not in told.all
    assert not [one for one in told.all if one[0] in ("ack", "fail")]
    assert told.all[-1] == ("cleanup of total",)
    warning = next(one.getMessage() for one in caplog.records if "is committed" in one.getMessage())
    assert "topology stops stops before batch" in warning
    assert f"execute of waits[0] ({__file__}:" in warning
    assert "so a later start does it again" in warning


def test_a_call_that_returns_in_time_lets_an_exactly_once_topology_commit_its_last_batch() -> None:
    told = Told("a stop that waits")
    with running(_topology(told), **_EXACTLY_ONCE) as topology:
        until(lambda: ("begins",) in told.all)
        stopping = threading.Thread(target=topology.stop)
        stopping.start()
        until(topology._stopping.is_set)
        _released.set()
        stopping.join(60)
    assert {("committed", 1), ("ack", "1"), ("cleanup",)} <= set(told.all), told.all


def test_a_kill_of_an_exactly_once_topology_waits_for_no_call() -> None:
    told = Told("a kill in a transaction")
    with running(_topology(told), **_EXACTLY_ONCE) as topology:
        until(lambda: ("begins",) in told.all)
        topology.kill()
        assert topology.wait(60)
    # An empty batch may have come before the one with the tuple.
    assert [one for one in told.all if one != ("committed", 0)] == [("begins",)]


class WaitsAtTheEnd(batch_bolts.Count):
    """Waits in ``finish_batch``."""

    def __init__(self, told: Told) -> None:
        self.told = told

    def finish_batch(self) -> None:
        """Wait."""
        if self.count:
            self.told("begins")
            _released.wait(60)
        super().finish_batch()


class WaitsBehind(BasicBolt):
    """Waits for what comes at the end of a batch."""

    def __init__(self, told: Told) -> None:
        self.told = told

    def execute(self, tup: Any, collector: Any) -> None:
        """Wait."""
        self.told("begins")
        _released.wait(60)


@pytest.mark.slow
@pytest.mark.parametrize("where", ["finish_batch", "behind"])
def test_a_call_that_never_returns_at_the_end_of_a_batch_holds_up_a_stop_for_some_seconds_only(
    where: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """G6: the bolt itself waits at the end of its batch, or a bolt behind it waits for what comes then."""
    monkeypatch.setattr(executors, "STOP_SECS", 0.3)
    told = Told(f"a stop at the end of a batch, {where}")
    builder = TransactionalTopologyBuilder("once", "numbers", batch_bolts.Once())
    count = WaitsAtTheEnd(told) if where == "finish_batch" else batch_bolts.Count()
    builder.set_bolt("count", count).global_grouping("numbers")
    if where == "behind":
        builder.set_bolt("behind", WaitsBehind(told)).shuffle_grouping("count")
    batch_bolts._may_begin.clear()
    with running(builder.build_topology("ends")) as topology:
        batch_bolts._may_begin.set()
        until(lambda: ("begins",) in told.all)
        before = time.monotonic()
    assert time.monotonic() - before < 30
    assert topology.error is None
    warning = next(one.getMessage() for one in caplog.records if "is committed" in one.getMessage())
    name = "finish_batch of count" if where == "finish_batch" else "execute of behind"
    assert f"{name}[0] ({__file__}:" in warning


class SavesSlowly(Spout):
    """Emits one tuple. Its state can't be saved before `_released` is set."""

    waits = True
    #: Set in the executor's thread alone, so that the object can be pickled where it is declared.
    is_open = False

    def __init__(self, told: Told) -> None:
        self.told, self.emitted = told, False

    def __getstate__(self) -> dict[str, Any]:
        if self.is_open:
            self.told("saves")
            _released.wait(60)
        return {"told": self.told, "emitted": self.emitted}

    def open(self, conf: Any, context: Any, collector: Any) -> None:
        """Remember the collector."""
        self.collector, self.is_open = collector, True

    def next_tuple(self) -> None:
        """Emit."""
        if not self.emitted:
            self.emitted = True
            self.collector.emit((1,), message_id="1")

    def declare_output_fields(self, declarer: Any) -> None:
        """One field."""
        declarer.declare(Fields("n"))


@pytest.mark.slow
@pytest.mark.parametrize("end", ["stop", "kill"])
def test_state_that_is_not_saved_in_time_is_no_error_of_the_component_and_its_batch_is_not_repeated(
    end: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A batch that was repeated after a kill ended with "failed 10 times", and each attempt called services again."""
    monkeypatch.setattr(executors, "STOP_SECS", 0.3)
    told = Told(f"a {end} while state is saved")
    builder = TopologyBuilder()
    builder.set_spout("numbers", SavesSlowly(told)).add_configuration("topology.state.pickle", True)
    with running(builder.create_topology("saves"), **_EXACTLY_ONCE) as topology:
        until(lambda: ("saves",) in told.all)
        if end == "kill":
            topology.kill()
            assert topology.wait(60)
    assert topology.error is None
    warning = next(one.getMessage() for one in caplog.records if "is committed" in one.getMessage())
    assert f"__getstate__ of numbers[0] ({__file__}:" in warning
    assert not [one for one in caplog.records if "starts again" in one.getMessage()]
    assert topology.statistics().taken_back == 0
