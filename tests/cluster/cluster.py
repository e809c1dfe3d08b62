"""What runs on hosts: Spark's standalone cluster, Hadoop's HDFS and YARN, a bucket, and a user with a project.

Each host has what its operating system has (Python without packages, Java), and Spark in ``/opt/spark``. The user's host has also
a Python environment with stormspark in ``/opt/env``, and its archive, as ``venv-pack`` makes it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pyspark
import pytest

from tests.cluster.environment import add_pandas, packed_environment, zipped_stormspark
from tests.cluster.hosts import HOME, Host, Hosts
from tests.maven_jars import cache_folder, maven_jars
from tests.spark_jars import connector_jars
from tests.waiting import wait_for

__all__ = [
    "BUCKET", "HDFS", "OTHER_PYTHON", "STANDALONE", "YARN", "Cluster", "Prepared", "add_data_node", "add_node_manager",
    "add_spark_worker",
]  # fmt: skip

_HERE = Path(__file__).parent
WORKERS = ("one", "two", "three")
_NAMES = ["master", *WORKERS, "user", "storage"]
_LAUNCH = "SPARK_NO_DAEMONIZE=1 SPARK_HOME=/opt/spark SPARK_DAEMON_MEMORY=256m SPARK_LOG_DIR=/tmp/spark"
#: YARN's web pages make classes as Java does not allow any more, if nobody says so.
_HADOOP = "exec java -Xmx256m --add-opens=java.base/java.lang=ALL-UNNAMED -cp '/opt/conf:/opt/hadoop/*' org.apache.hadoop"
_HDFS, _YARN = f"{_HADOOP}.hdfs.server", f"{_HADOOP}.yarn.server"
#: A Python that is not the one of the hosts' operating system, if this machine has one.
OTHER_PYTHON = Path(os.path.expanduser("~")) / ".pyenv" / "versions" / "3.12.1"
HADOOP_CONF = {
    "core-site": {"fs.defaultFS": "hdfs://storage:9000", "hadoop.tmp.dir": "/tmp/hadoop", "ipc.client.connect.timeout": "5000"},
    "hdfs-site": {
        "dfs.replication": "2",
        "dfs.permissions.enabled": "false",
        "dfs.namenode.datanode.registration.ip-hostname-check": "false",
        "dfs.client.block.write.replace-datanode-on-failure.policy": "NEVER",
        "dfs.client.socket-timeout": "20000",
        "dfs.datanode.address": "0.0.0.0:9866",
        "dfs.namenode.rpc-bind-host": "0.0.0.0",
        "dfs.namenode.safemode.threshold-pct": "0",
    },
    "yarn-site": {
        "yarn.resourcemanager.hostname": "master",
        "yarn.resourcemanager.scheduler.class": "org.apache.hadoop.yarn.server.resourcemanager.scheduler.fifo.FifoScheduler",
        "yarn.nodemanager.hostname": "${env.HOSTNAME}",
        "yarn.nodemanager.resource.memory-mb": "4096",
        "yarn.nodemanager.resource.cpu-vcores": "4",
        "yarn.nodemanager.log-dirs": "/tmp/hadoop/userlogs",
        "yarn.nodemanager.vmem-check-enabled": "false",
        "yarn.nodemanager.pmem-check-enabled": "false",
        "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": "99.5",
        "yarn.scheduler.minimum-allocation-mb": "256",
        "yarn.nm.liveness-monitor.expiry-interval-ms": "20000",
        "yarn.am.liveness-monitor.expiry-interval-ms": "120000",
        "yarn.resourcemanager.am.max-attempts": "4",
        "yarn.nodemanager.delete.debug-delay-sec": "3600",
    },
}  # fmt: skip


class Prepared:
    """What hosts of all clusters get: made once, in ``folder``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.archive = packed_environment(folder / "env.tar.gz")
        self.archive_of_driver = packed_environment(folder / "driver.tar.gz", with_pandas=True)
        self.environment = folder / "env"
        self.environment.mkdir()
        subprocess.run(["tar", "-xzf", self.archive, "-C", self.environment], check=True)
        # The user has Spark by way of pip, and it is the same as on all hosts.
        packages = next(self.environment.glob("lib/python3*/site-packages"))
        (packages / "pyspark").symlink_to("/opt/spark")
        py4j = next(Path(pyspark.__file__).parent.glob("python/lib/py4j-*.zip"))
        (packages / "py4j.pth").write_text(f"/opt/spark/python/lib/{py4j.name}\n")
        scripts = self.environment / "bin"
        (scripts / "stormspark").write_text('#!/bin/sh\nexec /opt/env/bin/python -m stormspark "$@"\n')
        (scripts / "stormspark").chmod(0o755)
        # What an operator has installed on all hosts for Python programs, and stormspark is not part of it.
        self.packages = folder / "packages"
        apart = shutil.ignore_patterns("stormspark")
        shutil.copytree(self.environment, self.packages, copy_function=os.link, symlinks=True, ignore=apart)
        add_pandas(self.environment)  # of the user's host alone
        self.clock = other_clock(folder / "clock")
        self.modules = zipped_stormspark(folder / "stormspark.zip")
        self.conf = folder / "conf"
        self.conf.mkdir()
        for name, settings in HADOOP_CONF.items():
            properties = "".join(
                f"<property><name>{k}</name><value>{v}</value></property>" for k, v in settings.items()
            )
            (self.conf / f"{name}.xml").write_text(f"<configuration>{properties}</configuration>\n")

    def jars(self, name: str, jars: Callable[[], list[Path]]) -> Path:
        """A folder with these jars."""
        folder = self.folder / name
        if not folder.exists():
            folder.mkdir()
            for jar in jars():
                shutil.copy(jar, folder)
        return folder


