"""Topologies on real clusters: hosts that share nothing but what hosts do. Whatever is killed or cut, each row counts.

The spout has the numbers from 0 to 279, a few in each batch. ``sent`` sends each to a server at least once; ``counted`` has the
count and the sum of the numbers in its state, exactly once; ``windows`` has those of sums of ten numbers each.
"""

from __future__ import annotations

import re
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

import psutil
import pytest

from tests.cluster.cluster import BUCKET, HDFS, STANDALONE, YARN, Cluster
from tests.cluster.hosts import Host
from tests.waiting import PATIENCE_SECS, wait_for

pytestmark = [pytest.mark.cluster, pytest.mark.long, pytest.mark.slow, pytest.mark.spark, pytest.mark.faults]
Make = Callable[..., Cluster]

NUMBERS = 280
_S3 = {
    "endpoint": "http://storage:5000", "access.key": "x", "secret.key": "y", "path.style.access": "true",
    "endpoint.region": "us-east-1", "connection.ssl.enabled": "false",
}  # fmt: skip
_AWS = {
    "AWS_ENDPOINT_URL": "http://storage:5000", "AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "y",
    "AWS_REGION": "us-east-1", "AWS_ALLOW_HTTP": "true",
}  # fmt: skip


class Place(NamedTuple):
    """A kind of cluster, and where its checkpoints are."""

    services: tuple[Callable[[Cluster], None], ...]
    #: What a user types after ``stormspark submit FILE``.
    options: str
    checkpoint: str
    environment: dict[str, str]


_SPARK = "--master spark://master:7077 --deploy-mode client --environment-archive /opt/env.tar.gz"
#: Only the driver sees the folder.
NOT_SHARED = "-c stormspark.state.table=driver -c stormspark.acker.durable=false"
#: Hosts with the packages that stormspark needs: stormspark itself comes as a module.
_MODULES = (
    "--master spark://master:7077 --deploy-mode client "
    "-c spark.pyspark.python=/opt/python/bin/python --py-files /opt/stormspark.zip"
)
_YARN = "--master yarn --environment-archive /opt/env.tar.gz --num-executors 3 -c 'spark.yarn.jars=local:/opt/spark/jars/*'"
#: The driver runs in an environment of the cluster, too.
_YARN_CLUSTER = _YARN.replace("env.tar.gz", "driver.tar.gz")
_S3_OPTIONS = " ".join(
    ["--jars '/opt/s3/*.jar'", *(f"-c spark.hadoop.fs.s3a.{key}={value}" for key, value in _S3.items()),
     *(f"-c spark.executorEnv.{key}={value}" for key, value in _AWS.items())]
)  # fmt: skip
PLACES = {
    "spark-drivers-folder": Place((STANDALONE,), f"{_SPARK} {NOT_SHARED}", "/home/storm/checkpoints", {}),
    "spark-hdfs": Place((STANDALONE, HDFS), f"{_SPARK} --jars '/opt/delta/*.jar'", "hdfs://storage:9000/checkpoints", {}),
    "spark-hdfs-modules": Place(
        (STANDALONE, HDFS), f"{_MODULES} --jars '/opt/delta/*.jar'", "hdfs://storage:9000/checkpoints", {},
    ),
    "spark-s3": Place((STANDALONE, BUCKET), f"{_SPARK} {_S3_OPTIONS}", "s3a://bucket/checkpoints", _AWS),
    "yarn-client": Place(
        (YARN, HDFS), f"{_YARN} --deploy-mode client --jars '/opt/delta/*.jar'", "hdfs://storage:9000/checkpoints",
        {"HADOOP_CONF_DIR": "/opt/conf"},
    ),
    "yarn-cluster": Place(
        (YARN, HDFS), f"{_YARN_CLUSTER} --deploy-mode cluster --jars '/opt/delta/*.jar'", "hdfs://storage:9000/checkpoints",
        {"HADOOP_CONF_DIR": "/opt/conf"},
    ),
}  # fmt: skip


