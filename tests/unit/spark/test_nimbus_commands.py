"""What nimbus does for commands: workers that start anew, and levels of loggers (J6, J22)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

pytest.importorskip("pyspark")

from stormspark.spark.nimbus import Nimbus
from stormspark.worker.host.messages import Beat, Orders, StartHere
from tests.unit.spark.test_nimbus import Fake, make

__all__ = ["make"]  # a fixture


def test_a_worker_that_is_restarted_ends_and_the_next_attempt_has_a_new_one(
    make: Callable[..., Nimbus],
) -> None:
    nimbus = make()
    fake = Fake(nimbus)
    fake.begin()
    fake.ready()
    nimbus.restart_workers([0])
    assert fake.worker.recv() == Orders(exit=True)
    assert nimbus.broken == "worker 0 was lost: a command restarts it"
    assert nimbus.broken_outside  # it counts as no failure of the topology
    nimbus.begin_attempt(1)
    again = fake.ask(1)
    assert isinstance(again, StartHere)
    assert again.incarnation == 1


def test_a_worker_that_is_not_there_is_not_restarted(make: Callable[..., Nimbus]) -> None:
    nimbus = make()
    nimbus.restart_workers([0])
    assert nimbus.broken is None


def test_levels_of_loggers_come_with_all_later_orders(make: Callable[..., Nimbus]) -> None:
    nimbus = make()
    fake = Fake(nimbus)
    fake.begin()
    fake.ready()
    nimbus.set_log_levels({"my.bolt": 10})
    levels = (("my.bolt", 10),)
    assert fake.worker.recv() == Orders(log_levels=levels)
    nimbus.activate(False)
    assert fake.worker.recv() == Orders(active=False, log_levels=levels)
    fake.worker.send(Beat())
    assert fake.worker.recv() == Orders(active=False, log_levels=levels)
