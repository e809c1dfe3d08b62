"""A Spark that can't start says why in one line, with the name of its log."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from stormspark.errors import UnsupportedEnvironmentError
from stormspark.spark.session import require_master

TOPOLOGY = """
from stormspark import TopologyBuilder

def build():
    builder = TopologyBuilder()
    builder.set_spout("nothing", lambda: None)
    return builder.create_topology("nothing")
"""


@pytest.mark.slow
def test_a_wrong_master_is_told_in_one_line(tmp_path: Path) -> None:
    master, reason = "local[0]", "org.apache.spark.SparkException: Asked to run locally with 0 threads"
    file = tmp_path / "nothing.py"
    file.write_text(TOPOLOGY)
    command = [sys.executable, "-m", "stormspark", "run", str(file), "--master", master, "--workers", "1"]
    done = subprocess.run(
        [*command, "-c", f"stormspark.log.dir={tmp_path / 'logs'}"],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 2, done.stderr
    starting, *shown, error = done.stderr.splitlines()
    assert all(line.endswith(" s  starts: Spark starts") for line in shown), shown
    assert starting == "starting nothing on spark"
    assert error.startswith(f"Error: Spark did not start with the master {master!r} (") and reason in error
    assert error.endswith(f"; read {tmp_path / 'logs' / 'spark.log'} for more")


def test_a_master_that_spark_does_not_know_is_told_before_spark_starts() -> None:
    with pytest.raises(
        UnsupportedEnvironmentError, match=r"no master 'loacl\[2\]'.*did you mean local\[2\]\?"
    ):
        require_master("loacl[2]")
    with pytest.raises(
        UnsupportedEnvironmentError, match=r"no master 'foo': it is local\[N\].*k8s://\.\.\.$"
    ):
        require_master("foo")
    for wrong in ("local[x]", "local[2", "local-cluster[2,1]"):
        with pytest.raises(UnsupportedEnvironmentError, match=r"k8s://\.\.\.$"):
            require_master(wrong)
    for known in (
        "local",
        "local[*]",
        "local[2,4]",
        "local-cluster[2,1,1024]",
        "yarn",
        "k8s://host",
        "of.others://host",
    ):
        require_master(known)


def test_a_master_that_does_not_answer_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        require_master(f"spark://127.0.0.1:{port}")
        require_master(f"spark://nobody.invalid:7077,127.0.0.1:{port}")  # one of several is enough
    with pytest.raises(
        UnsupportedEnvironmentError, match=rf"no Spark master answers at spark://127.0.0.1:{port} \(.*refused"
    ):
        require_master(f"spark://127.0.0.1:{port}")
    with pytest.raises(UnsupportedEnvironmentError, match="no Spark master answers"):
        require_master("spark://127.0.0.1")
    require_master("local[2]")
    require_master("k8s://nobody.invalid:443")
