"""A standalone Spark cluster on loopback: a master, and workers that come and go."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pyspark

from tests.waiting import wait_for

__all__ = ["Standalone", "standalone"]

_SPARK = Path(pyspark.__file__).parent


class Standalone:
    """Its processes, and what they print, are in ``folder``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        self.url = f"spark://127.0.0.1:{self.port}"
        self._processes: list[subprocess.Popen[bytes]] = []
        self._run(
            "master", "org.apache.spark.deploy.master.Master",
            "--host", "127.0.0.1", "--port", str(self.port), "--webui-port", "0",
        )  # fmt: skip
        wait_for(lambda: "I have been elected leader" in self.output("master"), message="the master")

    def add_worker(self, name: str, cores: int = 1, host: str = "127.0.0.1") -> psutil.Process:
        """A daemon that runs executors; by another address of loopback it is another host to Spark."""
        work = self.folder / f"{name}-work"
        daemon = self._run(
            name, "org.apache.spark.deploy.worker.Worker",
            "--host", host, "--webui-port", "0", "--cores", str(cores), "--memory", "1g",
            "--work-dir", str(work), self.url,
        )  # fmt: skip
        wait_for(lambda: "Successfully registered with master" in self.output(name), message=name)
        return daemon

    def output(self, name: str) -> str:
        """What a process has printed."""
        return (self.folder / name).read_text()

    def decommission(self, daemon: psutil.Process) -> None:
        """Have a daemon, and its executors, take no more tasks and end, as a cloud does that wants its host back."""
        daemon.send_signal(signal.SIGPWR)

    def _run(self, name: str, main: str, *arguments: str) -> psutil.Process:
        environment = os.environ | {
            "SPARK_HOME": str(_SPARK),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_NO_DAEMONIZE": "1",
            "SPARK_WORKER_OPTS": "-Dspark.decommission.enabled=true",
            "SPARK_LOG_DIR": str(self.folder),
        }
        with (self.folder / name).open("wb") as output:
            process = subprocess.Popen(
                [str(_SPARK / "bin" / "spark-class"), main, *arguments],
                env=environment, stdout=output, stderr=output, stdin=subprocess.DEVNULL,
            )  # fmt: skip
        self._processes.append(process)
        return psutil.Process(process.pid)

    def close(self) -> None:
        """Kill all of it."""
        below: list[psutil.Process] = []
        for process in self._processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                below += psutil.Process(process.pid).children(recursive=True)
            process.kill()
        for one in below:
            with contextlib.suppress(psutil.NoSuchProcess):
                one.kill()
        psutil.wait_procs(below, 10)
        for process in self._processes:
            process.wait()


@contextlib.contextmanager
def standalone(folder: Path) -> Iterator[Standalone]:
    cluster = Standalone(folder)
    try:
        yield cluster
    finally:
        cluster.close()
