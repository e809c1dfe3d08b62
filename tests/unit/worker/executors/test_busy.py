"""What the executors of a worker tell of calls that take long (B1)."""

from __future__ import annotations

from threading import Event, Thread
from typing import Any

from stormspark import TopologyBuilder
from stormspark.plan import plan_topology
from stormspark.worker.busy import Busy
from stormspark.worker.core import Worker
from tests.unit.worker.executors.runs import Numbers, Repeat, Told, running, until

_released, _restarts = Event(), Event()


def _wait(event: Event) -> None:
    event.wait(60)


def _is_restarting() -> bool:
    return _restarts.is_set()


def _restart() -> None:
    _restarts.set()


class Waits(Numbers):
    """Emits, and then waits."""

    def next_tuple(self) -> None:
        """Emit or wait."""
        if not self.left:
            _wait(_released)
        super().next_tuple()


class Stuck(Repeat):
    """Waits."""

    def execute(self, tup: Any) -> None:
        """Wait."""
        _wait(_released)


class StartsSlowly(Repeat):
    """Raises, and waits as it is prepared after that."""

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        """Wait, the second time."""
        super().prepare(conf, context, collector)
        if _is_restarting():
            _wait(_released)

    def execute(self, tup: Any) -> None:
        """Raise."""
        _restart()
        raise ValueError


def _of_executors(worker: Worker) -> Busy | None:
    worker.call.busy = lambda: None
    return worker.under_way.busy()


def _busy(bolt: Repeat, name: str, **conf: Any) -> Any:
    builder = TopologyBuilder()
    builder.set_spout("waits", Waits([], Told(f"first of {name}")))
    builder.set_spout("numbers", Numbers([1], Told(f"second of {name}")))
    builder.set_bolt("bolt", bolt).shuffle_grouping("numbers")
    _released.clear()
    _restarts.clear()
    try:
        with running(builder.create_topology(name), **conf) as topology:
            (worker,) = topology.workers.workers
            until(lambda: (busy := _of_executors(worker)) is not None and busy.task == "bolt[0]")
            if isinstance(bolt, StartsSlowly):
                until(lambda: (busy := _of_executors(worker)) is not None and busy.opens)
            busy = _of_executors(worker)
            _released.set()
            return busy
    finally:
        _released.set()


def test_a_spout_that_waits_hides_no_bolt_that_does() -> None:
    busy = _busy(Stuck(), "stuck-beside")
    assert busy.task == "bolt[0]"
    assert not busy.opens


def test_a_bolt_holds_up_its_executor_alone_and_in_a_transaction_its_batch() -> None:
    """So its worker has no reason to be killed, unless all others wait for the batch."""
    assert _busy(Stuck(), "stuck-alone").alone
    assert not _busy(Stuck(), "stuck-in-a-batch", **{"stormspark.exactly.once": True}).alone


def test_a_bolt_that_starts_again_is_known_to_start() -> None:
    """W22: all others go on, unless the batch waits for the start."""
    busy = _busy(StartsSlowly(), "starts")
    assert busy.task == "bolt[0]"
    assert busy.opens and busy.starts_again
    assert not busy.alone, "it may have a limit"


def test_a_bolt_that_starts_again_in_a_transaction_holds_up_its_batch() -> None:
    busy = _busy(StartsSlowly(), "starts-in-a-batch", **{"stormspark.exactly.once": True})
    assert busy.opens
    assert not busy.starts_again and not busy.alone


def test_the_first_start_of_a_bolt_is_no_restart() -> None:
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers([], Told("no numbers")))
    builder.set_bolt("bolt", StartsSlowly()).shuffle_grouping("numbers")
    plan = plan_topology(builder.create_topology("starts-first"), {"stormspark.executor.threads": "always"})
    _released.clear()
    _restarts.set()  # so that the first ``prepare`` waits
    worker = Worker(plan, 0, side_by_side=True)
    opening = Thread(target=worker.open, daemon=True)
    opening.start()
    try:
        until(lambda: (busy := _of_executors(worker)) is not None and busy.opens)
        busy = _of_executors(worker)
        assert busy is not None
        assert busy.opens and not busy.starts_again
    finally:
        _released.set()
        opening.join(60)
        worker.abandon()
