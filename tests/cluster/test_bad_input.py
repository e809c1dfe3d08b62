"""What a cluster lacks is told before the first batch, in one sentence that says what to do."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.cluster.cluster import STANDALONE, Cluster
from tests.cluster.test_clusters import PATIENCE_SECS

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
