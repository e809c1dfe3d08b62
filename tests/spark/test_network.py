"""Executors that share no socket files with the driver: addresses, ports and encryption as Spark's configuration has them."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.spark.topologies import counted, expected_counts

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ROOT = Path(__file__).parents[2]

DRIVER = """
import json, sys
from pathlib import Path
from stormspark.spark import local_session, submit
from tests.spark.topologies import FOLDER, word_count
from tests.waiting import wait_until_idle, worker_processes

folder, port = Path(sys.argv[1]), int(sys.argv[2])
conf = {
    "stormspark.log.dir": str(folder / "logs"), "topology.workers": 2, FOLDER: str(folder),
    "stormspark.nimbus.port": port, "stormspark.worker.port": port + 100, "stormspark.port.max.retries": 20,
}
spark = local_session(2, conf | {
    "spark.executor.memory": "1024m", "spark.python.unix.domain.socket.enabled": "false",
    "spark.driver.host": "127.0.0.2", "spark.driver.bindAddress": "0.0.0.0",
    "spark.authenticate": "true", "spark.authenticate.secret": "secret", "spark.network.crypto.enabled": "true",
}, master="local-cluster[2,1,1024]")
running = submit(word_count(1000, "on-a-network"), spark, conf=conf)
wait_until_idle(running)
workers = worker_processes("on-a-network").values()
connections = [c for worker in workers for c in worker.net_connections("tcp")]
print(json.dumps({
    "to": sorted({c.raddr.port for c in connections if c.status == "ESTABLISHED" and c.raddr.port == port}),
    "at": sorted(c.laddr.port - port for c in connections if c.status == "LISTEN"),
    "encrypted": bool(running._now.nimbus.key.certificate),
    "executors": len({worker.environ()["SPARK_EXECUTOR_DIRS"] for worker in workers}),
}))
running.stop()
print(json.dumps(str(running.error)))
spark.stop()
"""


def test_workers_that_can_be_reached_by_tcp_alone(tmp_path):
    """``spark.driver.bindAddress``, fixed ports, ``spark.network.crypto.enabled``; the whole topology over TLS."""
    if subprocess.run(["unshare", "-m", "true"], check=False, capture_output=True).returncode:
        pytest.skip("no mount namespaces here, so executors can't have a temporary folder of their own")
    temporary = tempfile.mkdtemp(prefix="network-", dir="/var/tmp")
    python = tmp_path / "python"
    python.write_text(
        "#!/bin/sh\n"
        f'exec unshare -m sh -c \'mount -t tmpfs none "{temporary}" && exec "$@"\' sh "{sys.executable}" "$@"\n'
    )
    python.chmod(0o755)
    with socket.create_server(("0.0.0.0", 0)) as free:
        port = free.getsockname()[1] % 20000 + 10000  # below those that the kernel gives away
    environment = {name: value for name, value in os.environ.items() if name != "SPARK_HOME"}
    try:
        done = subprocess.run(
            [sys.executable, "-c", DRIVER, str(tmp_path), str(port)],
            cwd=tmp_path,
            env=environment | {"PYTHONPATH": str(ROOT), "TMPDIR": temporary, "PYSPARK_PYTHON": str(python)},
            capture_output=True,
            text=True,
            timeout=1000,
            check=False,
        )
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    assert done.returncode == 0, f"{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    seen, error = map(json.loads, done.stdout.splitlines())
    assert error == "None"
    assert seen["encrypted"] is True
    assert seen["executors"] == 2, "each worker lives beside an executor of its own"
    assert seen["to"] == [port], "nimbus, at its port"
    assert len(seen["at"]) == 2 and set(seen["at"]) <= set(range(100, 121)), "each worker in its range"
    assert counted(tmp_path) == expected_counts(1000)