class Submitted:
    """A topology that a user has submitted on a cluster."""

    def __init__(self, cluster: Cluster, place: Place, name: str, run: str, more: str = "") -> None:
        self.cluster, self.place, self.name, self.run = cluster, place, name, run
        self.checkpoint = f"{place.checkpoint}/{run}"
        cluster.forget()
        self.begin(more)

    def begin(self, more: str = "") -> None:
        options = "--workers 3 -c cluster.store=storage:7000 -c spark.executor.memory=512m --until-idle 5"
        self.process: subprocess.Popen[bytes] = self.cluster.submit(
            f"submit counting.py:{self.name} {self.place.options} --checkpoint {self.checkpoint} {options} {more}",
            **self.place.environment,
        )

    def a_worker_host(self) -> str:
        """One of the hosts on which a worker of the topology runs."""
        return wait_for(self.cluster.worker_hosts, PATIENCE_SECS, self.said)[0]

    def said(self) -> str:
        return self.cluster.user.said("stormspark")

    def wait_for_numbers(self, least: int) -> None:
        """Wait until so many have been worked on."""
        log = f"worked {self.checkpoint}"
        wait_for(
            lambda: self.process.poll() is not None or len(set(self.cluster.sent())) >= least,
            PATIENCE_SECS,
            lambda: f"{log}: {sorted(set(self.cluster.sent()))[-1:]}\n{self.said()[-3000:]}",
        )
        assert self.process.poll() is None, self.said()[-3000:]

    def wait_for_the_end(self) -> None:
        code = wait_for(
            lambda: self.process.poll() is not None and [self.process.poll()], PATIENCE_SECS, self.said
        )
        assert code == [0], self.said()[-5000:]

    def typed(self, command: str) -> str:
        """Type a command that goes through the checkpoint, on the user's host; what it has printed."""
        output = f"{self.run}: {command}"
        before = len(self.cluster.user.said(output))
        done = self.cluster.user.run(
            f"exec stormspark {command} --checkpoint {self.checkpoint}", output,
            PATH="/opt/env/bin:/usr/bin:/bin", **self.place.environment,
        )  # fmt: skip
        done.wait(PATIENCE_SECS)
        said = self.cluster.user.said(output)[before:]
        print(f"{command}: {said.strip().splitlines()[-1:]}")
        return said

    def counted(self) -> str:
        # Of this run alone: what an earlier one has counted must not show this one.
        output = f"look at {self.run}"
        looks = self.cluster.user.run(
            f"cd project && exec python look.py {self.checkpoint}", output,
            PATH="/opt/env/bin:/usr/bin:/bin", **self.place.environment,
        )  # fmt: skip
        looks.wait(PATIENCE_SECS)
        said = self.cluster.user.said(output)
        return next((line for line in said.splitlines()[::-1] if "counted" in line), said)


def nothing(_: Submitted) -> None:
    """Nobody does anything."""


def restart(submitted: Submitted) -> None:
    """The driver's program is killed, and its user starts it again."""
    if submitted.place is PLACES["yarn-cluster"]:
        pytest.skip("the user's program is not the driver: see kill_the_drivers_host")
    for process in submitted.cluster.user.processes():
        process.kill()
    assert submitted.process.wait() != 0
    submitted.begin()


def lose_the_users_power(submitted: Submitted) -> None:
    """The user's host goes dark, so no connection is closed. It comes back, and its user starts the driver again."""
    user = submitted.cluster.user
    user.lose_power()
    user.start()
    submitted.begin()


def kill_a_host(submitted: Submitted) -> None:
    _kill(submitted.cluster.hosts[submitted.a_worker_host()])


def kill_the_drivers_host(submitted: Submitted) -> None:
    """YARN starts the driver again, on another host. The user's program waits for it."""
    cluster = submitted.cluster
    [host] = cluster.drivers_hosts()
    print(f"the driver is on {host}, the workers on {cluster.worker_hosts()}")
    _kill(cluster.hosts[host])


def _kill(host: Host) -> None:
    killed = host.processes()
    host.kill()
    assert len(killed) >= 3  # at least a daemon, an executor (or a driver) and a worker
    assert not any(process.is_running() and process.status() != psutil.STATUS_ZOMBIE for process in killed)


def cut_a_host(submitted: Submitted) -> None:
    """Its network alone; and it comes back when the others go on."""
    host = submitted.cluster.hosts[submitted.a_worker_host()]
    before = len(set(submitted.cluster.sent()))
    host.cut()
    try:
        submitted.wait_for_numbers(before + 80)
    finally:
        host.join()  # the next test may have the same cluster


FAULTS = [nothing, restart, kill_a_host, cut_a_host]


