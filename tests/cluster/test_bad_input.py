"""What a cluster lacks is told before the first batch, in one sentence that says what to do."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import pytest

from tests.cluster.cluster import HDFS, OTHER_PYTHON, STANDALONE, Cluster, add_data_node, add_spark_worker
from tests.cluster.hosts import HOME, NO_TEMPORARY
from tests.cluster.test_clusters import NOT_SHARED, NUMBERS, PLACES, Submitted, nothing
from tests.waiting import PATIENCE_SECS, wait_for

pytestmark = [pytest.mark.cluster, pytest.mark.long, pytest.mark.slow, pytest.mark.spark]
Make = Callable[..., Cluster]

ON_SPARK = (
    "--master spark://master:7077 --workers 3 -c cluster.store=storage:7000 -c spark.executor.memory=512m"
)


def last_line(cluster: Cluster, options: str, **environment: str) -> str:
    """Submit ``sent``, which is refused. Return its last line."""
    cluster.forget()
    submitted = cluster.submit(
        f"submit counting.py:sent {ON_SPARK} {options} 2>&1 | grep -v ' INFO ' >refused", **environment
    )
    submitted.wait(PATIENCE_SECS)
    assert cluster.sent() == []
    lines = (cluster.user.folder / "home" / "project" / "refused").read_text().splitlines()
    return next((line for line in reversed(lines) if line.startswith("Error:")), "\n".join(lines))


def test_a_checkpoint_that_only_the_driver_sees(cluster_of: Make) -> None:
    said = last_line(
        cluster_of(STANDALONE),
        "--environment-archive /opt/env.tar.gz --checkpoint /home/storm/checkpoints/unshared",
    )
    assert "does not see the folder /home/storm/checkpoints/unshared/stormspark of the driver on user" in said
    assert "Give a checkpoint folder that all hosts share, mounted or by a URL" in said


def test_executors_whose_python_has_no_packages(cluster_of: Make) -> None:
    said = last_line(cluster_of(STANDALONE), "-c spark.pyspark.python=/usr/bin/python3")
    assert (
        "Spark's executors use /usr/bin/python3" in said
        or "the Python of Spark's executors (/usr/bin/python3)" in said
    )
    assert "set PYSPARK_PYTHON" in said
    assert "--archives env.tar.gz#env" in said


def test_executors_without_that_python(cluster_of: Make) -> None:
    said = last_line(cluster_of(STANDALONE), "-c spark.pyspark.python=/opt/none/bin/python")
    assert (
        "Spark's executors can't run Python as /opt/none/bin/python (No such file or directory): set PYSPARK_PYTHON"
        in said
    )


def test_executors_with_another_python(cluster_of: Make) -> None:
    if not OTHER_PYTHON.exists():
        pytest.skip(f"there is no other Python in {OTHER_PYTHON}")
    said = last_line(cluster_of(STANDALONE), f"-c spark.pyspark.python={OTHER_PYTHON}/bin/python3")
    assert "set PYSPARK_PYTHON" in said
    assert "Python 3.12" in said
    assert f"Python {sys.version_info.major}.{sys.version_info.minor}" in said


def test_a_cluster_without_room(cluster_of: Make) -> None:
    """No host has memory for such an executor. The topology waits, and says for what."""
    cluster = cluster_of(STANDALONE)
    submitted = cluster.submit(
        "submit counting.py:sent --master spark://master:7077 --workers 3 -c spark.executor.memory=2g "
        f"{NOT_SHARED} --environment-archive /opt/env.tar.gz --checkpoint /home/storm/checkpoints/room"
    )
    waits = "no Spark executor is up: they may still start, or the cluster has no room for them"
    said = lambda: cluster.user.said("stormspark")  # noqa: E731
    wait_for(lambda: submitted.poll() is not None or waits in said(), PATIENCE_SECS, said)
    assert submitted.poll() is None, said()[-3000:]
    for process in cluster.user.processes():
        process.kill()
    submitted.wait()


def test_clocks_that_are_an_hour_apart(cluster_of: Make) -> None:
    """They do not matter: what takes time is measured where it happens."""
    cluster = cluster_of(STANDALONE, HDFS)
    if not (cluster.brings["/opt/clock"] / "other_clock.so").exists():
        pytest.skip("no clock can be changed here: there is no C compiler (apt-get install gcc libc6-dev)")
    cluster.changed = True
    for name, apart in {"one": "-3600", "two": "3600"}.items():
        cluster.hosts[name].kill()
        cluster.hosts[name].start()
        add_data_node(cluster, name)
        changed = {"LD_PRELOAD": "/opt/clock/other_clock.so", "CLOCK_APART": apart}
        add_spark_worker(cluster, name, **changed)
        looks = cluster.hosts[name].run("exec date +%s", "clock", **changed)
        assert looks.wait() == 0
        assert abs(int(cluster.hosts[name].said("clock")) - time.time()) > 3000
    assert_all_count_once(cluster, "clocks")


def test_a_disk_that_is_full(cluster_of: Make) -> None:
    """The topology goes on when there is room again, and every number counts."""
    cluster = cluster_of(STANDALONE, HDFS)
    cluster.changed = True
    host = cluster.hosts["two"]
    host.kill()
    host.start(temporary="200m")
    add_data_node(cluster, "two")
    add_spark_worker(cluster, "two")

    def fill(submitted: Submitted) -> None:
        wait_for(lambda: "two" in cluster.worker_hosts(), PATIENCE_SECS, submitted.said)
        assert host.run("exec dd if=/dev/zero of=/tmp/full bs=64K").wait() != 0, "no space is left"
        before = len(set(cluster.sent()))
        wait_for(
            lambda: len(set(cluster.sent())) >= before + 80 or "No space left" in submitted.said(),
            PATIENCE_SECS,
            submitted.said,
        )
        assert host.run("exec rm /tmp/full").wait() == 0

    assert_all_count_once(cluster, "full", fill)


def test_a_host_without_a_temporary_folder(cluster_of: Make) -> None:
    """Spark there has been told of another one. Python finds none but the folder in which an executor runs, and that will do."""
    cluster = cluster_of(STANDALONE, HDFS)
    cluster.changed = True
    host = cluster.hosts["two"]
    host.kill()
    host.start(temporary=NO_TEMPORARY)
    scratch = f"{HOME}/scratch"
    (host.folder / "home" / "scratch").mkdir()
    java = f"-Djava.io.tmpdir={scratch}"
    add_spark_worker(cluster, "two", f"{HOME}/work", SPARK_LOCAL_DIRS=scratch, JAVA_TOOL_OPTIONS=java)

    def runs_there(submitted: Submitted) -> None:
        wait_for(lambda: "two" in cluster.worker_hosts(), PATIENCE_SECS, submitted.said)

    assert_all_count_once(cluster, "no-temporary", runs_there)


def assert_all_count_once(cluster: Cluster, run: str, fault: Callable[[Submitted], None] = nothing) -> None:
    submitted = Submitted(cluster, PLACES["spark-hdfs-modules"], "counted", run)
    submitted.wait_for_numbers(150)
    fault(submitted)
    submitted.wait_for_the_end()
    assert submitted.counted() == f"counted {NUMBERS} sum {sum(range(NUMBERS))}"
