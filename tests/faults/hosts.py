"""A driver, an executor with a worker, and another executor, each on a host of its own: network namespaces and veth pairs.

    python -m tests.faults.hosts driver|executor|other|listener FOLDER ...

Each role prints what becomes of it, a line of JSON at a time, and ends with its standard input. They share FOLDER, and no
sockets: each has a temporary folder of its own.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import select
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import cloudpickle

from stormspark import BasicBolt, Spout, TopologyBuilder
from stormspark.plan import plan_topology

NAME = "on-hosts"
TEXT = "a tuple of a user"
#: Addresses on the three cables: driver and executor, driver and the other executor, the two executors.
DRIVER_TO_EXECUTOR, EXECUTOR_TO_DRIVER = "10.77.1.1", "10.77.1.2"
DRIVER_TO_OTHER, OTHER_TO_DRIVER = "10.77.2.1", "10.77.2.2"
EXECUTOR_TO_OTHER, OTHER_TO_EXECUTOR = "10.77.3.1", "10.77.3.2"


class Waits(Spout):
    """In the middle of a superstep until there is a file ``go``."""

    #: As if it computed all the while: on a thread of its own it would not hold up the superstep.
    waits = False

    def __init__(self, folder: str) -> None:
        self.folder = Path(folder)
        self.asked = False

    def next_tuple(self) -> None:
        if self.asked:
            return
        self.asked = True
        (self.folder / "entered").touch()
        while not (self.folder / "go").exists():
            time.sleep(0.05)
        for _ in range(10):
            self.collector.emit([TEXT])

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare("text")

    def open(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector = collector


class Takes(BasicBolt):
    def execute(self, tup: Any, collector: Any) -> None:
        """Nothing more."""


def plan(folder: str) -> Any:
    builder = TopologyBuilder()
    builder.set_spout("waits", Waits(folder))
    builder.set_bolt("takes", Takes(), 2).shuffle_grouping("waits")
    # Only the first worker is ever started: what it has for the other one leaves with its reply.
    return plan_topology(builder.create_topology(NAME), {"topology.workers": 2})


def drive(folder: Path, silence_secs: float, encrypted: bool) -> None:
    from stormspark.spark.certificate import new_certificate
    from stormspark.spark.forwarder import Attempt
    from stormspark.spark.nimbus import Nimbus
    from stormspark.worker.host.addresses import Address

    hosts = import_module("tests.faults.hosts")  # the components as workers find them
    trouble = threading.Event()
    nimbus = Nimbus(
        cloudpickle.dumps(hosts.plan(str(folder))),
        2,
        folder=Path(tempfile.mkdtemp()),
        address=Address(DRIVER_TO_EXECUTOR, "0.0.0.0"),
        lease_secs=600,
        start_timeout_secs=120,
        on_trouble=trouble.set,
        certificate=new_certificate("a test") if encrypted else b"",
        silence_secs=silence_secs,
    )
    logs = str(Path(tempfile.gettempdir(), "logs"))
    attempt = Attempt(
        NAME, 0, 0, "", 2, 2, nimbus.endpoint, nimbus.key, logs, 120.0, silence_secs=silence_secs
    )
    (folder / "new").write_bytes(pickle.dumps(attempt))
    (folder / "new").rename(folder / "attempt")

    def tell() -> None:
        trouble.wait()
        say(broken=nimbus.broken or str(nimbus.error))

    threading.Thread(target=tell, daemon=True).start()
    sys.stdin.read()
    nimbus.close()


def exchange(folder: Path, driver: str, *, begins: bool) -> None:
    """An executor: starts the worker, or asks it to run a superstep."""
    from stormspark.errors import WorkerLostError
    from stormspark.spark.forwarder import _Route
    from stormspark.worker.host.messages import Request

    attempt = pickle.loads((folder / "attempt").read_bytes())
    _, port = attempt.nimbus.tcp
    attempt = replace(attempt, nimbus=attempt.nimbus._replace(tcp=(driver, port)))
    try:
        route = _Route(attempt, 0)
        say(up=True)
        if begins:
            while not (folder / "ask").exists():
                time.sleep(0.05)
            replies = list(route.exchange(Request(0, route.incarnation, 0, 0, 0, 0), ()))
            say(replies=len(replies))
    except WorkerLostError as error:
        say(lost=str(error))
    sys.stdin.read()


def listen_in(cable: str) -> None:
    """As tcpdump does: whether the text of a tuple, or the class of its spout, is in what passes until stdin is closed."""
    heard = bytearray()
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.ntohs(3)) as sock:
        sock.bind((cable, 0))
        say(listens=True)
        # When stdin is closed, what has passed before may still wait in the socket's buffer: it is read first.
        while sock in select.select([sock, sys.stdin], [], [])[0]:
            heard.extend(sock.recv(65536))
    say(bytes=len(heard), tuple=TEXT.encode() in heard, plan=b"tests.faults.hosts" in heard)
    os._exit(0)


def say(**what: object) -> None:
    print(json.dumps(what), flush=True)


# -- for the tests -------------------------------------------------------------------------------------------


class Hosts:
    """Three of them, and their cables; ``folder`` is seen by all."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="hosts-", dir="/var/tmp"))
        mark = f"s{os.getpid() % 100000}"
        self.driver, self.executor, self.other = (f"{mark}{letter}" for letter in "dxo")
        self._roles: list[subprocess.Popen[str]] = []

    def lay(self) -> None:
        for host in (self.driver, self.executor, self.other):
            _ip("netns", "add", host)
            _ip("-n", host, "link", "set", "lo", "up")
        for one, other, here, there in (
            (self.driver, self.executor, DRIVER_TO_EXECUTOR, EXECUTOR_TO_DRIVER),
            (self.driver, self.other, DRIVER_TO_OTHER, OTHER_TO_DRIVER),
            (self.executor, self.other, EXECUTOR_TO_OTHER, OTHER_TO_EXECUTOR),
        ):
            _ip("link", "add", f"to-{other[-1]}", "netns", one, "type", "veth",
                "peer", "name", f"to-{one[-1]}", "netns", other)  # fmt: skip
            for host, cable, address in ((one, f"to-{other[-1]}", here), (other, f"to-{one[-1]}", there)):
                _ip("-n", host, "addr", "add", f"{address}/24", "dev", cable)
                _ip("-n", host, "link", "set", cable, "up")

    def cut(self, one: str, other: str) -> None:
        """Nothing passes between two hosts any more, and neither is told."""
        _ip("-n", one, "link", "set", f"to-{other[-1]}", "down")

    def mend(self, one: str, other: str) -> None:
        _ip("-n", one, "link", "set", f"to-{other[-1]}", "up")

    def run(self, host: str, role: str, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        own_folder = 'mount -t tmpfs none "$TMPDIR" && exec "$@"'
        command = ["ip", "netns", "exec", host, "unshare", "-m", "sh", "-c", own_folder, "sh", sys.executable]
        command += ["-m", "tests.faults.hosts", role, str(self.folder), *arguments]
        root = Path(__file__).parents[2]
        temporary = self.folder / "temporary"  # the same name on each host, and another folder
        temporary.mkdir(exist_ok=True)
        path = {"PYTHONPATH": str(root), "TMPDIR": str(temporary)}
        process = subprocess.Popen(
            command,
            cwd=root,
            env={**os.environ, **path, **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._roles.append(process)
        return process

    def take_away(self) -> None:
        for process in reversed(self._roles):
            assert process.stdin is not None and process.stdout is not None
            process.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10)
            process.kill()
            process.wait()
            process.stdout.close()
        for host in (self.driver, self.executor, self.other):
            subprocess.run(["ip", "netns", "del", host], check=False, capture_output=True)


@contextlib.contextmanager
def three_hosts() -> Iterator[Hosts]:
    """Raises `OSError` or `subprocess.CalledProcessError` where there may be none: not root, or a container without them."""
    hosts = Hosts()
    try:
        hosts.lay()
        yield hosts
    finally:
        hosts.take_away()


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


if __name__ == "__main__":
    role, shared, *rest = sys.argv[1:]
    if role == "driver":
        drive(Path(shared), float(rest[0]), rest[1] == "tls")
    elif role == "listener":
        listen_in(rest[0])
    else:
        exchange(Path(shared), rest[0], begins=role == "other")
