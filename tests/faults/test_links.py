"""Many processes at one nimbus, and paths between hosts that go silent: real processes, sockets and network interfaces."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from tests.faults.hosts import (
    DRIVER_TO_EXECUTOR,
    DRIVER_TO_OTHER,
    EXECUTOR_TO_DRIVER,
    EXECUTOR_TO_OTHER,
    NAME,
    three_hosts,
)
from tests.waiting import wait_for, wait_until_gone, worker_processes

pytestmark = [pytest.mark.faults, pytest.mark.slow]

ROOT = Path(__file__).parents[2]


def many_links(workers, forwarders, soft, hard, kind):
    """What nimbus said of itself (`tests.faults.many_links`)."""
    arguments = [str(number) for number in (workers, forwarders, soft, hard)]
    done = subprocess.run(
        [sys.executable, "-m", "tests.faults.many_links", *arguments, kind],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert done.stdout, done.stderr[-4000:]
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("workers", "soft", "hard", "kind"),
    [
        pytest.param(64, 256, 1024, "unix", id="64-unix"),
        pytest.param(32, 256, 320, "tls", id="32-tls", marks=pytest.mark.long),
    ],
)
def test_every_process_has_one_connection_to_nimbus(workers, soft, hard, kind):
    """Whatever number of workers it speaks to; the soft limit is raised to what is allowed."""
    said = many_links(workers, workers, soft, hard, kind)
    assert said["failed"] == []
    # The harness has a channel to each forwarder.
    assert said["descriptors"] <= 3 * workers + 20
    assert said["threads"] <= 2 * workers + 10
    assert soft <= said["limit"] <= hard


def test_too_few_descriptors_are_reported_at_the_start():
    said = many_links(64, 2, 128, 200, "unix")
    assert said["refused"].startswith("the driver of a topology with 64 workers needs ")
    assert "may have 200: raise the hard limit (ulimit -Hn" in said["refused"]
    assert "\n" not in said["refused"]


# -- paths that go silent ------------------------------------------------------------------------------------


@pytest.fixture
def hosts():
    try:
        with three_hosts() as three:
            yield three
            left = list(worker_processes(NAME).values())
            for process in left:
                process.kill()
            wait_until_gone(left)
            shutil.rmtree(three.folder)
    except (OSError, subprocess.CalledProcessError) as error:
        if isinstance(error, subprocess.CalledProcessError) and "ip" not in error.cmd:
            raise
        pytest.skip(f"no network namespaces here: {error}")


def said_by(role):
    return json.loads(role.stdout.readline())


def before_a_superstep(hosts, silence_secs, kind="plain"):
    """The driver, and the forwarder that will ask a worker on another host than either, when there is a file ``ask``."""
    driver = hosts.run(hosts.driver, "driver", str(silence_secs), kind)
    wait_for((hosts.folder / "attempt").exists)
    executor = hosts.run(hosts.executor, "executor", DRIVER_TO_EXECUTOR, SPARK_LOCAL_IP=EXECUTOR_TO_OTHER)
    assert said_by(executor) == {"up": True}
    other = hosts.run(hosts.other, "other", DRIVER_TO_OTHER)
    assert said_by(other) == {"up": True}
    return driver, other


def in_the_middle_of_a_superstep(hosts, silence_secs, kind="plain"):
    """The same when the worker has begun."""
    driver, other = before_a_superstep(hosts, silence_secs, kind)
    (hosts.folder / "ask").touch()
    wait_for((hosts.folder / "entered").exists)
    return driver, other


@pytest.mark.parametrize(
    ("kind", "waits"), [("plain", True), ("tls", False)], ids=["while it waits", "while it asks, by TLS"]
)
def test_a_silent_path_between_two_executors_ends_the_attempt(hosts, kind, waits):
    """The driver hears both of them all the while; Linux would let the forwarder wait for ever."""
    if waits:
        driver, other = in_the_middle_of_a_superstep(hosts, 2, kind)
    else:
        driver, other = before_a_superstep(hosts, 2, kind)
    hosts.cut(hosts.executor, hosts.other)
    (hosts.folder / "ask").touch()
    began = time.monotonic()
    lost, broken = said_by(other)["lost"], said_by(driver)["broken"]
    assert time.monotonic() - began < 60
    assert f"nothing came back from {EXECUTOR_TO_OTHER} port" in lost
    assert "for 2 s (stormspark.network.timeout.secs)" in lost
    assert broken.startswith(
        "worker 0 was lost: its connection broke in superstep 0 of batch 0: nothing came back"
    )


def test_a_silent_path_to_the_driver_ends_the_attempt(hosts):
    """Long before the worker's lease of 600 s does."""
    driver, _ = in_the_middle_of_a_superstep(hosts, 2)
    hosts.cut(hosts.executor, hosts.driver)
    began = time.monotonic()
    broken = said_by(driver)["broken"]
    assert time.monotonic() - began < 60
    assert broken.startswith(
        f"worker 0 was lost: its connection broke: nothing came back from {EXECUTOR_TO_DRIVER} port"
    )


def test_an_outage_that_is_shorter_than_the_silence_ends_nothing(hosts):
    _, other = in_the_middle_of_a_superstep(hosts, 60)
    for cable in ((hosts.executor, hosts.other), (hosts.executor, hosts.driver)):
        hosts.cut(*cable)
    time.sleep(3)
    for cable in ((hosts.executor, hosts.other), (hosts.executor, hosts.driver)):
        hosts.mend(*cable)
    (hosts.folder / "go").touch()
    assert said_by(other) == {"replies": 1}


@pytest.mark.parametrize(
    ("kind", "is_seen"), [pytest.param("plain", True, marks=pytest.mark.long), ("tls", False)]
)
def test_an_eavesdropper_sees_neither_plans_nor_tuples_where_they_are_encrypted(hosts, kind, is_seen):
    at_driver = hosts.run(hosts.driver, "listener", f"to-{hosts.executor[-1]}")
    at_other = hosts.run(hosts.other, "listener", f"to-{hosts.executor[-1]}")
    assert said_by(at_driver) == said_by(at_other) == {"listens": True}
    (hosts.folder / "go").touch()
    _, other = in_the_middle_of_a_superstep(hosts, 60, kind)
    assert said_by(other) == {"replies": 1}
    for listener in (at_driver, at_other):
        listener.stdin.close()
    plans, tuples = said_by(at_driver), said_by(at_other)
    assert plans["bytes"] > 2000 and tuples["bytes"] > 2000
    assert plans["plan"] is is_seen
    assert tuples["tuple"] is is_seen