class Cluster:
    """Hosts called master, one, two, three, user and storage, and what runs on them."""

    def __init__(
        self, folder: Path, prepared: Prepared, services: tuple[Callable[[Cluster], None], ...]
    ) -> None:
        spark = Path(pyspark.__file__).parent
        #: Whether a test has changed a host for good: the next test gets another cluster.
        self.changed = False
        self.brings = {
            "/opt/spark": spark,
            "/opt/conf": prepared.conf,
            "/opt/hadoop": prepared.jars("hadoop", lambda: maven_jars("hadoop-clusters")),
            "/opt/moto": moto(),
            "/opt/clock": prepared.clock,
            "/opt/python": prepared.packages,
        }
        if OTHER_PYTHON.exists():
            self.brings[str(OTHER_PYTHON)] = OTHER_PYTHON  # it looks for its libraries where it was installed
        self.of_user = {
            "/opt/env": prepared.environment,
            "/opt/env.tar.gz": prepared.archive,
            "/opt/driver.tar.gz": prepared.archive_of_driver,
            "/opt/stormspark.zip": prepared.modules,
            "/opt/delta": prepared.jars("delta", connector_jars),
            "/opt/s3": prepared.jars("s3", lambda: maven_jars("hadoop-s3")),
        }
        try:
            self.hosts = Hosts(
                folder, dict.fromkeys(_NAMES, self.brings) | {"user": self.brings | self.of_user}
            )
        except (OSError, subprocess.CalledProcessError) as error:
            pytest.skip(f"no hosts can be made here: {error}")
        try:
            shutil.copytree(_HERE / "project", self.user.folder / "home" / "project")
            shutil.copy(_HERE / "store.py", self.hosts["storage"].folder / "home")
            for start in (_keep_numbers, *services):
                start(self)
        except BaseException:
            self.hosts.take_away()
            raise

    @property
    def user(self) -> Host:
        return self.hosts["user"]

    def submit(self, arguments: str, **environment: str) -> subprocess.Popen[bytes]:
        """Run ``stormspark`` in the user's project. What it prints is appended to the user's output ``stormspark``."""
        return self.user.run(
            f"cd project && exec stormspark {arguments}", "stormspark",
            PATH="/opt/env/bin:/usr/bin:/bin", **environment,
        )  # fmt: skip

    def sent(self) -> list[int]:
        """The numbers that the store has, in the order in which they came."""
        file = self.hosts["storage"].folder / "home" / "numbers.txt"
        return [int(line) for line in file.read_text().splitlines()] if file.exists() else []

    def forget(self) -> None:
        """Empty the store."""
        (self.hosts["storage"].folder / "home" / "numbers.txt").unlink(missing_ok=True)

    def is_whole(self) -> bool:
        """Whether no host has been killed or changed."""
        return not self.changed and all(
            self.hosts[name].processes() for name in ("master", "storage", *WORKERS)
        )

    def worker_hosts(self) -> list[str]:
        """The hosts on which a worker of a topology runs, a name for each worker."""
        return self._hosts_that_run("stormspark.worker")

    def drivers_hosts(self) -> list[str]:
        """The hosts on which YARN runs a driver."""
        return self._hosts_that_run("org.apache.spark.deploy.yarn.ApplicationMaster")

    def _hosts_that_run(self, word: str) -> list[str]:
        found = []
        for name in WORKERS:
            for process in self.hosts[name].processes():
                with contextlib.suppress(psutil.NoSuchProcess):
                    if word in process.cmdline():
                        found.append(name)
        return found


