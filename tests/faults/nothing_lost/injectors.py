"""The faults: what each does to a scenario, once, and what a run needs for it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

from stormspark.operations.client import Client
from tests.faults.nothing_lost.scenario import Inject, Scenario
from tests.faults.nothing_lost.topology import trap
from tests.waiting import PATIENCE_SECS, entry_of_driver, worker_processes

__all__ = ["FAULTS", "TOGETHER", "Fault"]


@dataclass(frozen=True)
class Fault:
    """A fault and its run: ``plan`` are fields of the driver's `Plan`."""

    inject: Inject
    plan: Mapping[str, Any] = field(default_factory=dict)
    may_time_out: bool = False


def _raise(scenario: Scenario, random: Random) -> str:
    """A bolt's task raises, at the next tuple that it executes."""
    component = random.choice(("seen", "join", "windowed"))
    path = trap(scenario.folder, component)
    path.touch()
    scenario.until(lambda: not path.exists(), PATIENCE_SECS, f"a tuple at {component}")
    return f"{component} raised"


def _kill_worker(scenario: Scenario, random: Random) -> str:
    workers = worker_processes(scenario.driver.plan.name)
    worker = random.choice(sorted(workers))
    workers[worker].send_signal(signal.SIGKILL)
    return f"kill -9 of worker {worker}"


def _rebalance(scenario: Scenario, random: Random) -> str:
    """Other workers, and other executors of a bolt. What its tasks hold comes again."""
    workers, executors = (
        random.randrange(1, 4),
        {random.choice(("seen", "join", "windowed")): random.randrange(1, 4)},
    )
    assert scenario.driver.process is not None
    client = Client(entry_of_driver(scenario.driver.plan.name, scenario.driver.process.pid))
    options = {"rebalanceOptions": {"numWorkers": workers, "executors": executors}}
    client.do("rebalance/0", options)
    scenario.until(lambda: client.summary()["status"] == "ACTIVE", PATIENCE_SECS, "the new workers")
    return f"rebalanced to {workers} workers and {executors}"


def _kill_executor(scenario: Scenario, random: Random) -> str:
    executors = scenario.driver.executors()
    number = random.randrange(len(executors))
    executors[number].send_signal(signal.SIGKILL)
    return f"kill -9 of executor {number}"


def _kill_driver(scenario: Scenario, random: Random) -> str:
    scenario.driver.kill()
    scenario.driver.start()
    return "kill -9 of the driver's Python"


def _kill_jvm(scenario: Scenario, random: Random) -> str:
    scenario.driver.kill(scenario.driver.jvm())
    scenario.driver.start()
    return "kill -9 of the driver's JVM"


def _kill_broker(scenario: Scenario, random: Random) -> str:
    scenario.broker.kill()
    away = random.uniform(0.5, 3)
    time.sleep(away)
    scenario.broker.start()
    return f"the broker was away for {away:.1f} s"


def _die_after_write(scenario: Scenario, random: Random) -> str:
    """The batch runs again, although its rows are in the acker's journal."""
    order = scenario.folder / "die-after-write"
    order.touch()
    scenario.feed_until_driver_ends()
    assert not order.exists()
    scenario.driver.plan.master = None  # without executors of its own it is up much sooner
    scenario.driver.start()
    return "the driver died between the acker's commit and Spark's"


def _fill_disk(scenario: Scenario, random: Random) -> str:
    """The checkpoint can't be written for a while."""
    assert scenario.disk is not None
    scenario.disk.fill()
    batch = scenario.batches()[1]  # on a busy machine some are committed while it fills
    again = scenario.started_again
    full = random.uniform(2, 5)
    until = time.monotonic() + full
    while time.monotonic() < until:
        scenario.disk.fill()  # Spark removes old files, and would have their space
        scenario.turn()
    assert scenario.batches()[1] <= batch + 1, "a batch was committed on a full disk"
    scenario.disk.free()
    stopped = ", the driver stopped" if scenario.started_again > again or scenario.driver.ended else ""
    return f"the checkpoint's disk was full for {full:.1f} s{stopped}"


def _broker_away(scenario: Scenario, random: Random) -> str:
    scenario.broker.kill()
    time.sleep(OUTAGE_SECS)
    scenario.broker.start()
    return f"the broker was away for {OUTAGE_SECS:g} s"


def _all_away(scenario: Scenario, random: Random) -> str:
    scenario.driver.kill()
    time.sleep(OUTAGE_SECS)
    scenario.driver.start()
    return f"the driver was away for {OUTAGE_SECS:g} s"


def _freeze(scenario: Scenario, random: Random) -> str:
    """A laptop that is closed, a virtual machine that is moved."""
    family = scenario.driver.family()
    for one in family:
        one.suspend()
    time.sleep(OUTAGE_SECS)
    for one in family:
        one.resume()
    return f"all of it stood still for {OUTAGE_SECS:g} s"


#: Much longer than the message timeout of the runs that it is for.
OUTAGE_SECS = float(os.environ.get("FAULT_OUTAGE_SECS", "20"))
_SHORT_TIMEOUT = {"topology.message.timeout.secs": 15, "stormspark.acker.delay.secs": 10}

FAULTS = {
    "a bolt raises": Fault(_raise),
    "worker killed": Fault(_kill_worker),
    "the only worker killed": Fault(_kill_worker, {"workers": 1}),
    "rebalanced": Fault(_rebalance),
    "executor killed": Fault(_kill_executor, {"master": "local-cluster[2,1,1024]"}),
    "driver killed": Fault(_kill_driver),
    "driver killed, one worker": Fault(_kill_driver, {"workers": 1}),
    "driver's JVM killed": Fault(_kill_jvm),
    "driver killed between two commits": Fault(_die_after_write),
    "broker killed": Fault(_kill_broker),
    "disk full": Fault(
        _fill_disk, {"conf": {"stormspark.max.attempts": 1000, "stormspark.restart.max.delay.secs": 2}}
    ),
    "broker away for long": Fault(_broker_away, {"conf": _SHORT_TIMEOUT}),
    "driver away for long": Fault(_all_away, {"conf": _SHORT_TIMEOUT}),
    "all frozen for long": Fault(_freeze, {"conf": _SHORT_TIMEOUT}, may_time_out=True),
}

#: What is injected once, where there is no time for all; these share a run, because starting Spark takes longest. An executor
#: that is killed takes its worker along.
TOGETHER = {
    "two executors": ["executor killed", "rebalanced", "a bolt raises"],
    "two drivers": ["driver killed between two commits"],
    "one worker": ["the only worker killed"],
    "long outages": ["broker away for long"],
}
