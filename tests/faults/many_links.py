"""Nimbus, forwarders and workers in numbers: real processes with real sockets, without what makes a worker heavy.

    python -m tests.faults.many_links WORKERS FORWARDERS SOFT HARD unix|tcp|tls

One process is nimbus; each forwarder process exchanges a request with each worker, through the real routes, and keeps all of its
connections; whoever is told to start a worker forks one. SOFT and HARD are the limits of descriptors of all of them. Prints
a line of JSON about nimbus while all connections are open, or why it was refused.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import shutil
import signal
import sys
import threading
import time
from functools import partial
from multiprocessing import Pipe
from multiprocessing.connection import Connection as Channel
from pathlib import Path

from stormspark.errors import UnsupportedEnvironmentError
from stormspark.spark import forwarder
from stormspark.spark.certificate import new_certificate
from stormspark.spark.forwarder import Attempt
from stormspark.spark.nimbus import Nimbus
from stormspark.worker.host.addresses import Address
from stormspark.worker.host.connection import Connection
from stormspark.worker.host.launch import Launch, own_folder
from stormspark.worker.host.lifeline import Lifeline, this_process
from stormspark.worker.host.link import Door, Endpoint, dial
from stormspark.worker.host.messages import Hello, Orders, Ready, Reply, Request

_ELSEWHERE = "/on/another/host"


def main() -> None:
    workers, forwarders, soft, hard = map(int, sys.argv[1:5])
    kind = sys.argv[5]
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    os.setpgid(0, 0)
    folder = own_folder("many-links-")
    try:
        _start(folder, workers, forwarders, kind)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _start(folder: Path, workers: int, forwarders: int, kind: str) -> None:
    channels = [_fork_forwarder(folder, number, workers) for number in range(forwarders)]
    try:
        nimbus = Nimbus(
            b"",
            workers,
            folder=folder,
            address=None if kind == "unix" else Address("127.0.0.1"),
            lease_secs=60,
            start_timeout_secs=120,
            on_trouble=lambda: None,
            certificate=new_certificate("the test") if kind == "tls" else b"",
        )
    except UnsupportedEnvironmentError as error:
        print(json.dumps({"refused": str(error)}), flush=True)
        return
    try:
        _run(nimbus, workers, channels, hidden=kind != "unix")
    finally:
        nimbus.kill_workers()
        nimbus.close()


def _run(nimbus: Nimbus, workers: int, channels: list[Channel], *, hidden: bool) -> None:
    endpoint = Endpoint(_ELSEWHERE, nimbus.endpoint.tcp) if hidden else nimbus.endpoint
    attempt = Attempt("many", 0, 0, "", workers, 1, endpoint, nimbus.key, "", 120.0)
    began = time.monotonic()
    for channel in channels:
        channel.send(attempt)
    said = [channel.recv() if channel.poll(300) else "nothing for 300 s" for channel in channels]
    print(
        json.dumps(
            {
                "failed": [text for text in said if text != "done"],
                "seconds": round(time.monotonic() - began, 1),
                "descriptors": len(os.listdir("/proc/self/fd")),
                "limit": resource.getrlimit(resource.RLIMIT_NOFILE)[0],
                "threads": threading.active_count(),
                "cpu": round(time.process_time(), 1),
            }
        )
    )


def _fork_forwarder(folder: Path, number: int, workers: int) -> Channel:
    near, far = Pipe()
    if os.fork():
        far.close()
        return near
    near.close()
    setattr(forwarder, "start", partial(_fork_worker, folder))  # noqa: B010
    attempt: Attempt = far.recv()
    try:
        for position in range(workers):
            worker = (number + position) % workers
            route = forwarder._route(attempt, worker)
            list(route.exchange(Request(0, route.incarnation, 0, 0, 0, number), ()))
        far.send("done")
    except BaseException as error:
        far.send(f"{type(error).__name__}: {error}")
    with contextlib.suppress(EOFError):
        far.recv()  # all connections stay open until nimbus is gone
    os._exit(0)


def _fork_worker(folder: Path, launch: Launch, timeout_secs: float) -> None:
    """In the place of `stormspark.worker.host.launch.start`: returns once nimbus knows it."""
    up, tell = os.pipe()
    if not os.fork():
        try:
            os.close(up)
            _work(folder, launch, tell)
        finally:
            os._exit(1)
    os.close(tell)
    assert os.read(up, 1) == b"u", "a worker did not come up"
    os.close(up)


def _work(folder: Path, launch: Launch, tell: int) -> None:
    for route in forwarder._routes.values():  # of the process that forked us
        route._connection.close()
    forwarder._nimbuses[launch.key]._connection.close()
    forwarder._routes.clear()
    link = dial(launch.nimbus, launch.key)
    link.send(Hello(launch.worker, launch.incarnation, this_process()))
    link.recv()
    os.write(tell, b"u")
    os.close(tell)

    def serve(connection: Connection) -> None:
        while True:
            connection.recv()
            while connection.recv_bytes():
                pass
            connection.recv()
            connection.send(Reply(0))

    def obey(orders: object) -> None:
        if isinstance(orders, Orders) and orders.exit:
            os._exit(0)

    tcp = launch.nimbus.tcp is not None
    address = Address("127.0.0.1") if tcp else None
    door = Door(str(folder / f"worker-{launch.worker}"), address, launch.key, serve, "request")
    lifeline = Lifeline(link, None, 60.0, obey, lambda reason: os._exit(0))
    lifeline.send(Ready(Endpoint(_ELSEWHERE, door.endpoint.tcp) if tcp else door.endpoint))
    lifeline.watch()


if __name__ == "__main__":
    try:
        main()
    finally:
        sys.stdout.flush()
        os.killpg(0, signal.SIGKILL)