def wait_for_output(host: Host, output: str, text: str) -> None:
    """Wait until a service has said this. It fails at once if the service has ended."""

    def said() -> bool:
        assert host.runs(output), f"{output} on {host.name} has ended:\n{host.said(output)[-3000:]}"
        return text in host.said(output)

    wait_for(said, message=lambda: f"{text!r} in {output}:\n{host.said(output)[-3000:]}")


def _keep_numbers(cluster: Cluster) -> None:
    storage = cluster.hosts["storage"]
    storage.run("exec python3 store.py numbers.txt 7000", "store")
    wait_for_output(storage, "store", "up")


def STANDALONE(cluster: Cluster) -> None:  # noqa: N802 - what a cluster is made of
    master = cluster.hosts["master"]
    master.run(
        f"{_LAUNCH} exec /opt/spark/bin/spark-class org.apache.spark.deploy.master.Master --host master --port 7077",
        "spark",
    )
    wait_for_output(master, "spark", "elected leader")
    for name in WORKERS:
        add_spark_worker(cluster, name)
    for name in WORKERS:
        wait_for_output(cluster.hosts[name], "spark", "Successfully registered with master")


def add_spark_worker(cluster: Cluster, name: str, work: str = "/tmp/work", **environment: str) -> None:
    worker = "org.apache.spark.deploy.worker.Worker"
    options = f"--host {name} --cores 1 --memory 1g --work-dir {work} spark://master:7077"
    cluster.hosts[name].run(
        f"{_LAUNCH} exec /opt/spark/bin/spark-class {worker} {options}", "spark", **environment
    )


def HDFS(cluster: Cluster) -> None:  # noqa: N802
    storage = cluster.hosts["storage"]
    assert storage.run(f"{_HDFS}.namenode.NameNode -format -nonInteractive", "format").wait() == 0, (
        storage.said("format")
    )
    storage.run(f"{_HDFS}.namenode.NameNode", "namenode")
    for name in WORKERS:
        add_data_node(cluster, name)
    for name in WORKERS:
        wait_for_output(cluster.hosts[name], "datanode", "successfully registered with NN")


def add_data_node(cluster: Cluster, name: str) -> None:
    cluster.hosts[name].run(f"{_HDFS}.datanode.DataNode", "datanode")


def YARN(cluster: Cluster) -> None:  # noqa: N802
    master = cluster.hosts["master"]
    master.run(f"{_YARN}.resourcemanager.ResourceManager", "yarn")
    wait_for_output(master, "yarn", "Transitioned to active state")
    for name in WORKERS:
        add_node_manager(cluster, name)
    for name in WORKERS:
        wait_for_output(cluster.hosts[name], "yarn", "Registered with ResourceManager")


def add_node_manager(cluster: Cluster, name: str) -> None:
    cluster.hosts[name].run(f"{_YARN}.nodemanager.NodeManager", "yarn", JAVA_HOME=java_home())


def BUCKET(cluster: Cluster) -> None:  # noqa: N802
    storage = cluster.hosts["storage"]
    packages = next(moto().glob("lib/python3*/site-packages"))
    path = f"/opt/moto/{packages.relative_to(moto())}"
    storage.run("exec python3 -m moto.server -H 0.0.0.0 -p 5000", "bucket", PYTHONPATH=path)
    wait_for_output(storage, "bucket", "Running on")
    made = storage.run(
        "python3 -c \"import urllib.request as u; u.urlopen(u.Request('http://storage:5000/bucket', method='PUT'))\""
    )
    assert made.wait() == 0, storage.said("output")


def other_clock(folder: Path) -> Path:
    """A folder with the library that gives programs another clock; without a C compiler it is empty."""
    folder.mkdir()
    compiler = shutil.which("cc")
    if compiler is not None:
        source = _HERE / "other_clock.c"
        subprocess.run([compiler, "-shared", "-fPIC", "-o", folder / "other_clock.so", source], check=True)
    return folder


def java_home() -> str:
    java = shutil.which("java")
    assert java is not None
    return str(Path(os.path.realpath(java)).parents[1])


def moto() -> Path:
    """A Python environment with moto's server, made once for this user."""
    folder = cache_folder() / "moto"
    if not (folder / "done").exists():
        shutil.rmtree(folder, ignore_errors=True)
        for command in (
            [sys.executable, "-m", "venv", str(folder)],
            [f"{folder}/bin/pip", "install", "-q", "moto[server,s3]"],
        ):
            subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
        (folder / "done").touch()
    return folder


assert HOME == "/home/storm"