def ran(cluster: Cluster, place: str, topology: str, fault: Callable[[Submitted], None]) -> Submitted:
    """Run a topology to its end, with a fault in the middle."""
    began = time.monotonic()
    submitted = Submitted(cluster, PLACES[place], topology, f"{topology}-{place}-{fault.__name__}")
    submitted.wait_for_numbers(150)
    first = time.monotonic()
    fault(submitted)
    there = len(set(cluster.sent()))
    assert fault is nothing or there < NUMBERS, "the fault came too late to show anything"
    submitted.wait_for_numbers(there + 1)
    on = time.monotonic()
    submitted.wait_for_the_end()
    sent = cluster.sent()
    # pytest shows it with -rP: what docs/operations/cluster.md says.
    print(
        f"{submitted.run}: {len(set(sent))} numbers, {len(sent) - len(set(sent))} of them again; 150 numbers after "
        f"{first - began:.0f} s, the next after {on - first:.0f} s, the end after {time.monotonic() - began:.0f} s"
    )
    return submitted


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("place", PLACES)
def test_each_number_is_sent(cluster_of: Make, place: str, fault: Callable[[Submitted], None]) -> None:
    cluster = cluster_of(*PLACES[place].services)
    ran(cluster, place, "sent", fault)
    assert sorted(set(cluster.sent())) == list(range(NUMBERS))
    assert fault is not nothing or len(cluster.sent()) == NUMBERS, "none comes twice without a fault"


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("place", PLACES)
def test_each_number_counts_once(cluster_of: Make, place: str, fault: Callable[[Submitted], None]) -> None:
    submitted = ran(cluster_of(*PLACES[place].services), place, "counted", fault)
    assert submitted.counted() == f"counted {NUMBERS} sum {sum(range(NUMBERS))}"


@pytest.mark.parametrize("place", ["spark-hdfs", "yarn-client"])
def test_each_number_counts_once_if_nobody_is_told_that_the_driver_is_gone(
    cluster_of: Make, place: str
) -> None:
    submitted = ran(cluster_of(*PLACES[place].services), place, "counted", lose_the_users_power)
    assert submitted.counted() == f"counted {NUMBERS} sum {sum(range(NUMBERS))}"


def test_each_number_counts_once_by_the_next_attempt_of_yarn(cluster_of: Make) -> None:
    submitted = ran(
        cluster_of(*PLACES["yarn-cluster"].services), "yarn-cluster", "counted", kill_the_drivers_host
    )
    assert submitted.counted() == f"counted {NUMBERS} sum {sum(range(NUMBERS))}"


def test_an_application_of_yarn_leaves_its_checkpoint_to_a_later_one(cluster_of: Make) -> None:
    """YARN starts the driver of the first one again, because it ends with an error. Only one of the two goes on."""
    cluster = cluster_of(*PLACES["yarn-cluster"].services)
    before = _attempts(cluster)
    submitted = Submitted(
        cluster, PLACES["yarn-cluster"], "counted", "counted-twice", "-c cluster.pause.secs=3"
    )
    submitted.wait_for_numbers(1)
    first = submitted.process
    submitted.begin()
    submitted.wait_for_the_end()
    assert submitted.counted() == f"counted {NUMBERS} sum {sum(range(NUMBERS))}"
    assert first.wait(PATIENCE_SECS) != 0
    [(one, attempts), (other, only)] = sorted((_attempts(cluster) - before).items())
    print(f"{one} had {attempts} attempts, {other} had {only}")
    assert (attempts > 1, only) == (True, 1)


@pytest.mark.parametrize("place", ["yarn-cluster", "spark-hdfs"])
def test_commands_reach_a_driver_through_its_checkpoint(cluster_of: Make, place: str) -> None:
    """J1, J3: from the user's host, where no port of the driver can be reached. It is rebalanced, and each number counts once."""
    submitted = Submitted(
        cluster_of(*PLACES[place].services),
        PLACES[place],
        "counted",
        f"counted-{place}-commands",
        "-c cluster.pause.secs=3",
    )
    submitted.wait_for_numbers(10)
    assert re.search(r"counted +ACTIVE +\d+ +3 ", submitted.typed("list"))
    assert "is rebalanced, and gets its new workers after 0 s" in submitted.typed("rebalance -w 0 -n 2")
    wait_for(lambda: re.search(r"counted +ACTIVE +\d+ +2 ", submitted.typed("list")), PATIENCE_SECS)
    assert "worker 0 of counted" in submitted.typed("restart counted 0")
    submitted.wait_for_the_end()
    assert submitted.counted() == f"counted {NUMBERS} sum {sum(range(NUMBERS))}"


def _attempts(cluster: Cluster) -> Counter[str]:
    """How many drivers YARN has started, for each application."""
    said = cluster.hosts["master"].said("yarn")
    return Counter(re.findall(r"appattempt_\d+_(\d+)_\d+ State change from NEW to SUBMITTED", said))


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("place", ["spark-hdfs", "spark-s3"])
def test_each_number_is_in_one_window(
    cluster_of: Make, place: str, fault: Callable[[Submitted], None]
) -> None:
    submitted = ran(cluster_of(*PLACES[place].services), place, "windows", fault)
    assert submitted.counted() == f"counted {NUMBERS // 10} sum {sum(range(NUMBERS))}"
